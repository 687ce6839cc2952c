"""Finds and writes single rows, with the change-feed entry that belongs to each kind, and decides which writes are
activity and move `updated_at` (how often finished tools do: `touch_every` in `engine.settings`). An edit with a version
that is no longer the session's raises VersionMismatchError here; without a version the last edit wins."""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.core.errors import NotFoundError, VersionMismatchError
from holdfast.core.ids import MessageId, OwnerId, RunId, SessionId
from holdfast.core.run import Run
from holdfast.core.session import Message, Session
from holdfast.ports.store import Approval, Change, Tx


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


def open_turns(tx: Tx, sid: SessionId) -> Sequence[Run]:
    """The open runs of the session, without those that wait for the journal of another run: they keep nobody busy."""
    return [run for run in tx.open_runs(sid) if not run.is_taken]


def put_run(tx: Tx, run: Run) -> Run:
    tx.put_run(run)
    tx.add_change(Change("run.changed", run.owner, run.session_id, run.id, status=run.status))
    return run


def put_session(tx: Tx, session: Session, updated_at: float | None = None) -> Session:
    moved = session.updated_at if updated_at is None else updated_at
    session = replace(session, version=session.version + 1, updated_at=moved)
    tx.put_session(session)
    tx.add_change(Change("session.changed", session.owner, session.id))
    return session


def put_active_session(tx: Tx, session: Session) -> Session:
    """`put_session` for an activity, which moves `updated_at`: a turn was accepted or settled. A rename or a pin is not
    an activity."""
    return put_session(tx, session, tx.now)


def touch_session(tx: Tx, sid: SessionId) -> None:
    """A finished tool is activity. The version stays: nothing that anybody edits has changed."""
    session = tx.session(sid)
    if session is not None and session.deleted_at is None:
        tx.put_session(replace(session, updated_at=tx.now))
        tx.add_change(Change("session.changed", session.owner, sid))


def put_approval(tx: Tx, approval: Approval) -> None:
    tx.put_approval(approval)
    status = approval.decision or "waiting"
    tx.add_change(Change("approval.changed", approval.owner, approval.session_id, approval.run_id, approval.id, status))
