"""Forks: a new session with a copy of a path of another. A long path is staged in pieces, as an import is
(`imports.stage`), so that others can write meanwhile; the last piece makes the copy visible as a whole."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.core import message_tree as tree
from holdfast.core.errors import NotAllowedError
from holdfast.core.export_format import derived_id
from holdfast.core.ids import MessageId, OwnerId, SessionId
from holdfast.core.parts import Json, approximate_size
from holdfast.core.session import Message, Session
from holdfast.engine.transactions import imports, session_edits
from holdfast.engine.transactions.row_access import get_session
from holdfast.ports.store import Tx


@dataclass(frozen=True, slots=True)
class Fork:
    """What is copied, and the id of the copy."""

    sid: SessionId
    owner: OwnerId
    last: MessageId
    new_sid: SessionId

    def copy_id(self, mid: MessageId) -> MessageId:
        """Derived, so that a repetition finds what is stored already."""
        return MessageId(derived_id("msg", self.new_sid, mid))


@dataclass(frozen=True, slots=True)
class ForkPlan:
    made: Session | None  # By an earlier call with the same key
    path: tuple[MessageId, ...]
    version: int | None  # Of what an earlier call has staged


@dataclass(frozen=True, slots=True)
class ForkPiece:
    """Copies of the next messages of the path."""

    originals: int  # How many messages of the path it covers: unsettled ones have no copy
    copies: tuple[Message, ...]
    size: int  # Bytes that they need


def plan(tx: Tx, fork: Fork) -> ForkPlan:
    made = _find_made(tx, fork)
    if made is not None:
        return ForkPlan(made, (), None)
    _source(tx, fork)
    staged = tx.session(fork.new_sid)
    path = tuple([entry.id for entry in tx.path(fork.last)])
    return ForkPlan(None, path, None if staged is None else staged.version)


def read_piece(tx: Tx, fork: Fork, mids: Sequence[MessageId], below: MessageId | None) -> ForkPiece:
    """Copies of the first of these messages: as many as one transaction should store. `below`: the copy before them."""
    session = get_session(tx, fork.sid, fork.owner)
    originals: list[Message] = []
    size = len(session.system or "")
    for mid in mids[: imports.PIECE]:
        originals.append(tree.node(tx, session, mid))
        size += approximate_size(originals[-1].parts)
        if size >= imports.PIECE_SIZE:
            break
    copies = tree.copies(originals, fork.new_sid, fork.copy_id, below)
    return ForkPiece(len(originals), tuple(copies), size)


def stage(tx: Tx, fork: Fork, version: int | None, copies: Sequence[Message]) -> int:
    """Store a piece that is not the last one, and return the version of what is staged."""
    hidden = replace(_source(tx, fork), id=fork.new_sid, created_at=tx.now, updated_at=tx.now)
    version = imports.stage(tx, hidden, version, copies)
    if version is None:
        raise _is_made_elsewhere()
    return version


def finish(tx: Tx, fork: Fork, version: int | None, copies: Sequence[Message], head: MessageId | None) -> Session:
    """The new session, with its last copies."""
    made = _find_made(tx, fork)
    if made is not None:
        return made
    session = _source(tx, fork)
    new = replace(
        session,
        id=fork.new_sid,
        created_at=tx.now,
        updated_at=tx.now,
        previous_session_id=None,
        settings=_without_keep(session.settings),
        pinned=False,
        archived=False,
        head=head,
        redo=(),
        version=1,
    )
    merged = imports.merge(tx, new, version, copies, ())
    if merged is None:
        raise _is_made_elsewhere()
    return merged.session


def _source(tx: Tx, fork: Fork) -> Session:
    """The session that is copied, which may have been deleted or cleared since its messages were read."""
    session = get_session(tx, fork.sid, fork.owner)
    tree.node(tx, session, fork.last)
    return session


def _find_made(tx: Tx, fork: Fork) -> Session | None:
    stored = tx.session(fork.new_sid)
    if stored is None or imports.is_staged(stored):
        return None
    return session_edits.find_created(tx, fork.new_sid, fork.owner)


def _is_made_elsewhere() -> NotAllowedError:
    return NotAllowedError("fork the session", "another request is making the same copy; try again")


def _without_keep(settings: Json) -> Json:
    """A fork of a temporary session is kept."""
    return (
        {name: value for name, value in settings.items() if name != "keep"} if isinstance(settings, dict) else settings
    )
