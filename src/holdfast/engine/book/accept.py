"""Taking a turn in: sent, retried, edited or continued. Rule 3: user message, empty answer, run and head in one
transaction. Each function is the body of one, and may be run again after a conflict."""

from collections.abc import Iterable
from typing import Literal

from holdfast.core import session as tree
from holdfast.core.errors import (
    Busy,
    KeyReused,
    NotAllowed,
    NotFound,
    message_not_found,
)
from holdfast.core.ids import MessageId, OwnerId, RunId, SessionId
from holdfast.core.parts import File, Json, Part
from holdfast.core.run import Lifetime, Run
from holdfast.core.session import Message, Session
from holdfast.core.values import dataclass, replace
from holdfast.engine.book.rows import (
    SUPERSEDED,
    Me,
    intend,
    put_run,
    put_session,
    stop_hidden,
    the_message,
    the_run,
    the_session,
)
from holdfast.ports import Tx

OnBusy = Literal["queue", "reject", "interrupt"]


@dataclass(frozen=True, slots=True)
class NewIds:
    """Ids for a turn, made outside: a transaction that is run again must not make others."""

    run: RunId
    question: MessageId
    answer: MessageId


@dataclass(frozen=True, slots=True)
class Request:
    """A turn that somebody wants, whatever the way: sent, retried, edited or continued."""

    session_id: SessionId
    owner: OwnerId
    ids: NewIds
    fingerprint: str
    key: str | None = None
    input: tuple[Part, ...] = ()
    agent: str | None = None
    model: str | None = None
    settings: Json = None
    lifetime: Lifetime = "detached"
    attached_by: Me | None = None
    on_busy: OnBusy = "queue"


@dataclass(frozen=True, slots=True)
class Accepted:
    run: Run
    message: Message
    """The user's message."""
    fresh: bool = True
    """False: the key was known, and this is the run as it is now."""
    stop: tuple[Run, ...] = ()
    """Runs whose cancel was requested in the same transaction."""


def known(tx: Tx, request: Request) -> Accepted | None:
    """The run that this idempotency key already made, if any."""
    if request.key is None:
        return None
    run = tx.run_with_key(request.owner, request.session_id, request.key)
    if run is None:
        return None
    if run.fingerprint != request.fingerprint:
        raise KeyReused(request.key, run.id)
    message = tx.message(run.user_message_id)
    if message is None:
        raise message_not_found(run.user_message_id)
    return Accepted(run, message, fresh=False)


def submit(tx: Tx, request: Request) -> Accepted:
    """A new user message at the head; on a busy session as `on_busy` says."""
    if (before := known(tx, request)) is not None:
        return before
    session = the_session(tx, request.session_id, request.owner)
    check_files(tx, request.input, request.owner)
    others = tx.open_runs(session.id)
    if not others:
        return take_in(tx, request, session, parent=session.head, rank=new_rank(tx))
    active = [run for run in others if run.in_tree]
    if request.on_busy == "reject":
        raise Busy(session.id, (active or others)[0].id)
    if request.on_busy == "queue":
        return _enqueue(tx, request, session, rank=max(new_rank(tx), others[-1].rank + 1))
    stop = tuple(intend(tx, run, SUPERSEDED) for run in active)
    return replace(_enqueue(tx, request, session, rank=others[0].rank - 1), stop=stop)


def retry(tx: Tx, request: Request, mid: MessageId, if_version: int | None = None) -> Accepted:
    """Another answer to the same user message, beside the earlier ones."""
    if (before := known(tx, request)) is not None:
        return before
    session = the_session(tx, request.session_id, request.owner, if_version)
    asked = tree.question(tx, session, mid)
    return take_in(tx, request, session, parent=asked.id, rank=new_rank(tx), question=asked)


def edit(tx: Tx, request: Request, mid: MessageId, if_version: int | None = None) -> Accepted:
    """The user message said differently, as a sibling of the first."""
    if (before := known(tx, request)) is not None:
        return before
    session = the_session(tx, request.session_id, request.owner, if_version)
    old = tree.node(tx, session, mid)
    if old.role != "user":
        raise NotAllowed("edit", "only what a person wrote can be edited")
    check_files(tx, request.input, request.owner)
    return take_in(tx, request, session, parent=old.parent_id, rank=new_rank(tx))


