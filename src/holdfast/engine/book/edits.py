"""What people do to sessions. Each function is one transaction (O1); what it hides is asked to stop in the same one."""

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.core import session as tree
from holdfast.core.ids import MessageId, OwnerId, SessionId
from holdfast.core.ledger import OFF
from holdfast.core.parts import Json
from holdfast.core.run import Intent, Run
from holdfast.core.session import Compaction, Message, Session
from holdfast.core.values import dataclass, replace
from holdfast.engine.book import remembering
from holdfast.engine.book.rows import intend, put_session, stop_hidden, the_session
from holdfast.ports import Tx


@dataclass(frozen=True, slots=True)
class Edited:
    session: Session
    stop: tuple[Run, ...] = ()
    """Runs whose cancel was requested in the same transaction."""


def create(tx: Tx, session: Session) -> Session:
    tx.put_session(session)
    remembering.follow(tx, session)
    tx.add_change("session.changed", session.owner, session.id)
    return session


def with_memory(fields: dict[str, Any], settings: Json) -> dict[str, Any]:
    """`memory` is one of the settings, but may be named by itself; None takes it out of them."""
    if "memory" not in fields:
        return fields
    rest = {name: value for name, value in fields.items() if name != "memory"}
    kept = {name: value for name, value in (settings or {}).items() if name != "memory"}
    named = {} if fields["memory"] is None else {"memory": fields["memory"]}
    return {**rest, "settings": {**kept, **named} or None}


def undo(tx: Tx, sid: SessionId, owner: OwnerId, if_version: int | None) -> Edited:
    return _moved(tx, tree.undo(tx, the_session(tx, sid, owner, if_version)))


def redo(tx: Tx, sid: SessionId, owner: OwnerId, if_version: int | None) -> Edited:
    return _moved(tx, tree.redo(the_session(tx, sid, owner, if_version)))


def truncate(tx: Tx, sid: SessionId, owner: OwnerId, if_version: int | None, last: MessageId) -> Edited:
    return _moved(tx, tree.truncate(tx, the_session(tx, sid, owner, if_version), last))


def switch(tx: Tx, sid: SessionId, owner: OwnerId, if_version: int | None, to: MessageId) -> Edited:
    return _moved(tx, tree.switch(tx, the_session(tx, sid, owner, if_version), to))


def _moved(tx: Tx, session: Session) -> Edited:
    session = put_session(tx, session)
    return Edited(session, stop_hidden(tx, session))


def amend(
    tx: Tx,
    sid: SessionId,
    owner: OwnerId,
    if_version: int | None,
    fields: dict[str, Any],
    show: MessageId | None = None,
) -> Edited:
    """Rename, pin, archive, tag …: no activity, so `updated_at` stays (P6). A title set here is a person's. `show`: the
    branch switch to that message in the same step."""
    session = the_session(tx, sid, owner, if_version)
    if "title" in fields:
        fields = {**fields, "titled_by": "person"}
    session = replace(session, **with_memory(fields, fields.get("settings", session.settings)))
    if remembering.chosen(session.settings) == OFF:
        remembering.discard(tx, sid)
    return Edited(put_session(tx, session)) if show is None else _moved(tx, tree.switch(tx, session, show))


def title(tx: Tx, sid: SessionId, owner: OwnerId, text: str) -> Session:
    """P8: a generated title gives way to a person's, also to one that was set while it was being generated."""
    session = the_session(tx, sid, owner)
    if session.titled_by == "person":
        return session
    return put_session(tx, replace(session, title=text, titled_by="model"))


def fork(
    tx: Tx, sid: SessionId, owner: OwnerId, last: MessageId, new_sid: SessionId, new_ids: Sequence[MessageId]
) -> Session:
    """A copy of the shown path up to `last`. `new_ids` are made outside and are enough for the path."""
    session = the_session(tx, sid, owner)
    fresh = iter(new_ids)
    new = replace(
        session,
        id=new_sid,
        created_at=tx.now,
        updated_at=tx.now,
        previous_session_id=None,
        settings=_kept(session.settings),
        pinned=False,
        archived=False,
        head=None,
        redo=(),
        version=1,
    )
    new, copies = tree.fork(tx, session, last, new, lambda: next(fresh))
    create(tx, new)
    for message in copies:
        tx.put_message(message)
    return new


def _kept(settings: Json) -> Json:
    """A copy is somebody's wish: it is kept, whatever was to become of the first."""
    return (
        {name: value for name, value in settings.items() if name != "keep"} if isinstance(settings, dict) else settings
    )


def adopt(tx: Tx, session: Session, messages: Sequence[Message], compactions: Sequence[Compaction]) -> Session:
    """A whole session from elsewhere, under ids that nobody has used. `updated_at` is what it was there."""
    create(tx, session)
    for message in messages:
        tx.put_message(message)
    for compaction in compactions:
        tx.put_compaction(compaction)
    return session


def clear(tx: Tx, sid: SessionId, owner: OwnerId, if_version: int | None) -> Edited:
    """Erase what was said. Runs that are open end without a message; queued ones, which are not in the tree, stay."""
    session = the_session(tx, sid, owner, if_version)
    stop = []
    for run in tx.runs(owner, sid=sid, limit=_ALL):
        if not run.is_open:
            tx.add_purge([run.id])
            tx.drop_run(run.id)
        elif run.in_tree:
            stop.append(intend(tx, run, Intent("cancelled", reason="cleared")))
    remembering.clear(tx, sid)
    tx.drop_messages(sid)
    return Edited(put_session(tx, tree.clear(session)), tuple(stop))


def delete(tx: Tx, sid: SessionId, owner: OwnerId, if_version: int | None, forget: bool = False) -> Edited:
    """Hidden at once; erased by `purge` when its last run has ended and its turns are remembered. With `forget` they
    are not to be, nor what already is."""
    session = the_session(tx, sid, owner, if_version)
    stop = tuple(intend(tx, run, Intent("cancelled", reason="deleted")) for run in tx.open_runs(sid))
    session = replace(session, deleted_at=tx.now, version=session.version + 1)
    tx.put_session(session)
    remembering.delete(tx, sid, forget)
    tx.add_change("session.deleted", owner, sid)
    return Edited(session, stop)


def purge(tx: Tx, sid: SessionId, keeping: bool = False) -> bool:
    """Erase a deleted session, unless a run of it is open, or (`keeping`) its turns are still to be remembered."""
    session = tx.session(sid)
    if session is None or session.deleted_at is None or tx.open_runs(sid):
        return False
    if keeping and not remembering.is_over(tx, sid):
        return False
    tx.add_purge([run.id for run in tx.runs(session.owner, sid=sid, limit=_ALL)])
    tx.drop_session(sid)
    return True


def compact(tx: Tx, compaction: Compaction) -> Session:
    """O3: a record beside the tree. The session or the message may have gone while the summary was being made."""
    session = the_session(tx, compaction.session_id, compaction.owner)
    tree.node(tx, session, compaction.message_id)
    tx.put_compaction(compaction)
    return put_session(tx, session)


_ALL = 1_000_000_000

EditStep = Callable[[Tx], Edited]
