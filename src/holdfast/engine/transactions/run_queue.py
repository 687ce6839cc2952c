"""The queue: which queued runs are claimed, in which order, and their leases. Each function is one transaction. The
next run is claimed however the one before it ended, failed and cancelled included; how many may wait is decided in
`engine.transactions.accept`.

A session executes one run at a time. Runs are claimed by rank, then id; within a session a run in the tree goes first
(`_CLAIMABLE` in storage/sql/runs.py). `accept.submit` gives ranks: later turns queue behind earlier ones, an
interrupting one goes ahead.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from holdfast.core import message_tree as tree
from holdfast.core.ids import RunId
from holdfast.core.lease import NodeIdentity, is_live
from holdfast.core.run import Intent, Run, after, step
from holdfast.engine.transactions.approvals import RESTARTED, deny_open
from holdfast.engine.transactions.row_access import get_message, put_run, put_session
from holdfast.ports.store import Tx


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    run: Run
    may_have_written: bool  # Whether an earlier execution may have: if its journal is empty, output was lost


def claim(tx: Tx, me: NodeIdentity, limit: int, connected: Collection[RunId] = ()) -> tuple[list[ClaimedRun], bool]:
    """Claim up to `limit` queued runs; also whether there may be more. A run outside the tree joins it at the head.
    `connected`: attached runs whose client is connected to this node."""
    claimed: list[ClaimedRun] = []
    found = tx.claimable_runs(limit)
    for queued in found:
        if queued.lifetime == "attached" and not _is_connected(queued, me, tx.now, connected):
            continue  # its client is gone; recovery ends it
        run = queued if queued.in_tree else _join(tx, queued)
        claimed.append(ClaimedRun(put_run(tx, with_lease(run, me, tx.now)), run.started_at is not None))
    return claimed, len(found) == limit


def with_lease(run: Run, me: NodeIdentity, now: float) -> Run:
    """The queued run as this node claims it."""
    status, started_at = after(run, "claim"), run.started_at or now
    return replace(run, status=status, epoch=run.epoch + 1, lease=me.lease(now), started_at=started_at)


def _is_connected(run: Run, me: NodeIdentity, now: float, connected: Collection[RunId]) -> bool:
    if not is_live(run.connection, me.incarnation, now):
        return False
    return run.connection is None or run.connection.holder != me.node or run.id in connected


def _join(tx: Tx, run: Run) -> Run:
    session = tx.session(run.session_id)
    assert session is not None  # a session's runs are erased with it
    tx.put_message(replace(get_message(tx, run.user_message_id), parent_id=session.head, in_tree=True))
    tx.put_message(replace(get_message(tx, run.message_id), in_tree=True))
    put_session(tx, tree.append(session, run.message_id))
    return replace(run, in_tree=True)


def unclaim(tx: Tx, claimed: Run, *, can_park: bool) -> None:
    """Requeue a run of a node that is stopping, unless somebody has claimed it since. `claimed`: without `started_at`
    if nothing of it can be in the journal."""
    run = tx.run(claimed.id)
    if run is not None and run.status == "running" and run.epoch == claimed.epoch:
        if not can_park:
            deny_open(tx, run, RESTARTED)  # stored when the stop came: nothing waits for the answer
        put_run(tx, replace(step(run, "requeue"), lease=None, started_at=claimed.started_at))


def find_unstarted(tx: Tx, me: NodeIdentity, rids: Iterable[RunId]) -> list[ClaimedRun]:
    """Which of these runs were claimed when they were accepted."""
    runs = [run for rid in rids if (run := tx.run(rid)) is not None and run.status == "running" and run.epoch == 1]
    mine = [run for run in runs if run.lease is not None and run.lease.holder == me.node]
    return [ClaimedRun(run, may_have_written=False) for run in mine]


def renew(tx: Tx, me: NodeIdentity, rids: Collection[RunId], connections: Collection[RunId]) -> tuple[float, list[Run]]:
    """Extend the leases that this node still holds. Returns the store's time and the rows of those runs."""
    runs = tx.renew_leases(me.lease(tx.now), rids, connections)  # without a change row: nobody subscribes to heartbeats
    return tx.now, [run for run in runs if run.id in rids and run.lease is not None and run.lease.holder == me.node]


def release(tx: Tx, me: NodeIdentity, left: Run, intent: Intent | None) -> None:
    """Give up the lease of a run that could not be ended; recovery seals it, as `intent` says if there is one. `left`:
    the run as its execution left it, without `started_at` if nothing of it can be in the journal."""
    run = tx.run(left.id)
    if run is None or not run.is_open or run.epoch != left.epoch or run.lease is None or run.lease.holder != me.node:
        return
    put_run(tx, replace(run, lease=None, intent=run.intent or intent, started_at=left.started_at))
