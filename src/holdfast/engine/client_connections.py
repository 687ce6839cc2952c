"""Connections of attached runs: such a run lives as long as its client is connected, and is cancelled when the client
leaves. When a client counts as gone: `server.event_stream`; after its node is gone: `core.recovery_rules`."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio

from holdfast.core.errors import NotFoundError, StorageError
from holdfast.core.ids import RunId
from holdfast.engine.node_context import NodeContext
from holdfast.engine.run_feed import RunFeed
from holdfast.engine.signals import ERASE
from holdfast.engine.stop_reasons import cancelled
from holdfast.engine.supervisor import Supervisor


@dataclass(frozen=True, slots=True, eq=False)
class AttachedConnections:
    _node: NodeContext
    _feed: RunFeed
    _supervisor: Supervisor

    @asynccontextmanager
    async def attached(self, rid: RunId) -> AsyncIterator[None]:
        """The connection of one attached run; enter it without an await after `runs.submit`."""
        try:
            yield
        finally:
            await self._leave([rid])

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Callable[[RunId], None]]:
        """Opens the connection of a client. Yields a function that adds an attached run to it; call it after
        `runs.submit`, without an await in between. Leaving the block cancels the runs; those of this node stop at
        once."""
        rids: list[RunId] = []
        try:
            yield rids.append
        finally:
            await self._leave(rids)

    async def _leave(self, rids: Sequence[RunId]) -> None:
        for rid in rids:
            self._node.local.disconnect(rid)
        # A run that has ended here by itself is only to be settled, which is its executor's to do.
        unended = [rid for rid in rids if not self._feed.is_sealed(rid) and not self._node.local.settled_here(rid)]
        for rid in unended:
            self._supervisor.stop(rid, cancelled("disconnected"))
        if unended:
            with anyio.move_on_after(self._node.settings.final_save, shield=True), suppress(StorageError):
                for rid in unended:
                    await self._disconnected(rid)
        if self._node.local.take_discarded(rids):
            self._node.hub.signals.fire(ERASE)  # a temporary session goes with its client

    async def _disconnected(self, rid: RunId) -> None:
        if await self._supervisor.wait_until_settled(rid):
            return
        run = await self._node.store.read(lambda tx: tx.run(rid))
        if run is None or not run.is_open:
            return
        if self._feed.is_sealed(rid):  # it has ended by itself and only has to be settled
            await self._node.wait_until_ended(rid, self._node.settings.cancel_wait)
            return
        with suppress(NotFoundError):  # its session was deleted meanwhile, which requested its end
            await self._supervisor.cancel(rid, run.owner, "disconnected")
