"""Questions of runs to a person: ask, park while waiting, decide, expire. Each function is one transaction."""

from dataclasses import replace

from holdfast.core.errors import AlreadyDecidedError, NotAllowedError, NotFoundError
from holdfast.core.events import ApprovalRequested, Decision
from holdfast.core.ids import ApprovalId, OwnerId, RunId
from holdfast.core.run import Run, step
from holdfast.engine.transactions.row_access import get_run, put_approval, put_run
from holdfast.ports.store import Approval, Tx


def ask(tx: Tx, rid: RunId, epoch: int, asked: ApprovalRequested) -> bool:
    """Store a question before anybody is shown it. False if the run is to end or is no longer ours. A repeat changes
    nothing: the question may have been answered since."""
    run = tx.run(rid)
    if run is None or run.epoch != epoch or run.intent is not None or run.status != "running":
        return False
    if tx.approval(asked.approval_id) is not None:
        return True
    for old in tx.open_approvals(rid):  # stored by an execution that crashed before journalling it
        put_approval(tx, replace(old, decision="deny", decided_at=tx.now))
    question = (asked.call_id, asked.name, asked.args, asked.reason)
    put_approval(tx, Approval(asked.approval_id, run.owner, run.id, run.session_id, *question, tx.now))
    return True


def park(tx: Tx, rid: RunId, epoch: int, aid: ApprovalId, *, keep_lease: bool) -> Run | None:
    """Let the run wait for a person, or go on if the answer is there. None if it is to end or is no longer ours."""
    run, approval = tx.run(rid), tx.approval(aid)
    if run is None or approval is None:
        return None
    if run.epoch != epoch or run.intent is not None:
        return None
    if run.status == "waiting" and keep_lease:
        return run  # a repeat: the commit before was in doubt
    if run.status != "running":
        return None
    if approval.decision is None:
        return put_run(tx, replace(step(run, "park"), lease=run.lease if keep_lease else None))
    return run if keep_lease else put_run(tx, replace(step(run, "requeue"), lease=None))


def decide(tx: Tx, rid: RunId, aid: ApprovalId, owner: OwnerId, decision: Decision, note: str | None = None) -> Run:
    """Answer a question; the first answer counts. A parked run is requeued; one that kept its task goes on."""
    run = get_run(tx, rid, owner)
    approval = tx.approval(aid)
    if approval is None or approval.run_id != rid:
        raise NotFoundError("approval", aid)
    if approval.decision is not None:
        raise AlreadyDecidedError(aid, approval.decision)
    if run.intent is not None:
        raise NotAllowedError("answer", "the run is being cancelled")
    put_approval(tx, replace(approval, decision=decision, decided_at=tx.now, note=note))
    if run.status != "waiting":
        return run
    return put_run(tx, step(run, "decide" if run.lease is None else "answer"))


def expire(tx: Tx, asked_before: float, note: str, limit: int) -> list[Run]:
    """Deny questions asked before `asked_before`, with `note` as the reason."""
    denied = []
    for approval in tx.undecided_approvals(asked_before, limit):
        run = tx.run(approval.run_id)
        if run is None or not run.is_open:
            put_approval(tx, replace(approval, decision="deny", decided_at=tx.now))
        elif run.intent is None:
            denied.append(decide(tx, run.id, approval.id, run.owner, "deny", note))
    return denied
