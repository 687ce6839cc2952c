"""Cancels runs: on request, or because the client of an attached run has left.

Cancel and finish race at the journal, which accepts one terminal event: whichever is appended first decides the run's
status, and the other is refused. Cancelling therefore only records the intent in the store, stops whoever executes the
run, and waits; the executor or the settler writes the ending.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

import anyio

from holdfast.core.errors import NotFoundError, StorageError
from holdfast.core.ids import OwnerId, RunId
from holdfast.core.run import Run
from holdfast.engine.node_context import NodeContext
from holdfast.engine.recovery import RunRecovery
from holdfast.engine.retention import ERASE
from holdfast.engine.run_feed import RunFeed
from holdfast.engine.stop_reasons import cancelled
from holdfast.engine.supervisor import Supervisor
from holdfast.engine.transactions import run_endings
from holdfast.ports.wakeups import Wake


@dataclass(frozen=True, slots=True, eq=False)
class RunCanceller:
    _node: NodeContext
    _supervisor: Supervisor
    _recovery: RunRecovery

    async def cancel(self, rid: RunId, owner: OwnerId, reason: str) -> Run:
        """The settled run, or after `cancel_wait` seconds the run with its cancel requested. A run that this node
        executes is stopped even if the store cannot be written."""
        try:
            run = await self._node.transact(
                partial(run_endings.request_cancel, rid=rid, owner=owner, reason=reason), wake_queue=False
            )
        except StorageError:
            self._supervisor.stop(rid, cancelled(reason))
            raise
        if run.is_open:
            await self.stop([run])
            run = await self._node.wait_until_ended(rid, self._node.settings.cancel_wait) or run
        return run

    async def stop(self, runs: Sequence[Run]) -> None:
        """Stop runs whose intent is stored: here, on other nodes, or by ending orphans. The sweeper retries
        failures."""
        elsewhere = [run for run in runs if not self._supervisor.apply_intent(run)]
        if not elsewhere:
            return
        with anyio.move_on_after(self._node.settings.final_save, shield=True):
            with suppress(StorageError):
                now = await self._node.store.read(lambda tx: tx.now)
                await self._recovery.resolve_orphans(self._recovery.find_orphans(elsewhere, now))
            await self._node.hub.announce(*(Wake("control", run.id) for run in elsewhere))


@dataclass(frozen=True, slots=True, eq=False)
class AttachedConnections:
    """Connections of attached runs: such a run lives as long as its client is connected."""

    _node: NodeContext
    _feed: RunFeed
    _supervisor: Supervisor
    _canceller: RunCanceller

    @asynccontextmanager
    async def attached(self, rid: RunId) -> AsyncIterator[None]:
        """The connection of one attached run; enter it without an await after `runs.submit`."""
        async with self.open() as add:
            add(rid)
            yield

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Callable[[RunId], None]]:
        """A client's connection; yields the function that adds an attached run to it, to be called without an await
        after `runs.submit`. Leaving cancels its runs; those of this node stop at once."""
        rids: list[RunId] = []
        try:
            yield rids.append
        finally:
            for rid in rids:
                self._node.local.disconnect(rid)
                self._supervisor.stop(rid, cancelled("disconnected"))
            with anyio.move_on_after(self._node.settings.final_save, shield=True), suppress(StorageError):
                for rid in rids:
                    await self._disconnected(rid)
                hidden = await self._node.store.read(lambda tx: bool(tx.deleted_sessions(1)))
                if hidden:
                    self._node.hub.signals.fire(ERASE)  # a temporary session goes with its client

    async def _disconnected(self, rid: RunId) -> None:
        run = await self._node.store.read(lambda tx: tx.run(rid))
        if run is None or not run.is_open:
            return
        if self._feed.is_sealed(rid):  # it has ended and only has to be settled: nobody cancelled it
            await self._node.wait_until_ended(rid, self._node.settings.cancel_wait)
            return
        with suppress(NotFoundError):  # its session was deleted meanwhile, which requested its end
            await self._canceller.cancel(rid, run.owner, "disconnected")
