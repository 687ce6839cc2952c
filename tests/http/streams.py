"""Clients that read event streams frame by frame, and how tests wait."""

import functools
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import httpx

T = TypeVar("T")

GUARD: Final = 30.0
"""Seconds after which something that should happen has not."""


def until(look: Callable[[], T], good: Callable[[T], object] = bool, within: float = GUARD) -> T:
    """Look until it is good. The pause leaves the CPU to the servers that are waited for."""
    ends_at = time.monotonic() + within
    while not good(seen := look()):
        assert time.monotonic() < ends_at, f"still {seen!r}"
        time.sleep(0.01)
    return seen


@dataclass(frozen=True, slots=True)
class Frame:
    id: str | None
    event: str
    data: Any
    raw: bytes

    @property
    def seq(self) -> int:
        assert self.id is not None
        return int(self.id)


@dataclass
class Stream:
    """An open event stream. `frames` are all that have been read."""

    response: httpx.Response
    frames: list[Frame] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    _rest: bytes = b""
    _bytes: Iterator[bytes] | None = None

    def next(self) -> Frame | None:
        """The next frame, or None at the end of the stream."""
        if self._bytes is None:
            self._bytes = self.response.iter_raw()
        while True:
            while b"\n\n" in self._rest:
                block, _, self._rest = self._rest.partition(b"\n\n")
                frame = _parse(block)
                if frame is None:
                    self.comments.append(block.decode())
                    continue
                self.frames.append(frame)
                return frame
            try:
                self._rest += next(self._bytes)
            except (StopIteration, httpx.RemoteProtocolError, httpx.ReadError):
                return None

    def until(self, event: str) -> Frame:
        """Read to the next frame of this type."""
        while (frame := self.next()) is not None:
            if frame.event == event:
                return frame
        raise AssertionError(f"the stream ended without {event}: {[frame.event for frame in self.frames]}")

    def place(self) -> str:
        """The id that came alone, before anything else."""
        if self._bytes is None:
            self._bytes = self.response.iter_raw()
        while (found := re.search(rb"(?:^|\n\n)id: (.+)\n\n", self._rest)) is None:
            self._rest += next(self._bytes)
        return found[1].decode()

    def rest(self) -> list[Frame]:
        while self.next() is not None:
            pass
        return self.frames

    def comment(self) -> str:
        """Read until a comment has come."""
        before = len(self.comments)
        while len(self.comments) == before:
            assert self._bytes is not None
            self._rest += next(self._bytes)
            while b"\n\n" in self._rest and self._rest.startswith(b":"):
                block, _, self._rest = self._rest.partition(b"\n\n")
                self.comments.append(block.decode())
        return self.comments[-1]


class Follower:
    """A client in a thread of its own that reads a stream to its end."""

    def __init__(self, url: str, method: str, path: str, **how: Any) -> None:
        self._http = httpx.Client(base_url=url, timeout=GUARD, verify=False)
        self._asked: Any = functools.partial(self._http.stream, method, path, **how)
        self.frames: list[Frame] = []
        self.status: int | None = None
        self._over = False
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            with self._http, self._asked() as response:
                self.status = response.status_code
                stream = Stream(response, self.frames)
                while stream.next() is not None:
                    self._tell()
        except httpx.TransportError:
            pass  # the server went
        self._over = True
        self._tell()

    def _tell(self) -> None:
        with self._news:
            self._news.notify_all()

    def until(self, event: str, count: int = 1) -> Frame:
        """Wait until so many frames of this type are there; the last of them."""

        def found() -> list[Frame]:
            return [frame for frame in list(self.frames) if frame.event == event]

        with self._news:
            there = self._news.wait_for(lambda: len(found()) >= count or self._over, GUARD)
            assert there, f"no {event}: {[frame.event for frame in self.frames]}"
            assert len(found()) >= count, f"the stream ended without {event}: {[frame.event for frame in self.frames]}"
            return found()[count - 1]

    def ended(self) -> list[Frame]:
        """All that it was sent, after its stream has ended."""
        self._thread.join(GUARD)
        assert not self._thread.is_alive(), [frame.event for frame in self.frames]
        return self.frames


def shown(frames: Sequence[Frame], kind: str = "text.delta") -> str:
    return "".join(frame.data["text"] for frame in frames if frame.event == kind)


def said(message: Any, kind: str = "text") -> str:
    return "".join(part["text"] for part in message["parts"] if part["type"] == kind)


def _parse(block: bytes) -> Frame | None:
    fields: dict[str, str] = {}
    for line in block.decode().split("\n"):
        name, _, value = line.partition(": ")
        fields[name] = value
    if "event" not in fields:
        return None
    return Frame(fields.get("id"), fields["event"], json.loads(fields["data"]), block + b"\n\n")
