"""Adds exported sessions. A new one with more messages than a transaction should have is staged: it is hidden, as a
deleted session is, until the transaction that adds the last messages. What a crash leaves of it is erased, or used when
the import is repeated. Messages that a session lacks are added below or beside its branches before the head moves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from holdfast.core.ids import MessageId, SessionId
from holdfast.core.session import Compaction, Message, Session
from holdfast.engine.transactions import session_edits
from holdfast.engine.transactions.row_access import put_session
from holdfast.ports.store import Tx

PIECE: Final = 500  # Messages of one transaction, or of one statement: others wait meanwhile
PIECE_SIZE: Final = 256 * 1024  # Bytes of the messages of one transaction: with their words, some 70 ms
_STAGED: Final = {"staged": True}  # Settings of a session that is being imported
_KEPT: Final = 3600.0  # Seconds for which a staged session waits for its next piece


@dataclass(frozen=True, slots=True)
class StoredPart:
    """What is stored of an exported session."""

    session: Session | None
    missing: frozenset[MessageId]

    @property
    def is_complete(self) -> bool:
        return self.session is not None and self.session.deleted_at is None and not self.missing


@dataclass(frozen=True, slots=True)
class Merged:
    """What an import added to a session: its number of new messages, and why the last of them were refused. Earlier
    pieces of a long session may be stored then; they are on no branch that is shown."""

    session: Session
    is_new: bool = False
    added: int = 0
    refusal: str | None = None


def find_stored(tx: Tx, sid: SessionId, mids: Sequence[MessageId]) -> StoredPart:
    session = tx.session(sid)
    missing = set(mids)
    for at in range(0, len(mids) if session is not None else 0, PIECE):
        missing.difference_update(tx.known_messages(sid, mids[at : at + PIECE]))
    return StoredPart(session, frozenset(missing))


def stage(tx: Tx, session: Session, version: int | None, messages: Sequence[Message]) -> int | None:
    """Store messages ahead of `merge`, parents first, and return the version of the session from now on. None: it is
    not at `version` any more, which is None for one that does not exist, so the parents may be gone; or it is in use.
    """
    stored = tx.session(session.id)
    if version != (None if stored is None else stored.version):
        return None
    if stored is None or is_staged(stored):
        hidden = Session(session.id, session.owner, session.created_at, session.updated_at, settings=_STAGED)
        stored = replace(hidden, deleted_at=tx.now + _KEPT)
        tx.put_session(stored)
    elif stored.deleted_at is not None or tx.open_runs(stored.id):
        return None
    _add(tx, stored.id, messages)
    return stored.version


def merge(
    tx: Tx, session: Session, version: int | None, messages: Sequence[Message], compactions: Sequence[Compaction]
) -> Merged | None:
    """Store a session, or the messages that it lacks. Their ids are derived from those in the source, so that a second
    import finds them. Nothing stored is changed: not its title, flags or settings, nor a message. The head moves only
    if it is where the last import left it. None as for `stage`."""
    stored = tx.session(session.id)
    if version != (None if stored is None else stored.version):
        return None
    if stored is None or is_staged(stored):
        _add(tx, session.id, messages)
        return Merged(session_edits.adopt(tx, session, (), compactions), is_new=True, added=len(messages))
    if stored.deleted_at is not None:
        return Merged(stored, refusal="it was deleted a moment ago; import it again later")
    if tx.open_runs(stored.id):
        return Merged(stored, refusal="it is being answered; import it again later")
    _add(tx, stored.id, messages)
    known = tx.compactions(stored.id)
    for compaction in compactions:
        if compaction.message_id not in known:
            tx.put_compaction(compaction)
    if _left_by_import(stored):
        settings = {**stored.settings, "origin": session.settings["origin"]}
        stored = replace(stored, head=session.head, redo=(), settings=settings)
    return Merged(
        put_session(tx, replace(stored, updated_at=max(stored.updated_at, session.updated_at))), added=len(messages)
    )


def _add(tx: Tx, sid: SessionId, messages: Sequence[Message]) -> None:
    """Another import may have added some meanwhile."""
    known = tx.known_messages(sid, [message.id for message in messages])
    for message in messages:
        if message.id not in known:
            tx.add_message(message)


def is_staged(session: Session) -> bool:
    return session.deleted_at is not None and session.settings == _STAGED


def _left_by_import(session: Session) -> bool:
    origin = session.settings.get("origin") if isinstance(session.settings, dict) else None
    return isinstance(origin, dict) and origin.get("head") == session.head
