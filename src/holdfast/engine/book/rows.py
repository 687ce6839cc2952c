"""Finding and writing rows, each kind in one place, and who is writing."""

from holdfast.core import session as tree
from holdfast.core.errors import (
    VersionMismatch,
    message_not_found,
    run_not_found,
    session_not_found,
)
from holdfast.core.ids import MessageId, NodeId, OwnerId, RunId, SessionId
from holdfast.core.run import Intent, Lease, Run
from holdfast.core.session import Message, Session
from holdfast.core.values import dataclass, replace
from holdfast.ports import Approval, Tx

SUPERSEDED = Intent("cancelled", reason="superseded")
DISCONNECTED = Intent("cancelled", reason="disconnected")


@dataclass(frozen=True, slots=True)
class Me:
    """Who claims, and for how long: `lease_time` is None where the data directory's lock is the lease."""

    node: NodeId
    lease_time: float | None

    def lease(self, now: float) -> Lease:
        return Lease(self.node, None if self.lease_time is None else now + self.lease_time)

    @property
    def incarnation(self) -> NodeId | None:
        return self.node if self.lease_time is None else None


def the_session(tx: Tx, sid: SessionId, owner: OwnerId, if_version: int | None = None) -> Session:
    session = tx.session(sid)
    if session is None or session.owner != owner or session.deleted_at is not None:
        raise session_not_found(sid)
    if if_version is not None and session.version != if_version:
        raise VersionMismatch(if_version, session.version)
    return session


def the_run(tx: Tx, rid: RunId, owner: OwnerId) -> Run:
    run = tx.run(rid)
    if run is None or run.owner != owner:
        raise run_not_found(rid)
    session = tx.session(run.session_id)
    if session is None or session.deleted_at is not None:
        raise run_not_found(rid)
    return run


def the_message(tx: Tx, mid: MessageId) -> Message:
    message = tx.message(mid)
    if message is None:
        raise message_not_found(mid)
    return message


def put_run(tx: Tx, run: Run) -> Run:
    tx.put_run(run)
    tx.add_change("run.changed", run.owner, run.session_id, run.id, status=run.status)
    return run


def put_session(tx: Tx, session: Session) -> Session:
    session = replace(session, version=session.version + 1)
    tx.put_session(session)
    tx.add_change("session.changed", session.owner, session.id)
    return session


def put_approval(tx: Tx, approval: Approval) -> None:
    tx.put_approval(approval)
    tx.add_change(
        "approval.changed",
        approval.owner,
        approval.session_id,
        approval.run_id,
        approval.id,
        approval.decision or "waiting",
    )


def intend(tx: Tx, run: Run, intent: Intent) -> Run:
    """Say how an open run is to end. The first word stands."""
    return run if run.intent is not None else put_run(tx, replace(run, intent=intent))


def stop_hidden(tx: Tx, session: Session) -> tuple[Run, ...]:
    """Request the cancel of every run whose message the shown branch no longer goes through."""
    return tuple(
        intend(tx, run, SUPERSEDED)
        for run in tx.open_runs(session.id)
        if run.in_tree and not tree.on_path(tx, session, run.message_id)
    )
