"""Starts subscriptions: to the events of one run (`run_feed`) and to the changes of all sessions (`change_feed`). What
a late or reconnecting reader gets is decided there."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from holdfast.core.errors import JournalPrunedError
from holdfast.core.events import Entry
from holdfast.core.ids import LOCAL, OwnerId, RunId
from holdfast.engine.change_feed import ChangeSubscription
from holdfast.engine.node_context import NodeContext
from holdfast.engine.run_feed import RunFeed, RunSubscription
from holdfast.engine.settling_reader import SettlingReader
from holdfast.engine.transactions.row_access import get_run


@dataclass(frozen=True, slots=True, eq=False)
class Subscriptions:
    _node: NodeContext
    _feed: RunFeed
    _reader: SettlingReader

    @asynccontextmanager
    async def watch(self, rid: RunId, after: int = 0, owner: OwnerId = LOCAL) -> AsyncIterator[RunSubscription]:
        """Every event of the run after the cursor, then live. A subscriber costs a cursor; there may be any number."""
        subscription = await self.subscribe(rid, after, owner)
        try:
            yield subscription
        finally:
            subscription.close()

    async def subscribe(self, rid: RunId, after: int = 0, owner: OwnerId = LOCAL) -> RunSubscription:
        """The same, to be closed by the caller."""
        if self._feed.tail(rid) is not None:  # executed here, so it is not orphaned
            run = await self._node.store.read(lambda tx: get_run(tx, rid, owner))
        else:
            run = await self._reader.read_run(rid, owner)
        if run.pruned:
            raise JournalPrunedError(rid)
        return await self._feed.subscribe(rid, after)

    async def read_page(self, rid: RunId, after: int = 0, owner: OwnerId = LOCAL) -> Sequence[Entry]:
        """One page of the committed events after the cursor, without waiting for more."""
        async with self.watch(rid, after, owner) as subscription:
            return () if subscription.at_end else await self._feed.read_journal(rid, after)

    def watch_changes(self, after: str | None, owner: OwnerId = LOCAL) -> ChangeSubscription:
        """The change feed over all sessions of the owner, from a cursor it gave out; None starts now."""
        return ChangeSubscription(self._node.store, self._node.hub.signals, self._feed, owner, after)
