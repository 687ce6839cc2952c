"""Reads that never show an orphaned run (one whose process is gone) as running: such runs are recovered and settled
before the read returns. What is done with them: `core.recovery_rules`; that simultaneous readers make one attempt:
`engine.recovery`."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from holdfast.core.errors import StorageError
from holdfast.core.ids import OwnerId, RunId, SessionId
from holdfast.core.run import Run
from holdfast.engine.node_context import NodeContext
from holdfast.engine.recovery import RunRecovery
from holdfast.engine.run_feed import RunFeed
from holdfast.engine.transactions.row_access import get_run
from holdfast.ports.store import Tx

T = TypeVar("T")

_Unsettled = tuple[float, Sequence[Run], Sequence[Run]]
"""The store's time, the open runs of a session, and those whose recovery is pending."""


@dataclass(frozen=True, slots=True, eq=False)
class SettlingReader:
    _node: NodeContext
    _feed: RunFeed
    _recovery: RunRecovery

    async def read_list(self, read: Callable[[Tx], T], runs_in: Callable[[T], Sequence[Run]]) -> T:
        """Read a list; if it shows orphaned runs, end them and read it again."""
        now, found = await self._node.store.read(lambda tx: (tx.now, read(tx)))
        opened = [run for run in runs_in(found) if run.is_open]
        orphans = self._recovery.find_orphans(runs_in(found), now)
        if not await self._wait_for_ending(opened) and not orphans and not self._released(opened):
            return found
        with suppress(StorageError):  # the rows can still be shown; the sweeper tries again
            await self._recovery.resolve_orphans(orphans)
        return await self._node.store.read(read)

    async def read_run(self, rid: RunId, owner: OwnerId) -> Run:
        """A run's row, after settling its session if there is anything to settle."""

        def load(tx: Tx) -> tuple[Run, _Unsettled | None]:
            run = get_run(tx, rid, owner)
            return run, _unsettled(tx, run.session_id) if run.is_open or run.is_pending else None

        run, found = await self._node.store.read(load)
        if found is None or not await self._settle(found):
            return run
        return await self._node.store.read(lambda tx: get_run(tx, rid, owner))

    async def settle_session(self, sid: SessionId) -> None:
        """Before a session is shown: end its orphaned runs and look for output that was not readable before."""
        await self._settle(await self._node.store.read(lambda tx: _unsettled(tx, sid)))

    async def _settle(self, found: _Unsettled) -> bool:
        """Whether a row may have changed."""
        now, opened, pending = found
        waited, orphans = await self._wait_for_ending(opened), self._recovery.find_orphans(opened, now)
        try:
            await self._recovery.resolve_orphans(orphans)
            for run in pending:
                await self._recovery.attempt_pending(run, now)
        except StorageError:
            pass  # the rows can still be shown; the sweeper tries again
        return waited or bool(orphans or pending) or self._released(opened)

    async def _wait_for_ending(self, runs: Sequence[Run]) -> bool:
        """Wait for runs that another reader is ending or whose end a subscriber has seen; whether there were any."""
        about = [run.id for run in runs if self._node.local.is_ending(run.id) or self._feed.is_sealed(run.id)]
        for rid in about:
            await self._node.wait_until_ended(rid, self._node.settings.fence_wait)
        return bool(about)

    def _released(self, runs: Sequence[Run]) -> bool:
        """Whether this node has finished one of the runs since it was read: a subscriber may have seen its end."""
        node, executing = self._node.identity.node, self._node.local.executing
        return any(run.lease is not None and run.lease.holder == node and run.id not in executing for run in runs)


def _unsettled(tx: Tx, sid: SessionId) -> _Unsettled:
    return tx.now, tx.open_runs(sid), tx.pending_runs(100, sid)
