"""`Store` on dicts. A transaction runs without giving way to another task, which makes it atomic and alone."""

from collections.abc import Callable
from typing import TypeVar

from anyio.lowlevel import checkpoint

from holdfast.core.ids import NodeId
from holdfast.ports import Clock, Tx
from holdfast.storage.memory.data import Data, UndoLog
from holdfast.storage.memory.tx import MemoryTx

T = TypeVar("T")


class MemoryStore:
    """`incarnation`: the only node that can be alive, or None for a cluster whose leases lapse by `clock`."""

    def __init__(self, clock: Clock, *, incarnation: NodeId | None = None, generation: str = "memory") -> None:
        self._clock = clock
        self._incarnation = incarnation
        self._generation = generation
        self._data = Data()

    def as_incarnation(self, node: NodeId | None) -> "MemoryStore":
        """The same data as the next process sees it: claims of the earlier one are dead to it."""
        view = MemoryStore(self._clock, incarnation=node, generation=self._generation)
        view._data = self._data
        return view

    @property
    def generation(self) -> str:
        return self._generation

    @property
    def incarnation(self) -> NodeId | None:
        return self._incarnation

    async def transact(self, work: Callable[[Tx], T]) -> T:
        await checkpoint()
        result = self._attempt(work)
        await checkpoint()
        return result

    async def read(self, work: Callable[[Tx], T]) -> T:
        await checkpoint()
        result = self._attempt(work, keep=False)
        await checkpoint()
        return result

    def _attempt(self, work: Callable[[Tx], T], *, keep: bool = True) -> T:
        log = UndoLog()
        try:
            result = work(MemoryTx(self._data, log, self._clock.now()))
        except BaseException:
            log.rollback()
            raise
        if not keep:
            log.rollback()
        return result

    def free_bytes(self) -> int | None:
        return None

    async def close(self) -> None:
        """The data stays for the next one."""
