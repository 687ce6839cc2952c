"""Edits of sessions. Each function is one transaction, which also requests the cancel of the runs it hides."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.core import message_tree as tree
from holdfast.core.errors import NotAllowedError, SessionBusyError
from holdfast.core.ids import MessageId, OwnerId, RunId, SessionId
from holdfast.core.memory_ledger import OFF
from holdfast.core.parts import Json
from holdfast.core.run import Intent, Run
from holdfast.core.session import Compaction, Message, Session
from holdfast.engine.transactions import memory
from holdfast.engine.transactions.cancel_requests import set_intent, stop_hidden
from holdfast.engine.transactions.row_access import get_run, get_session, put_session
from holdfast.ports.store import Change, RunQuery, Tx

_ALL = 1_000_000_000
_SETTING_FIELDS = frozenset({"memory", "cwd", "agent_options"})
"""Settings of a session that the API has fields for."""


@dataclass(frozen=True, slots=True)
class Edited:
    session: Session
    stop: tuple[Run, ...] = ()  # Runs whose cancel was requested in the same transaction


def create(tx: Tx, session: Session) -> Session:
    tx.put_session(session)
    memory.follow(tx, session)
    tx.add_change(Change("session.changed", session.owner, session.id))
    return session


def find_created(tx: Tx, sid: SessionId, owner: OwnerId) -> Session | None:
    """The session that an earlier call with the same idempotency key created."""
    session = tx.session(sid)
    if session is not None and session.deleted_at is not None:
        raise NotAllowedError(
            "repeat the call", "the session made with this idempotency key was deleted; use a new key"
        )
    return None if session is None else get_session(tx, sid, owner)


def with_settings(fields: dict[str, Any], settings: Json) -> dict[str, Any]:
    """Moves the settings that may be given as fields of their own into the settings; None removes one."""
    given = {name: value for name, value in fields.items() if name in _SETTING_FIELDS}
    if not given:
        return fields
    rest = {name: value for name, value in fields.items() if name not in given}
    kept = {name: value for name, value in (settings or {}).items() if name not in given}
    named = {name: value for name, value in given.items() if value is not None}
    return {**rest, "settings": {**kept, **named} or None}


def undo(tx: Tx, sid: SessionId, owner: OwnerId, if_version: int | None) -> Edited:
    return _moved(tx, tree.undo(tx, get_session(tx, sid, owner, if_version)))


def redo(tx: Tx, sid: SessionId, owner: OwnerId, if_version: int | None) -> Edited:
    return _moved(tx, tree.redo(get_session(tx, sid, owner, if_version)))


def truncate(tx: Tx, sid: SessionId, owner: OwnerId, if_version: int | None, last: MessageId) -> Edited:
    return _moved(tx, tree.truncate(tx, get_session(tx, sid, owner, if_version), last))


def _moved(tx: Tx, session: Session) -> Edited:
    session = put_session(tx, session)
    return Edited(session, stop_hidden(tx, session, tx.open_runs(session.id)))


def amend(
    tx: Tx,
    sid: SessionId,
    owner: OwnerId,
    if_version: int | None,
    fields: dict[str, Any],
    show: MessageId | None = None,
) -> Edited:
    """Rename, pin, tag …: not an activity, so `updated_at` stays. `show` also switches to that message's branch."""
    session = get_session(tx, sid, owner, if_version)
    if "title" in fields:
        fields = {**fields, "titled_by": "person"}
    session = replace(session, **with_settings(fields, fields.get("settings", session.settings)))
    if memory.named_provider(session.settings) == OFF:
        memory.discard(tx, sid)
    return Edited(put_session(tx, session)) if show is None else _moved(tx, tree.switch(tx, session, show))


def title(tx: Tx, sid: SessionId, owner: OwnerId, text: str) -> Session:
    """Set a generated title unless a person has set one, also while it was being generated."""
    session = get_session(tx, sid, owner)
    if session.titled_by == "person":
        return session
    return put_session(tx, replace(session, title=text, titled_by="model"))


def fork(
    tx: Tx, sid: SessionId, owner: OwnerId, last: MessageId, new_sid: SessionId, new_ids: Sequence[MessageId]
) -> Session:
    """A copy of the shown path up to `last`, with `new_ids` as the ids of its messages."""
    session = get_session(tx, sid, owner)
    fresh = iter(new_ids)
    new = replace(
        session,
        id=new_sid,
        created_at=tx.now,
        updated_at=tx.now,
        previous_session_id=None,
        settings=_without_keep(session.settings),
        pinned=False,
        archived=False,
        head=None,
        redo=(),
        version=1,
    )
    new, copies = tree.fork(tx, session, last, new, lambda: next(fresh))
    return adopt(tx, new, copies, ())


def _without_keep(settings: Json) -> Json:
    """A fork of a temporary session is kept."""
    return (
        {name: value for name, value in settings.items() if name != "keep"} if isinstance(settings, dict) else settings
    )


def adopt(tx: Tx, session: Session, messages: Sequence[Message], compactions: Sequence[Compaction]) -> Session:
    """Store a whole session from elsewhere under unused ids. Its `updated_at` stays."""
    create(tx, session)
    for message in messages:
        tx.put_message(message)
    for compaction in compactions:
        tx.put_compaction(compaction)
    return session


@dataclass(frozen=True, slots=True)
class Merged:
    """What an import added to a session: its number of new messages, or why the session was left alone."""

    session: Session
    is_new: bool = False
    added: int = 0
    refusal: str | None = None


