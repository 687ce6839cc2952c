"""Edits of sessions. Each function is one transaction, which also requests the cancel of the runs it hides. Of two
parallel edits the first wins if the client sent the session's version (`row_access.get_session`: the other is refused);
without one, as in the page, both are applied and the last wins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.core import chat_settings
from holdfast.core import message_tree as tree
from holdfast.core.edited_answers import edited_answer, with_text
from holdfast.core.errors import InvalidInputError, NotAllowedError, SessionBusyError
from holdfast.core.ids import MessageId, OwnerId, RunId, SessionId
from holdfast.core.memory_ledger import OFF
from holdfast.core.parts import Json
from holdfast.core.run import Intent, Run
from holdfast.core.session import Compaction, Message, Session
from holdfast.engine.transactions import memory, personas, projects, steering
from holdfast.engine.transactions.cancel_requests import set_intent, stop_hidden
from holdfast.engine.transactions.row_access import (
    get_run,
    get_session,
    open_turns,
    put_active_session,
    put_session,
)
from holdfast.ports.store import Change, RunQuery, Tx

_ALL = 1_000_000_000
_SETTING_FIELDS = frozenset({"memory", "cwd", "agent_options", chat_settings.PERSONA, *chat_settings.SESSION_FIELDS})
"""Settings of a session that the API has fields for."""


@dataclass(frozen=True, slots=True)
class Edited:
    session: Session
    stop: tuple[Run, ...] = ()  # Runs whose cancel was requested in the same transaction


def create(tx: Tx, session: Session) -> Session:
    """A new session. It is without a project if the one that it names is being deleted."""
    return _add(tx, replace(session, project=projects.name_for(tx, session.owner, session.project)))


def _add(tx: Tx, session: Session) -> Session:
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


def with_settings(fields: Mapping[str, Any], settings: Json) -> dict[str, Any]:
    """The fields of a session, with those that are settings in its settings."""
    return chat_settings.with_settings(fields, settings, _SETTING_FIELDS)


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
    if fields.get("project"):
        fields = {**fields, "project": projects.require_name(tx, owner, fields["project"])}
    fields = personas.choose(tx, owner, fields)
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


def retitle(tx: Tx, sid: SessionId, owner: OwnerId, seen: str, text: str) -> Session:
    """Replace the title `seen` with a generated one. Another title was set meanwhile, and stays."""
    session = get_session(tx, sid, owner)
    return session if session.title != seen else put_session(tx, replace(session, title=text, titled_by="model"))


def adopt(tx: Tx, session: Session, messages: Sequence[Message], compactions: Sequence[Compaction]) -> Session:
    """Store a whole session from elsewhere under unused ids. Its `updated_at` stays."""
    session = _add(tx, replace(session, project=projects.adopted_name(tx, session.owner, session.project)))
    for message in messages:
        tx.add_message(message)
    for compaction in compactions:
        tx.put_compaction(compaction)
    return session


def append(tx: Tx, sid: SessionId, owner: OwnerId, if_version: int | None, messages: Sequence[Message]) -> Edited:
    """Add messages without runs below the head, in order. Refused while a run is open: its answer is the head."""
    session = get_session(tx, sid, owner, if_version)
    if others := open_turns(tx, sid):
        raise SessionBusyError(sid, others[0].id)
    for message in messages:
        tx.put_message(replace(message, parent_id=session.head, created_at=min(message.created_at, tx.now)))
        session = tree.append(session, message.id)
    return Edited(put_session(tx, session))


@dataclass(frozen=True, slots=True)
class EditedAnswer:
    message: Message
    stop: tuple[Run, ...] = ()


def edit_answer(
    tx: Tx,
    sid: SessionId,
    owner: OwnerId,
    if_version: int | None,
    mid: MessageId,
    text: str,
    new_mid: MessageId,
    key: str | None,
) -> EditedAnswer:
    """Another version of an answer, as its sibling and the new head. `new_mid` is derived from `key`, if there is one,
    so that a repeat finds what the first call made."""
    session = get_session(tx, sid, owner)
    original = tree.node(tx, session, mid)
    made = tx.message(new_mid)
    if made is not None:
        if (made.parent_id, made.parts) != (original.parent_id, with_text(original.parts, text)):
            raise InvalidInputError("Idempotency-Key", "was used for another request; use a new key")
        return EditedAnswer(made)
    session = get_session(tx, sid, owner, if_version)
    if original.role != "assistant":
        raise NotAllowedError("edit the answer", "it is a message of the user, which is edited by sending it again")
    if original.status == "streaming" or original.recovery == "pending":
        raise NotAllowedError("edit the answer", "it is not complete yet")
    message = edited_answer(original, text, new_mid, key, tx.now)
    tx.add_message(message)
    session = put_active_session(tx, tree.append(session, message.id))
    return EditedAnswer(message, stop_hidden(tx, session, tx.open_runs(sid)))


def clear(tx: Tx, sid: SessionId, owner: OwnerId, if_version: int | None) -> Edited:
    """Erase all messages and shares. Open runs end without a message; queued ones, which are not in the tree, stay."""
    session = get_session(tx, sid, owner, if_version)
    lost: list[Run] = []
    for run in tx.runs(RunQuery(owner, sid, limit=_ALL)):
        if not run.is_open:
            lost += steering.give_up(tx, run) if run.is_pending else ()
            tx.queue_purges([run.id])
            tx.drop_run(run.id)
    stop = [set_intent(tx, run, Intent("cancelled", reason="cleared")) for run in tx.open_runs(sid) if run.in_tree]
    memory.clear(tx, sid)
    tx.drop_session_shares(sid)
    tx.drop_messages(sid)
    return Edited(put_session(tx, _without_words(tree.clear(session))), (*stop, *lost))


def _without_words(session: Session) -> Session:
    """Without the title that its first message gave it: that message is erased."""
    return replace(session, title="") if session.titled_by == "nobody" else session


def erase_turn(tx: Tx, rid: RunId, owner: OwnerId) -> Run:
    """Erase a run with its question, answer and journal, and what was shared of the session, which may show them. The
    two messages stay, empty, because others may be below; the session's only run takes the session with it."""
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
            session = session if message.parent_id is not None else _without_words(session)
            tx.put_message(replace(message, parts=(), run_id=None, key=None, error=None, last_seq=0))
    if run.is_pending:
        steering.give_up(tx, run)
    tx.queue_purges([rid])
    tx.drop_run(rid)
    tx.drop_session_shares(session.id)
    put_session(tx, session)
    return run


def delete(tx: Tx, sid: SessionId, owner: OwnerId, if_version: int | None, forget: bool = False) -> Edited:
    """Hide the session and end its shares; `purge` erases it later. With `forget` its turns are not committed but
    deleted from memory."""
    session = get_session(tx, sid, owner, if_version)
    stop = tuple(set_intent(tx, run, Intent("cancelled", reason="deleted")) for run in open_turns(tx, sid))
    stop += tuple(steering.drop(tx, run) for run in tx.open_runs(sid) if run.is_taken)
    session = replace(session, deleted_at=tx.now, version=session.version + 1)
    tx.put_session(session)
    tx.drop_session_shares(sid)
    memory.delete(tx, sid, forget)
    tx.add_change(Change("session.deleted", owner, sid))
    return Edited(session, stop)


def purge(tx: Tx, sid: SessionId, remembers: bool = False) -> bool:
    """Erase a deleted session, unless a run of it is open, (`remembers`) its turns are not yet in memory, or it is
    still being imported (`imports.stage`)."""
    session = tx.session(sid)
    if session is None or session.deleted_at is None or session.deleted_at > tx.now or tx.open_runs(sid):
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
