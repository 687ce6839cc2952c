"""A run while it is executed: claimed, asking, parked, decided, let go. Each function is one transaction."""

from collections.abc import Collection, Iterable

from holdfast.core import session as tree
from holdfast.core.errors import AlreadyDecided, NotAllowed, NotFound
from holdfast.core.events import ApprovalRequested, Decision
from holdfast.core.ids import ApprovalId, OwnerId, RunId, SessionId
from holdfast.core.run import Intent, Run, is_live, step
from holdfast.core.values import replace
from holdfast.engine.book.rows import Me, intend, put_approval, put_run, put_session, the_message, the_run
from holdfast.ports import Approval, Tx


def claim(tx: Tx, me: Me, limit: int, connected: Collection[RunId] = ()) -> tuple[list[Run], bool]:
    """Take up to `limit` queued runs, and say whether there may be more; those that waited outside the tree join it
    here, at the head of this moment."""
    claimed: list[Run] = []
    found = tx.claimable_runs(limit)
    for queued in found:
        if queued.lifetime == "attached" and not _connected(queued, me, tx.now, connected):
            continue  # its client is gone: recovery ends it
        run = queued if queued.in_tree else _join(tx, queued)
        lease, started_at = me.lease(tx.now), run.started_at or tx.now
        run = replace(step(run, "claim"), epoch=run.epoch + 1, lease=lease, started_at=started_at)
        claimed.append(put_run(tx, run))
    return claimed, len(found) == limit


def _connected(run: Run, me: Me, now: float, connected: Collection[RunId]) -> bool:
    if not is_live(run.connection, me.incarnation, now):
        return False
    return run.connection is None or run.connection.holder != me.node or run.id in connected


def _join(tx: Tx, run: Run) -> Run:
    session = tx.session(run.session_id)
    assert session is not None  # runs go with their session
    tx.put_message(replace(the_message(tx, run.user_message_id), parent_id=session.head, in_tree=True))
    tx.put_message(replace(the_message(tx, run.message_id), in_tree=True))
    put_session(tx, tree.append(session, run.message_id))
    return replace(run, in_tree=True)


def unclaim(tx: Tx, runs: Iterable[Run]) -> None:
    """Claimed by a node that is stopping: back into the queue, as if nothing had been."""
    for claimed in runs:
        run = tx.run(claimed.id)
        if run is not None and run.status == "running" and run.epoch == claimed.epoch:
            put_run(tx, replace(step(run, "requeue"), lease=None))


def renew(tx: Tx, me: Me, rids: Collection[RunId], connections: Collection[RunId]) -> tuple[float, list[Run]]:
    """Prolong the leases that are still ours, and say how those runs now stand, by which clock; who is missing is
    lost."""
    runs = tx.renew(me.lease(tx.now), rids, connections)  # a heartbeat is no change that anybody wants to hear of
    return tx.now, [run for run in runs if run.id in rids and run.lease is not None and run.lease.holder == me.node]


def model_input(tx: Tx, run: Run, session: tree.Session) -> tree.ModelInput:
    """What the run's model is shown of the past, as it is at this moment: a compaction since counts."""
    history: list[tree.Message] = []
    if tx.message(run.user_message_id) is not None:
        history = tree.path(tx, session, run.user_message_id)
    return tree.model_input(history, tx.compactions(session.id))


def ask(tx: Tx, rid: RunId, epoch: int, asked: ApprovalRequested) -> bool:
    """Put the question where it can be answered, before anybody is shown it. False: the run was asked to end meanwhile,
    or is no longer ours."""
    run = tx.run(rid)
    if run is None or run.epoch != epoch or run.intent is not None or run.status != "running":
        return False
    for old in tx.open_approvals(rid):  # of a life that ended before its journal had the question: nobody waits for it
        put_approval(tx, replace(old, decision="deny", decided_at=tx.now))
    question = (asked.call_id, asked.name, asked.args, asked.reason)
    put_approval(tx, Approval(asked.approval_id, run.owner, run.id, run.session_id, *question, tx.now))
    return True


def park(tx: Tx, rid: RunId, epoch: int, aid: ApprovalId, *, keep_lease: bool) -> Run | None:
    """The run waits for a person; if the answer was quicker, it goes on. None: it was asked to end meanwhile, or is no
    longer ours."""
    run, approval = tx.run(rid), tx.approval(aid)
    if run is None or approval is None:
        return None
    if run.epoch != epoch or run.intent is not None or run.status != "running":
        return None
    if approval.decision is None:
        return put_run(tx, replace(step(run, "park"), lease=run.lease if keep_lease else None))
    return run if keep_lease else put_run(tx, replace(step(run, "requeue"), lease=None))


def decide(tx: Tx, rid: RunId, aid: ApprovalId, owner: OwnerId, decision: Decision, note: str | None = None) -> Run:
    """The first answer counts. A parked run goes back to the queue; one that kept its task goes on."""
    run = the_run(tx, rid, owner)
    approval = tx.approval(aid)
    if approval is None or approval.run_id != rid:
        raise NotFound("approval", aid)
    if approval.decision is not None:
        raise AlreadyDecided(aid, approval.decision)
    if run.intent is not None:
        raise NotAllowed("answer", "the run was asked to end, and its question with it")
    put_approval(tx, replace(approval, decision=decision, decided_at=tx.now, note=note))
    if run.status != "waiting":
        return run
    return put_run(tx, step(run, "decide" if run.lease is None else "answer"))


def expire(tx: Tx, asked_before: float, note: str, limit: int) -> list[Run]:
    """Questions that nobody answered in time are answered with deny, and it is said why."""
    gone = []
    for approval in tx.old_approvals(asked_before, limit):
        run = tx.run(approval.run_id)
        if run is None or not run.is_open:
            put_approval(tx, replace(approval, decision="deny", decided_at=tx.now))
        elif run.intent is None:
            gone.append(decide(tx, run.id, approval.id, run.owner, "deny", note))
    return gone


def touch(tx: Tx, sid: SessionId) -> None:
    """P6: a finished tool is activity. One row, and no version: nothing that anybody edits has changed."""
    session = tx.session(sid)
    if session is not None and session.deleted_at is None:
        tx.put_session(replace(session, updated_at=tx.now))
        tx.add_change("session.changed", session.owner, sid)


def request_cancel(tx: Tx, rid: RunId, owner: OwnerId, reason: str) -> Run:
    run = the_run(tx, rid, owner)
    return intend(tx, run, Intent("cancelled", reason=reason)) if run.is_open else run


def give_up(tx: Tx, me: Me, rid: RunId, epoch: int, intent: Intent | None) -> None:
    """Let go of a run without ending it: recovery seals it, as `intent` says where there is one."""
    run = tx.run(rid)
    if run is None or not run.is_open or run.epoch != epoch or run.lease is None or run.lease.holder != me.node:
        return
    put_run(tx, replace(run, lease=None, intent=run.intent or intent))
