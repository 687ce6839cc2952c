"""Keeps the end of a program's error output."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio

_MAX_STDERR: Final = 4_000  # Bytes
_READS_AT_ONCE: Final = 16  # A program that writes without end does not keep the loop busy


class StderrTail:
    """The end of what a program wrote to its error output."""

    def __init__(self) -> None:
        self._tail = b""
        self._fd: int | None = None

    @property
    def text(self) -> str:
        self._read()
        return self._tail.decode(errors="replace").strip()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[int]:
        """Yields the file descriptor for the program to write to, and reads from it until the block ends."""
        self._fd, writing = os.pipe()
        os.set_blocking(self._fd, False)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._follow, self._fd)
                try:
                    yield writing
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            self._read()
            os.close(self._fd)
            os.close(writing)
            self._fd = None

    async def _follow(self, fd: int) -> None:
        while True:
            await anyio.wait_readable(fd)
            self._read()

    def _read(self) -> None:
        if self._fd is None:
            return
        try:
            for _ in range(_READS_AT_ONCE):
                self._tail = (self._tail + os.read(self._fd, 65536))[-_MAX_STDERR:]
        except BlockingIOError:
            pass  # nothing more for now
