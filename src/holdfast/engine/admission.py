"""Decides whether a new turn is accepted, and stores it. While the node drains or the disk is almost full, nothing new
is accepted; a repeat of an accepted call is answered."""

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.core.errors import DrainingError, HoldfastError, SessionBusyError, StorageFullError
from holdfast.engine.node_context import NodeContext
from holdfast.engine.run_feed import RunFeed
from holdfast.engine.supervisor import Supervisor
from holdfast.engine.transactions.accept import Accepted, TurnRequest, find_repeated
from holdfast.ports.store import Tx


@dataclass(frozen=True, slots=True, eq=False)
class Admission:
    _node: NodeContext
    _feed: RunFeed
    _supervisor: Supervisor

    def refusal(self) -> HoldfastError | None:
        """Why nothing new is accepted now; None if it is."""
        if self._supervisor.draining:
            return DrainingError()
        free = self._node.store.free_bytes()
        if free is not None and free < self._node.settings.disk_reserve:
            return StorageFullError("The disk is almost full. Free some space; open runs can still be saved.")
        return None

    async def accept(self, request: TurnRequest, work: Callable[[Tx, TurnRequest], Accepted]) -> Accepted:
        """`work`, unless a request with its idempotency key was accepted before. The client of an attached run counts
        as connected before the run is stored."""
        if request.options.lifetime == "attached":
            self._node.local.connect(request.ids.run)
        try:
            accepted = await self._accept(request, work)
        except BaseException:
            self._node.local.disconnect(request.ids.run)  # if it was stored all the same, it has no client
            raise
        if accepted.run.id != request.ids.run:
            self._node.local.disconnect(request.ids.run)
        return accepted

    async def _accept(self, request: TurnRequest, work: Callable[[Tx, TurnRequest], Accepted]) -> Accepted:
        def once(tx: Tx) -> Accepted:
            return find_repeated(tx, request) or work(tx, request)

        refusal = self.refusal()
        if refusal is not None:
            before = await self._node.store.read(lambda tx: find_repeated(tx, request))
            if before is None:
                raise refusal
            return before
        try:
            accepted = await self._node.transact(once)
        except SessionBusyError as busy:
            # The client may have seen the end of that run already; it must not be told that the run is in its way.
            if not self._feed.is_sealed(busy.run):
                raise
            await self._node.wait_until_ended(busy.run, self._node.settings.fence_wait)
            accepted = await self._node.transact(once)
        await self._supervisor.stop_requested(accepted.stop)
        return accepted
