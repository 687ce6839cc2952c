"""A backup as an event stream: how far it is, and how it went."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
from anyio import from_thread
from anyio.abc import TaskGroup

from holdfast.core.errors import HoldfastError

Report = Callable[[str, int, int], None]
"""Called on the thread that copies."""
MakeBackup = Callable[[Path, Report], Awaitable[Mapping[str, int]]]


class CopySource:
    """The copying waits for whoever reads, and ends when he leaves."""

    def __init__(self, make: MakeBackup, path: Path) -> None:
        self._make = make
        self._path = path
        self._send, self._receive = anyio.create_memory_object_stream[bytes](0)

    def start(self, tasks: TaskGroup) -> None:
        tasks.start_soon(self._copy)

    def close(self) -> None:
        self._send.close()
        self._receive.close()

    async def _copy(self) -> None:
        async with self._send:
            try:
                done = await self._make(self._path, self._report)
            except HoldfastError as error:
                await self._send.send(_frame("failed", {"type": error.code, "detail": str(error)}))
                return
            await self._send.send(_frame("done", done))

    def _report(self, what: str, done: int, total: int) -> None:
        from_thread.check_cancelled()
        from_thread.run(self._send.send, _frame("progress", {"what": what, "done": done, "total": total}))

    async def next(self) -> Sequence[bytes] | None:
        try:
            return [await self._receive.receive()]
        except anyio.EndOfStream:
            return None


def _frame(event: str, data: Mapping[str, Any]) -> bytes:
    return f"event: {event}\ndata: {json.dumps(data)}\n\n".encode()