def merge(tx: Tx, session: Session, messages: Sequence[Message], compactions: Sequence[Compaction]) -> Merged:
    """Store a session under derived ids, or the messages that it lacks. Nothing stored is changed: not its title or
    flags, nor a message. The head moves only if it is where the last import left it."""
    stored = tx.session(session.id)
    if stored is None:
        return Merged(adopt(tx, session, messages, compactions), is_new=True, added=len(messages))
    if stored.deleted_at is not None:
        return Merged(stored, refusal="it was deleted a moment ago; import it again later")
    new = [message for message in messages if tx.message(message.id) is None]
    if not new:
        return Merged(stored)
    if tx.open_runs(stored.id):
        return Merged(stored, refusal="it is being answered; import it again later")
    known = tx.compactions(stored.id)
    for message in new:
        tx.put_message(message)
    for compaction in compactions:
        if compaction.message_id not in known:
            tx.put_compaction(compaction)
    if _left_by_import(stored):
        stored = replace(stored, head=session.head, redo=(), settings={**stored.settings, **session.settings})
    return Merged(
        put_session(tx, replace(stored, updated_at=max(stored.updated_at, session.updated_at))), added=len(new)
    )


def _left_by_import(session: Session) -> bool:
    origin = session.settings.get("origin") if isinstance(session.settings, dict) else None
    return isinstance(origin, dict) and origin.get("head") == session.head


def append(tx: Tx, sid: SessionId, owner: OwnerId, if_version: int | None, messages: Sequence[Message]) -> Edited:
    """Add messages without runs below the head, in order. Refused while a run is open: its answer is the head."""
    session = get_session(tx, sid, owner, if_version)
    if others := tx.open_runs(sid):
        raise SessionBusyError(sid, others[0].id)
    for message in messages:
        tx.put_message(replace(message, parent_id=session.head, created_at=min(message.created_at, tx.now)))
        session = tree.append(session, message.id)
    return Edited(put_session(tx, session))


def clear(tx: Tx, sid: SessionId, owner: OwnerId, if_version: int | None) -> Edited:
    """Erase all messages. Open runs end without a message; queued ones, which are not in the tree, stay."""
    session = get_session(tx, sid, owner, if_version)
    stop = []
    for run in tx.runs(RunQuery(owner, sid, limit=_ALL)):
        if not run.is_open:
            tx.queue_purges([run.id])
            tx.drop_run(run.id)
        elif run.in_tree:
            stop.append(set_intent(tx, run, Intent("cancelled", reason="cleared")))
    memory.clear(tx, sid)
    tx.drop_messages(sid)
    return Edited(put_session(tx, tree.clear(session)), tuple(stop))


def erase_turn(tx: Tx, rid: RunId, owner: OwnerId) -> Run:
    """Erase a run with its question, answer and journal. The two messages stay, empty, because others may be below; the
    session's only run takes the session with it."""
    run = get_run(tx, rid, owner)
    if run.is_open:
        raise NotAllowedError("delete the run", "it is still open; cancel it first")
    session = get_session(tx, run.session_id, owner)
    if all(other.id == rid for other in tx.runs(RunQuery(owner, session.id, limit=2))):
        delete(tx, session.id, owner, None)
        return run
    for mid in (run.user_message_id, run.message_id):
        message = tx.message(mid)
        if message is not None:
            tx.put_message(replace(message, parts=(), run_id=None, key=None, error=None, last_seq=0))
    tx.queue_purges([rid])
    tx.drop_run(rid)
    put_session(tx, session)
    return run


def delete(tx: Tx, sid: SessionId, owner: OwnerId, if_version: int | None, forget: bool = False) -> Edited:
    """Hide the session; `purge` erases it later. With `forget` its turns are not committed but deleted from memory."""
    session = get_session(tx, sid, owner, if_version)
    stop = tuple(set_intent(tx, run, Intent("cancelled", reason="deleted")) for run in tx.open_runs(sid))
    session = replace(session, deleted_at=tx.now, version=session.version + 1)
    tx.put_session(session)
    memory.delete(tx, sid, forget)
    tx.add_change(Change("session.deleted", owner, sid))
    return Edited(session, stop)


def purge(tx: Tx, sid: SessionId, remembers: bool = False) -> bool:
    """Erase a deleted session, unless a run of it is open or (`remembers`) its turns are not yet in memory."""
    session = tx.session(sid)
    if session is None or session.deleted_at is None or tx.open_runs(sid):
        return False
    if remembers and not memory.is_over(tx, sid):
        return False
    tx.queue_purges([run.id for run in tx.runs(RunQuery(session.owner, sid, limit=_ALL))])
    tx.drop_session(sid)
    return True


def compact(tx: Tx, compaction: Compaction) -> Session:
    """Add a record beside the tree. Raises NotFoundError if the session or message was deleted meanwhile."""
    session = get_session(tx, compaction.session_id, compaction.owner)
    tree.node(tx, session, compaction.message_id)
    tx.put_compaction(compaction)
    return put_session(tx, session)


def touch(tx: Tx, sid: SessionId) -> None:
    """A finished tool is activity. The version stays: nothing that anybody edits has changed."""
    session = tx.session(sid)
    if session is not None and session.deleted_at is None:
        tx.put_session(replace(session, updated_at=tx.now))
        tx.add_change(Change("session.changed", session.owner, sid))
