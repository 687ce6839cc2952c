"""Watching a run over whatever becomes of the line: from the last event that was seen, with no gap and no repeat."""

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import anyio

from holdfast.faces.cli.client import path
from holdfast.faces.cli.exits import Lost, Refused
from holdfast.faces.cli.reach import PATIENCE, Line
from holdfast.faces.cli.sse import Frame, Parser, TooLong

TERMINAL: Final = frozenset({"run.complete", "run.cancelled", "run.failed", "run.interrupted"})
_PAUSE: Final = 0.5


class Event(NamedTuple):
    seq: int
    type: str
    data: dict[str, Any]


class Follower:
    """`see` is told every event once. It returns True when it has seen enough."""

    def __init__(self, line: Line, rid: str, see: Callable[[Event], bool | None], after: int = 0) -> None:
        self.after = after
        self._line = line
        self._where = path("runs", rid, "events")
        self._see = see
        self._idle = 0.0

    async def run(self) -> None:
        """Until the run has ended or `see` has seen enough. Lost: the server did not come back."""
        while True:
            before = self.after
            try:
                if await self._watch():
                    return
                why = Lost("The server lets go of its streams.")
            except Lost as error:
                why = error
            except Refused as error:
                if error.status != 503:
                    raise
                why = Lost(str(error))
            self._idle = 0.0 if self.after > before else self._idle + _PAUSE
            if self._idle > PATIENCE:
                raise why
            await anyio.sleep(_PAUSE)
            await self._line.found_again(why)

    async def _watch(self) -> bool:
        """Whether that was all; otherwise the stream ended before the run."""
        parser = Parser()
        async with self._line.client.stream("GET", self._where, params={"after": self.after}) as answer:
            if answer.status == 204:
                return True
            async for piece in answer.pieces():
                try:
                    frames = parser.feed(piece)
                except TooLong as error:
                    raise Lost(str(error)) from None
                for frame in frames:
                    if self._take(frame):
                        return True
        return False

    def _take(self, frame: Frame) -> bool:
        event = Event(int(frame.id or 0), frame.event, json.loads(frame.data))
        if event.seq <= self.after:
            return False
        self.after = event.seq
        return bool(self._see(event)) or event.type in TERMINAL
