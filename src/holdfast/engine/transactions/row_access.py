"""Finds and writes single rows, with the change-feed entry that belongs to each kind."""

from dataclasses import replace

from holdfast.core import session as tree
from holdfast.core.errors import NotFoundError, VersionMismatchError
from holdfast.core.ids import MessageId, OwnerId, RunId, SessionId
from holdfast.core.run import Intent, Run
from holdfast.core.session import Message, Session
from holdfast.ports.store import Approval, Change, Tx

SUPERSEDED = Intent("cancelled", reason="superseded")
DISCONNECTED = Intent("cancelled", reason="disconnected")


def get_session(tx: Tx, sid: SessionId, owner: OwnerId, if_version: int | None = None) -> Session:
    session = tx.session(sid)
    if session is None or session.owner != owner or session.deleted_at is not None:
        raise NotFoundError("session", sid)
    if if_version is not None and session.version != if_version:
        raise VersionMismatchError(if_version, session.version)
    return session


def get_run(tx: Tx, rid: RunId, owner: OwnerId) -> Run:
    run = tx.run(rid)
    if run is None or run.owner != owner:
        raise NotFoundError("run", rid)
    session = tx.session(run.session_id)
    if session is None or session.deleted_at is not None:
        raise NotFoundError("run", rid)
    return run


def get_message(tx: Tx, mid: MessageId) -> Message:
    message = tx.message(mid)
    if message is None:
        raise NotFoundError("message", mid)
    return message


def put_run(tx: Tx, run: Run) -> Run:
    tx.put_run(run)
    tx.add_change(Change("run.changed", run.owner, run.session_id, run.id, status=run.status))
    return run


def put_session(tx: Tx, session: Session) -> Session:
    session = replace(session, version=session.version + 1)
    tx.put_session(session)
    tx.add_change(Change("session.changed", session.owner, session.id))
    return session


def put_approval(tx: Tx, approval: Approval) -> None:
    tx.put_approval(approval)
    status = approval.decision or "waiting"
    tx.add_change(Change("approval.changed", approval.owner, approval.session_id, approval.run_id, approval.id, status))


def set_intent(tx: Tx, run: Run, intent: Intent) -> Run:
    """Record how an open run is to end; the first intent stands."""
    return run if run.intent is not None else put_run(tx, replace(run, intent=intent))


def stop_hidden(tx: Tx, session: Session) -> tuple[Run, ...]:
    """Request the cancel of every run whose message is no longer on the shown branch."""
    return tuple(
        set_intent(tx, run, SUPERSEDED)
        for run in tx.open_runs(session.id)
        if run.in_tree and not tree.on_path(tx, session, run.message_id)
    )
