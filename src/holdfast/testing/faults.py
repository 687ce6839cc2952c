"""Adapters that fail on purpose. They wrap any adapter of the port and follow a plan that is plain data, so that a
generated history can contain it and a failing one can be printed and replayed."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Literal, TypeVar

import anyio
from anyio.lowlevel import checkpoint

from holdfast.core.errors import Refused, StorageError, StorageUnavailable
from holdfast.core.events import Entry
from holdfast.core.ids import NodeId, RunId
from holdfast.core.values import dataclass
from holdfast.ports import Append, Head, Journal, Listener, Store, Tx, Wake, Wakeups

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one call.

    refuse       nothing is done; StorageUnavailable
    doubt        it is done, then StorageError: the caller cannot know
    stall        `seconds` pass, then it is done
    stall_after  it is done, then `seconds` pass: a caller that gives up has been overtaken by his own write
    conflict     `Store.transact` alone: the work runs, is rolled back and runs again: a store may do that
    """

    kind: Literal["refuse", "doubt", "stall", "stall_after", "conflict"]
    seconds: float = 0.0


Operation = Literal["transact", "read", "append", "fence", "heads", "settled", "purge", "reopen"]
Plan = Mapping[tuple[Operation, int], Fault]
"""(operation, n) -> what happens to its nth call, the first being 1. Calls that are not named go through."""


class _Faults:
    """Counts calls and applies the plan. While `away` is set, calls are refused and none is counted: a plan says what
    happens to calls that storage answers."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.calls: Counter[Operation] = Counter()
        self.away = False

    async def call(self, operation: Operation, do: Callable[[], Awaitable[T]]) -> T:
        if self.away:
            await checkpoint()
            raise StorageUnavailable(f"{operation}: storage is away")
        self.calls[operation] += 1
        fault = self.plan.get((operation, self.calls[operation]))
        if fault is None:
            return await do()
        if fault.kind == "refuse":
            await checkpoint()
            raise StorageUnavailable(f"{operation}: refused as planned")
        if fault.kind == "stall":
            await anyio.sleep(fault.seconds)
        result = await do()
        if fault.kind == "stall_after":
            await anyio.sleep(fault.seconds)
        if fault.kind == "doubt":
            raise StorageError(f"{operation}: done, and reported as failed as planned")
        return result


class FaultyJournal:
    """A journal under a plan. `away`: every call raises StorageUnavailable for as long as it is set."""

    def __init__(self, inner: Journal, plan: Plan | None = None) -> None:
        self.inner = inner
        self.faults = _Faults(plan or {})

    @property
    def away(self) -> bool:
        return self.faults.away

    @away.setter
    def away(self, away: bool) -> None:
        self.faults.away = away

    async def append(self, batch: Sequence[Append]) -> Sequence[Refused | None]:
        return await self.faults.call("append", lambda: self.inner.append(batch))

    async def fence(self, epochs: Mapping[RunId, int]) -> Mapping[RunId, Head]:
        return await self.faults.call("fence", lambda: self.inner.fence(epochs))

    async def heads(self, runs: Collection[RunId]) -> Mapping[RunId, Head]:
        return await self.faults.call("heads", lambda: self.inner.heads(runs))

    async def read(self, run: RunId, after: int = 0, limit: int = 1000) -> Sequence[Entry]:
        return await self.faults.call("read", lambda: self.inner.read(run, after, limit))

    async def read_whole(self, runs: Collection[RunId]) -> Mapping[RunId, Sequence[Entry]]:
        return await self.faults.call("read", lambda: self.inner.read_whole(runs))

    async def settled(self, runs: Collection[RunId]) -> None:
        await self.faults.call("settled", lambda: self.inner.settled(runs))

    async def purge(self, runs: Collection[RunId]) -> None:
        await self.faults.call("purge", lambda: self.inner.purge(runs))

    async def reopen(self) -> None:
        await self.faults.call("reopen", self.inner.reopen)

    async def close(self) -> None:
        await self.inner.close()


class _RolledBack(Exception):
    """Carries nothing: it only makes the inner store forget the first attempt."""


class FaultyStore:
    """A store under a plan. `free` is the answer of `free_bytes` once it is set."""

    def __init__(self, inner: Store, plan: Plan | None = None) -> None:
        self.inner = inner
        self.faults = _Faults(plan or {})
        self.free: int | None = None

    @property
    def away(self) -> bool:
        return self.faults.away

    @away.setter
    def away(self, away: bool) -> None:
        self.faults.away = away

    @property
    def generation(self) -> str:
        return self.inner.generation

    @property
    def incarnation(self) -> NodeId | None:
        return self.inner.incarnation

    async def transact(self, work: Callable[[Tx], T]) -> T:
        fault = self.faults.plan.get(("transact", self.faults.calls["transact"] + 1))
        if fault is not None and fault.kind == "conflict":
            return await self.faults.call("transact", lambda: self._twice(work))
        return await self.faults.call("transact", lambda: self.inner.transact(work))

    async def _twice(self, work: Callable[[Tx], T]) -> T:
        def attempt(tx: Tx) -> None:
            work(tx)
            raise _RolledBack

        with suppress(_RolledBack):
            await self.inner.transact(attempt)
        return await self.inner.transact(work)

    async def read(self, work: Callable[[Tx], T]) -> T:
        return await self.faults.call("read", lambda: self.inner.read(work))

    def free_bytes(self) -> int | None:
        return self.inner.free_bytes() if self.free is None else self.free

    async def close(self) -> None:
        await self.inner.close()


class FaultyWakeups:
    """Wakes that get lost or come twice: the fate of the nth `notify` of all nodes, the first being 1. While `deaf` is
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
