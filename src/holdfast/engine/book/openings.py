"""Turns that do not begin at the head: below any message, or as the first of a session that brings its past with it.
Each function is one transaction."""

from collections.abc import Sequence

from holdfast.core import session as tree
from holdfast.core.errors import Busy, NotAllowed
from holdfast.core.ids import MessageId, OwnerId, RunId
from holdfast.core.run import Run
from holdfast.core.session import Message, Session
from holdfast.core.values import replace
from holdfast.engine.book import edits
from holdfast.engine.book.accept import Accepted, Request, check_files, known, new_rank, take_in
from holdfast.engine.book.rows import put_session, the_run, the_session
from holdfast.ports import Tx


def branch(tx: Tx, request: Request, below: MessageId, past: Sequence[Message] = ()) -> Accepted:
    """A new user message below a message of the session, wherever the head is; it moves there. Nothing is destroyed.
    `past`: what comes in between, the first of it below `below`. Busy while any run of the session is open: moving the
    head would stop it."""
    if (before := known(tx, request)) is not None:
        return before
    session = the_session(tx, request.session_id, request.owner)
    parent = tree.node(tx, session, below)
    if others := tx.open_runs(session.id):
        raise Busy(session.id, others[0].id)
    check_files(tx, [part for message in past for part in message.parts], request.owner)
    check_files(tx, request.input, request.owner)
    for message in _past(tx, past):
        tx.put_message(message)
    last = past[-1] if past else parent
    return take_in(tx, request, session, parent=last.id, rank=new_rank(tx))


def begin(tx: Tx, request: Request, session: Session, past: Sequence[Message]) -> Accepted:
    """A session with its past and its first turn, in one step. Where the session's id was made from an idempotency key,
    a repeat finds it there."""
    if tx.session(session.id) is not None:
        if (before := known(tx, request)) is not None:
            return before
        raise NotAllowed("repeat the call", "what its key had begun was erased; take a new key")
    check_files(tx, [part for message in past for part in message.parts], request.owner)
    check_files(tx, request.input, request.owner)
    session = edits.adopt(tx, replace(session, created_at=tx.now, updated_at=tx.now), _past(tx, past), ())
    return take_in(tx, request, session, parent=session.head, rank=new_rank(tx))


def _past(tx: Tx, messages: Sequence[Message]) -> list[Message]:
    """A node that is ahead says when the past was; it was not after what is asked now."""
    return [replace(message, created_at=min(message.created_at, tx.now)) for message in messages]


def erase_turn(tx: Tx, rid: RunId, owner: OwnerId) -> Run:
    """What was asked and answered in one run goes, and its journal with it. Its place in the tree stays, empty, because
    others may hang below it; if it was the only run of its session, the session goes."""
    run = the_run(tx, rid, owner)
    if run.is_open:
        raise NotAllowed("delete it", "it is still under way; cancel it first")
    session = the_session(tx, run.session_id, owner)
    if all(other.id == rid for other in tx.runs(owner, sid=session.id, limit=2)):
        edits.delete(tx, session.id, owner, None)
        return run
    for mid in (run.user_message_id, run.message_id):
        message = tx.message(mid)
        if message is not None:
            tx.put_message(replace(message, parts=(), run_id=None, key=None, error=None, last_seq=0))
    tx.add_purge([rid])
    tx.drop_run(rid)
    put_session(tx, session)
    return run
