"""Follows a run's events across lost connections, without gaps or repeats."""

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import anyio

from holdfast.cli.connect import RECONNECT_TIMEOUT, ServerConnection, api_path
from holdfast.cli.exit_codes import ConnectionLostError, ServerRefusedError
from holdfast.core.events import TERMINAL_TYPES
from holdfast.core.sse import EventTooLongError, ServerSentEvent, SseParser

_PAUSE: Final = 0.5


class FollowedEvent(NamedTuple):
    seq: int
    type: str
    data: dict[str, Any]


class RunFollower:
    """Calls `on_event` once for each event until the run ends or `on_event` returns True."""

    def __init__(
        self, connection: ServerConnection, rid: str, on_event: Callable[[FollowedEvent], bool | None], after: int = 0
    ) -> None:
        self.after = after
        self._connection = connection
        self._path = api_path("runs", rid, "events")
        self._on_event = on_event
        self._idle = 0.0

    async def run(self) -> None:
        """Raises ConnectionLostError if the server does not come back."""
        while True:
            before = self.after
            try:
                if await self._read_stream():
                    return
                reason = ConnectionLostError("The server closed the stream.")
            except ConnectionLostError as error:
                reason = error
            except ServerRefusedError as error:
                if error.status != 503:
                    raise
                reason = ConnectionLostError(str(error))
            self._idle = 0.0 if self.after > before else self._idle + _PAUSE
            if self._idle > RECONNECT_TIMEOUT:
                raise reason
            await anyio.sleep(_PAUSE)
            await self._connection.reconnect(reason)

    async def _read_stream(self) -> bool:
        """Returns False if the stream ended before the run did."""
        parser = SseParser()
        async with self._connection.client.stream("GET", self._path, params={"after": self.after}) as response:
            if response.status == 204:
                return True
            async for chunk in response.content.iter_any():
                try:
                    events = parser.feed(chunk)
                except EventTooLongError as error:
                    raise ConnectionLostError(str(error)) from None
                if any(self._handle(event) for event in events):
                    return True
        return False

    def _handle(self, received: ServerSentEvent) -> bool:
        event = FollowedEvent(int(received.id or 0), received.event, json.loads(received.data))
        if event.seq <= self.after:
            return False
        self.after = event.seq
        return bool(self._on_event(event)) or event.type in TERMINAL_TYPES
