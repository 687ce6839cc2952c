"""Adapters that inject faults. They wrap any adapter of a port and follow a plan, which is plain data: a generated
history contains it, and a failing one can be printed and replayed."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec, TypeVar

import anyio
from anyio.lowlevel import checkpoint

from holdfast.core.errors import StorageError, StorageUnavailableError
from holdfast.core.ids import NodeId
from holdfast.ports.journal import Journal
from holdfast.ports.store import Store, Tx
from holdfast.ports.wakeups import Listener, Wake, Wakeups

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one call.

    refuse       nothing is written; StorageUnavailableError
    doubt        it is written, then StorageError: the caller cannot know
    stall        `seconds` pass, then it is written
    stall_after  it is written, then `seconds` pass: a caller that times out has written nevertheless
    conflict     only `Store.transact`: the work runs, is rolled back and runs again
    """

    kind: Literal["refuse", "doubt", "stall", "stall_after", "conflict"]
    seconds: float = 0.0


Operation = Literal["transact", "read", "append", "fence", "heads", "settled", "purge", "reopen"]
Plan = Mapping[tuple[Operation, int], Fault]
"""(operation, n) -> the fault of its nth call, counted from 1. All other calls succeed."""


class _Faults:
    """Counts calls and applies the plan. While `away` is set, every call raises StorageUnavailableError and is not
    counted."""

    def __init__(self, plan: Plan | None) -> None:
        self.plan = plan or {}
        self.calls: Counter[Operation] = Counter()
        self.away = False

    async def _call(self, operation: Operation, do: Callable[[], Awaitable[T]]) -> T:
        if self.away:
            await checkpoint()
            raise StorageUnavailableError(f"{operation}: storage is away")
        self.calls[operation] += 1
        fault = self.plan.get((operation, self.calls[operation]))
        if fault is None:
            return await do()
        if fault.kind == "refuse":
            await checkpoint()
            raise StorageUnavailableError(f"{operation}: refused as planned")
        if fault.kind == "stall":
            await anyio.sleep(fault.seconds)
        result = await do()
        if fault.kind == "stall_after":
            await anyio.sleep(fault.seconds)
        if fault.kind == "doubt":
            raise StorageError(f"{operation}: done, and reported as failed as planned")
        return result


class FaultyJournal(_Faults):
    """A journal under a plan."""

    def __init__(self, inner: Journal, plan: Plan | None = None) -> None:
        super().__init__(plan)
        self.inner = inner
        self.append = self._planned("append", inner.append)
        self.fence = self._planned("fence", inner.fence)
        self.heads = self._planned("heads", inner.heads)
        self.read = self._planned("read", inner.read)
        self.read_whole = self._planned("read", inner.read_whole)
        self.settled = self._planned("settled", inner.settled)
        self.purge = self._planned("purge", inner.purge)
        self.reopen = self._planned("reopen", inner.reopen)
        self.close = inner.close

    def _planned(self, operation: Operation, call: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        async def planned(*args: P.args, **options: P.kwargs) -> T:
            return await self._call(operation, lambda: call(*args, **options))

        return planned


class _RolledBackError(Exception):
    """Makes the inner store roll back the first attempt."""


class FaultyStore(_Faults):
    """A store under a plan. Once `free` is set, it overrides `free_bytes`, and `reusable`
    `reusable_bytes`."""

    def __init__(self, inner: Store, plan: Plan | None = None) -> None:
        super().__init__(plan)
        self.inner = inner
        self.free: int | None = None
        self.reusable = 0

    @property
    def generation(self) -> str:
        return self.inner.generation

    @property
    def incarnation(self) -> NodeId | None:
        return self.inner.incarnation

    async def transact(self, work: Callable[[Tx], T]) -> T:
        fault = self.plan.get(("transact", self.calls["transact"] + 1))
        if fault is not None and fault.kind == "conflict":
            return await self._call("transact", lambda: self._twice(work))
        return await self._call("transact", lambda: self.inner.transact(work))

    async def _twice(self, work: Callable[[Tx], T]) -> T:
        def attempt(tx: Tx) -> None:
            work(tx)
            raise _RolledBackError

        with suppress(_RolledBackError):
            await self.inner.transact(attempt)
        return await self.inner.transact(work)

    async def read(self, work: Callable[[Tx], T]) -> T:
        return await self._call("read", lambda: self.inner.read(work))

    def free_bytes(self) -> int | None:
        return self.inner.free_bytes() if self.free is None else self.free

    async def reusable_bytes(self) -> int:
        return await self.inner.reusable_bytes() if self.free is None else self.reusable

    async def close(self) -> None:
        await self.inner.close()


class FaultyWakeups:
    """Loses or doubles hints: the plan has the fate of the nth `notify` of all nodes, counted from 1. While `deaf` is
    set, all are lost."""

    def __init__(self, inner: Wakeups, plan: Mapping[int, Literal["lost", "doubled"]] | None = None) -> None:
        self.inner = inner
        self.plan = plan or {}
        self.calls = 0
        self.deaf = False

    def listen(self, node: NodeId) -> AbstractAsyncContextManager[Listener]:
        return self.inner.listen(node)

    async def notify(self, node: NodeId, wakes: Collection[Wake]) -> None:
        self.calls += 1
        fate = "lost" if self.deaf else self.plan.get(self.calls)
        if fate == "lost":
            await checkpoint()
            return
        await self.inner.notify(node, wakes)
        if fate == "doubled":
            await self.inner.notify(node, wakes)