def continue_run(tx: Tx, request: Request, rid: RunId) -> Accepted:
    """A new run that takes up where `rid` stopped. Its message takes the earlier one's place in the shown branch."""
    if (before := known(tx, request)) is not None:
        return before
    earlier = the_run(tx, rid, request.owner)
    session = the_session(tx, request.session_id, request.owner)
    if others := tx.open_runs(session.id):
        raise Busy(session.id, others[0].id)
    if earlier.is_pending or earlier.is_unread:
        raise NotAllowed("continue", "its output could not be read yet, so what it has done is not known")
    if earlier.status == "complete":
        raise NotAllowed("continue", "the run is complete")
    message = tree.node(tx, session, earlier.message_id)
    asked = tree.question(tx, session, message.id)
    agent, model = request.agent or earlier.agent, request.model or earlier.model
    request = replace(request, agent=agent, model=model, settings=earlier.settings)
    return take_in(tx, request, session, parent=asked.id, rank=new_rank(tx), question=asked, continues=earlier.id)


def edit_queued(tx: Tx, rid: RunId, owner: OwnerId, parts: tuple[Part, ...]) -> Accepted:
    run = the_run(tx, rid, owner)
    if run.status != "queued" or run.in_tree:
        raise NotAllowed("edit the queued message", "it is no longer waiting in the queue")
    check_files(tx, parts, owner)
    message = replace(the_message(tx, run.user_message_id), parts=parts)
    tx.put_message(message)
    tx.add_change("session.changed", owner, run.session_id)
    return Accepted(put_run(tx, run), message)


def new_rank(tx: Tx) -> int:
    return int(tx.now * 1_000_000)


def check_files(tx: Tx, parts: Iterable[Part], owner: OwnerId) -> None:
    for part in parts:
        if isinstance(part, File):
            file = tx.file(part.file_id)
            if file is None or file.owner != owner:
                raise NotFound("file", part.file_id)


def _new_run(request: Request, session: Session, now: float, rank: int, in_tree: bool) -> Run:
    return Run(
        id=request.ids.run,
        owner=session.owner,
        session_id=session.id,
        message_id=request.ids.answer,
        user_message_id=request.ids.question,
        agent=request.agent or session.agent,
        model=request.model or session.model,
        settings=request.settings,
        lifetime=request.lifetime,
        created_at=now,
        rank=rank,
        in_tree=in_tree,
        connection=None if request.attached_by is None else request.attached_by.lease(now),
        key=request.key,
        fingerprint=request.fingerprint,
    )


def _question(request: Request, session: Session, parent: MessageId | None, now: float) -> Message:
    return Message(
        request.ids.question,
        session.owner,
        session.id,
        "user",
        parent,
        now,
        request.ids.run,
        parts=request.input,
        key=request.key,
    )


def _answer(run: Run, now: float, in_tree: bool) -> Message:
    return Message(
        run.message_id,
        run.owner,
        run.session_id,
        "assistant",
        run.user_message_id,
        now,
        run.id,
        "streaming",
        model=run.model,
        in_tree=in_tree,
    )


def take_in(
    tx: Tx,
    request: Request,
    session: Session,
    *,
    parent: MessageId | None,
    rank: int,
    question: Message | None = None,
    continues: RunId | None = None,
) -> Accepted:
    """Rule 3: user message, empty answer, run and head in one transaction. With `question`, that message is answered
    again."""
    run = replace(_new_run(request, session, tx.now, rank, in_tree=True), continues=continues)
    if question is None:
        question = _question(request, session, parent, tx.now)
        tx.put_message(question)
    else:
        run = replace(run, user_message_id=question.id)
    tx.put_message(_answer(run, tx.now, in_tree=True))
    session = put_session(tx, replace(tree.append(session, run.message_id), updated_at=tx.now))
    put_run(tx, run)
    return Accepted(run, question, stop=stop_hidden(tx, session))


def _enqueue(tx: Tx, request: Request, session: Session, *, rank: int) -> Accepted:
    """Outside the tree, until the run is claimed."""
    run = _new_run(request, session, tx.now, rank, in_tree=False)
    question = replace(_question(request, session, None, tx.now), in_tree=False)
    tx.put_message(question)
    tx.put_message(_answer(run, tx.now, in_tree=False))
    put_session(tx, replace(session, updated_at=tx.now))
    put_run(tx, run)
    return Accepted(run, question)
