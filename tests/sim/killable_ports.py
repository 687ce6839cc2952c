"""Ports of a node that can be killed: from that instant, nothing the node does reaches storage."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, TypeVar

import anyio

from holdfast.core.errors import AppendRefusedError, StorageUnavailableError
from holdfast.core.ids import NodeId
from holdfast.ports.journal import Append, Journal
from holdfast.ports.store import Store, Tx
from holdfast.ports.wakeups import Listener, Wake, Wakeups
from tests.sim.observed_storage import Observer, observe

T = TypeVar("T")


class Line:
    """What lies between a node and one port. `cut`: calls fail at once. `stalled`: they wait, then go through."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.dead = False
        self.shut = False
        """Dead, cut or stalled: `enter` says which."""
        self.cut = 0
        self.stalled = 0
        self._moved = anyio.Event()

    def kill(self) -> None:
        self.dead = True
        self._wake()

    def block(self, how: Literal["cut", "stalled"], by: int) -> None:
        """Periods may overlap: `by` is 1 at the beginning of one and -1 at its end."""
        if how == "cut":
            self.cut += by
        else:
            self.stalled += by
        self._wake()

    def mend(self) -> None:
        self.cut = self.stalled = 0
        self._wake()

    def _wake(self) -> None:
        self.shut = self.dead or self.cut > 0 or self.stalled > 0
        self._moved.set()
        self._moved = anyio.Event()

    def check(self) -> None:
        if self.dead:
            raise StorageUnavailableError(f"{self.what}: the node is gone")

    async def enter(self) -> None:
        while not self.dead and not self.cut and self.stalled:
            await self._moved.wait()
        if self.dead or self.cut:
            await anyio.lowlevel.checkpoint()
            raise StorageUnavailableError(f"{self.what}: out of reach")


class KillableStore:
    def __init__(self, inner: Store, line: Line, node: str, observer: Observer) -> None:
        self._inner = inner
        self._line = line
        self._node = node
        self._observer = observer

    @property
    def generation(self) -> str:
        return self._inner.generation

    @property
    def incarnation(self) -> NodeId | None:
        return self._inner.incarnation

    async def transact(self, work: Callable[[Tx], T]) -> T:
        if self._line.shut:
            await self._line.enter()

        def attempt(tx: Tx) -> T:
            self._line.check()  # killed on the way: it never arrived
            return observe(work, tx, self._node, self._observer)

        result = await self._inner.transact(attempt)
        self._line.check()
        return result

    async def read(self, work: Callable[[Tx], T]) -> T:
        if self._line.shut:
            await self._line.enter()
        result = await self._inner.read(work)
        self._line.check()
        return result

    def free_bytes(self) -> int | None:
        return None

    async def reusable_bytes(self) -> int:
        return 0

    async def close(self) -> None:
        pass


class KillableJournal:
    """An append that is on its way when the node is killed may still arrive, one turn of the scheduler later."""

    def __init__(self, inner: Journal, line: Line) -> None:
        self._inner = inner
        self._line = line
        self._appending = False

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        do = getattr(self._inner, name)

        async def call(*args: Any) -> Any:
            if self._line.shut:
                await self._line.enter()
            answer = await do(*args)
            self._line.check()
            return answer

        return call

    async def append(self, batch: Sequence[Append]) -> Sequence[AppendRefusedError | None]:
        assert not self._appending, "one append at a time in a process"
        self._appending = True
        try:
            if self._line.shut:
                await self._line.enter()
            answers = await self._inner.append(batch)
        finally:
            self._appending = False
        self._line.check()
        return answers

    async def close(self) -> None:
        pass


class KillableWakeups:
    """Hints do not wait and do not fail: what is out of reach is not told."""

    def __init__(self, inner: Wakeups, line: Line) -> None:
        self._inner = inner
        self._line = line

    def listen(self, node: NodeId) -> AbstractAsyncContextManager[Listener]:
        return self._inner.listen(node)

    async def notify(self, node: NodeId, wakes: Collection[Wake]) -> None:
        if self._line.shut:
            await anyio.lowlevel.checkpoint()
        else:
            await self._inner.notify(node, wakes)
