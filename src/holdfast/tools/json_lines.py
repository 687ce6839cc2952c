"""Reads what a program writes to its standard output: JSON messages, one per line. A line has a size and a number of
values at most, because nothing else runs while it is parsed. Lines that are no messages are skipped, up to a number."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import anyio
from anyio import to_thread
from anyio.abc import ByteReceiveStream
from anyio.lowlevel import checkpoint

from holdfast.core.json_limits import LARGE, JsonCounter

T = TypeVar("T")

MAX_INVALID: Final = 10_000  # Lines in a row that are no messages
_LINES_PER_CHECKPOINT: Final = 100  # One chunk has thousands of short lines
_CHUNK: Final = 64 * 1024
CLOSED: Final = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)
"""What a stream of a program raises when the program has ended, or we have ended it."""


@dataclass(frozen=True, slots=True)
class LineLimits:
    size: int  # Bytes
    structure: int  # Bytes outside of strings, each of which may be a value
    strings: int


class LineSplitter:
    """Splits output into lines, and measures the one that is not complete. The time is linear in what is added."""

    def __init__(self, limits: LineLimits) -> None:
        self._limits = limits
        self._pieces: list[bytes] = []  # of the line that is not complete
        self._size, self._counter = 0, JsonCounter()
        self.problem: str | None = None  # Why nothing more should be read: what the program sent

    def add(self, chunk: bytes) -> list[bytes]:
        """The lines that are complete now, up to one that is too large."""
        *ends, rest = chunk.split(b"\n")
        complete: list[bytes] = []
        for end in ends:
            if self._size or len(end) > LARGE:
                self._count(end)
            if self.problem is not None:
                return complete
            complete.append(b"".join([*self._pieces, end]))
            self._pieces, self._size, self._counter = [], 0, JsonCounter()
        self._pieces.append(rest)
        self._count(rest)
        return complete

    def _count(self, piece: bytes) -> None:
        limits, counter = self._limits, self._counter
        self._size += len(piece)
        counter.add(piece)
        if self._size > limits.size:
            self.problem = f"a message of more than {limits.size // 2**20} MB"
        elif self._size > LARGE and (counter.structure > limits.structure or counter.strings > limits.strings):
            self.problem = "a message of too many values"


class JsonLineReader:
    def __init__(self, output: ByteReceiveStream, limits: LineLimits) -> None:
        self._output = output
        self._splitter = LineSplitter(limits)
        self._lines: deque[bytes] = deque()
        self._taken = 0
        self._invalid = 0  # Lines since the last message

    @property
    def problem(self) -> str | None:
        """Why nothing more is read, if the program did not end: what it sent."""
        if self._invalid >= MAX_INVALID:
            return f"{MAX_INVALID:,} lines in a row that are no messages"
        return self._splitter.problem

    async def next(self, parse: Callable[[bytes], T | None]) -> T | None:
        """The next line of which `parse` makes a message; None at the end. A long one is parsed in a thread."""
        while self._invalid < MAX_INVALID:
            if not self._lines and not await self._receive():
                return None
            line = self._lines.popleft()
            self._taken += 1
            if self._taken % _LINES_PER_CHECKPOINT == 0:
                await checkpoint()
            if (message := await _parse(parse, line)) is not None:
                self._invalid = 0
                return message
            self._invalid += 1
        return None

    async def _receive(self) -> bool:
        """Whether there is another line."""
        while not self._lines:
            if self._splitter.problem is not None:
                return False
            try:
                chunk = await self._output.receive(_CHUNK)
            except CLOSED:
                return False
            self._lines.extend(self._splitter.add(chunk))
        return True


async def _parse(parse: Callable[[bytes], T | None], line: bytes) -> T | None:
    if len(line) > LARGE:
        return await to_thread.run_sync(parse, line)
    return parse(line) if line.strip() else None
