"""`Wakeups` within one process: for a single node, and for several, which tests have."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

from holdfast.core.ids import NodeId
from holdfast.ports.wakeups import Wake

MAX_PENDING: Final = 10_000


class PendingHints:
    """The hints that one listener has not taken yet, each once. Over the limit the oldest is lost."""

    def __init__(self, limit: int = MAX_PENDING) -> None:
        self._limit = limit
        self._wakes: dict[Wake, None] = {}
        self._nonempty = anyio.Event()

    def add(self, wakes: Collection[Wake]) -> None:
        for wake in wakes:
            self._wakes[wake] = None
            if len(self._wakes) > self._limit:
                del self._wakes[next(iter(self._wakes))]
        if self._wakes:
            self._nonempty.set()

    async def next(self) -> Collection[Wake]:
        await self._nonempty.wait()
        taken, self._wakes, self._nonempty = self._wakes, {}, anyio.Event()
        return taken.keys()


class SingleNodeWakeups:
    """`Wakeups` of a process that is the only node: there is nobody to tell."""

    @asynccontextmanager
    async def listen(self, node: NodeId) -> AsyncIterator[PendingHints]:
        yield PendingHints()

    async def notify(self, node: NodeId, wakes: Collection[Wake]) -> None:
        return


class InMemoryWakeups:
    """`limit`: how many different hints are held for one listener."""

    def __init__(self, *, limit: int = MAX_PENDING) -> None:
        self._limit = limit
        self._listeners: dict[PendingHints, NodeId] = {}

    @asynccontextmanager
    async def listen(self, node: NodeId) -> AsyncIterator[PendingHints]:
        pending = PendingHints(self._limit)
        self._listeners[pending] = node
        try:
            yield pending
        finally:
            del self._listeners[pending]

    async def notify(self, node: NodeId, wakes: Collection[Wake]) -> None:
        await checkpoint()
        for pending, listener in self._listeners.items():
            if listener != node:
                pending.add(wakes)
        await checkpoint()
