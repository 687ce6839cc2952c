"""Accepts a turn (submit, retry, edit, continue): the user message, the empty answer, the run and the new head are
written in one transaction. `find_repeated` checks the idempotency key first, in the same transaction. A function may be
run again after a conflict."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from holdfast.core import message_tree as tree
from holdfast.core.errors import KeyReusedError, NotAllowedError, NotFoundError, QuotaExceededError, SessionBusyError
from holdfast.core.ids import MessageId, OwnerId, RunId, SessionId
from holdfast.core.late_grants import unanswered_calls
from holdfast.core.lease import NodeIdentity
from holdfast.core.parts import FilePart, Json, Part
from holdfast.core.run import Lifetime, Run
from holdfast.core.session import Message, Session
from holdfast.core.transcript import CUT_SHORT
from holdfast.engine.transactions import approvals, session_edits
from holdfast.engine.transactions.cancel_requests import SUPERSEDED, set_intent, stop_hidden
from holdfast.engine.transactions.row_access import (
    get_message,
    get_run,
    get_session,
    put_active_session,
    put_run,
)
from holdfast.engine.transactions.run_queue import with_lease
from holdfast.ports.store import Change, Tx

MAX_QUEUED: Final = 100  # Turns of one session that wait
MAX_QUEUED_RUNS: Final = 10_000  # Of one owner
OnBusy = Literal["queue", "reject", "interrupt"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a turn is to be answered. A repeat with the same `key` must have the same `body`."""

    body: Json
    key: str | None = None
    agent: str | None = None
    model: str | None = None
    settings: Json = None
    lifetime: Lifetime = "detached"

    @property
    def fingerprint(self) -> str:
        text = json.dumps(self.body, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A turn to be accepted, whether submitted, retried, edited or continued. Its ids are made outside: a transaction
    that is run again must use the same ones."""

    session_id: SessionId
    owner: OwnerId
    run_id: RunId
    user_message_id: MessageId
    message_id: MessageId
    options: RunOptions
    input: tuple[Part, ...] = ()
    attached_by: NodeIdentity | None = None
    on_busy: OnBusy = "queue"
    claimed_by: NodeIdentity | None = None  # A node with room, which executes the run at once if nothing is ahead of it


@dataclass(frozen=True, slots=True)
class Accepted:
    run: Run
    message: Message  # The user's message
    fresh: bool = True  # False if the idempotency key was known; `run` is then that run as it is now
    stop: tuple[Run, ...] = ()  # Runs whose cancel was requested in the same transaction


def find_repeated(tx: Tx, owner: OwnerId, sid: SessionId, options: RunOptions) -> Accepted | None:
    """The turn that was accepted with this idempotency key, if any. Raises KeyReusedError if its body was another."""
    key = options.key
    run = None if key is None else tx.run_with_key(owner, sid, key)
    if key is None or run is None:
        return None
    if run.fingerprint != options.fingerprint:
        raise KeyReusedError(key, run.id)
    return Accepted(run, get_message(tx, run.user_message_id), fresh=False)


def submit(tx: Tx, request: TurnRequest) -> Accepted:
    """A new user message at the head; on a busy session as `on_busy` says."""
    session = get_session(tx, request.session_id, request.owner)
    check_files(tx, request.input, request.owner)
    others = tx.open_runs(session.id)
    if not others:
        return add_turn(tx, request, session, others, parent=session.head)
    active = [run for run in others if run.in_tree]
    if request.on_busy == "reject":
        raise SessionBusyError(session.id, (active or others)[0].id)
    if len(others) - len(active) >= MAX_QUEUED:
        raise QuotaExceededError("messages in the queue", MAX_QUEUED, "Wait for some to be answered, or cancel them.")
    if request.on_busy == "queue":
        return _enqueue(tx, request, session, rank=max(new_rank(tx), others[-1].rank + 1))
    stop = tuple(set_intent(tx, run, SUPERSEDED) for run in active)
    return replace(_enqueue(tx, request, session, rank=others[0].rank - 1), stop=stop)


def retry(tx: Tx, request: TurnRequest, mid: MessageId, if_version: int | None = None) -> Accepted:
    """Another answer to the same user message, beside the earlier ones."""
    session = get_session(tx, request.session_id, request.owner, if_version)
    asked = tree.question(tx, session, mid)
    return add_turn(tx, request, session, tx.open_runs(session.id), parent=asked.id, question=asked)


def edit(tx: Tx, request: TurnRequest, mid: MessageId, if_version: int | None = None) -> Accepted:
    """Another version of a user message, as its sibling."""
    session = get_session(tx, request.session_id, request.owner, if_version)
    old = tree.node(tx, session, mid)
    if old.role != "user":
        raise NotAllowedError("edit", "only user messages can be edited")
    check_files(tx, request.input, request.owner)
    return add_turn(tx, request, session, tx.open_runs(session.id), parent=old.parent_id)


def continue_run(tx: Tx, request: TurnRequest, rid: RunId, allow: frozenset[str] = frozenset()) -> Accepted:
    """A new run that goes on where `rid` stopped. Its message takes the earlier one's place in the shown branch. It may
    make the calls in `allow`, which were denied because nobody answered in time."""
    earlier = get_run(tx, rid, request.owner)
    session = get_session(tx, request.session_id, request.owner)
    if others := tx.open_runs(session.id):
        raise SessionBusyError(session.id, others[0].id)
    if earlier.is_pending or earlier.is_unread:
        raise NotAllowedError("continue", "its output has not been recovered yet")
    if earlier.status == "complete" and earlier.finish_reason not in CUT_SHORT and not allow:
        raise NotAllowedError("continue", "the run is already complete")
    message = tree.node(tx, session, earlier.message_id)
    if not allow <= unanswered_calls(message.parts):
        raise NotAllowedError("allow it now", "only calls that nobody answered in time can be allowed later")
    asked = tree.question(tx, session, message.id)
    agent, model = request.options.agent or earlier.agent, request.options.model or earlier.model
    options = replace(request.options, agent=agent, model=model, settings=earlier.settings)
    request = replace(request, options=options)
    accepted = add_turn(tx, request, session, others, parent=asked.id, question=asked, continues=earlier.id)
    if allow:
        approvals.grant(tx, accepted.run, allow)
    return accepted


def branch(tx: Tx, request: TurnRequest, below: MessageId | None, past: Sequence[Message] = ()) -> Accepted:
    """A turn below message `below`, or at the beginning, with the messages of `past` in between; the head moves there.
    Refused while a run is open, because moving the head would stop it."""
    session = get_session(tx, request.session_id, request.owner)
    parent = None if below is None else tree.node(tx, session, below).id
    if others := tx.open_runs(session.id):
        raise SessionBusyError(session.id, others[0].id)
    check_files(tx, [*(part for message in past for part in message.parts), *request.input], request.owner)
    for message in _not_later_than_now(tx, past):
        tx.put_message(message)
    return add_turn(tx, request, session, others, parent=past[-1].id if past else parent)


def begin(tx: Tx, request: TurnRequest, session: Session, past: Sequence[Message]) -> Accepted:
    """A new session with its history and first turn. If its id is derived from the key, a repeat finds it."""
    if tx.session(session.id) is not None:
        raise NotAllowedError(
            "repeat the call", "the session made with this idempotency key was deleted; use a new key"
        )
    check_files(tx, [*(part for message in past for part in message.parts), *request.input], request.owner)
    session = session_edits.adopt(
        tx, replace(session, created_at=tx.now, updated_at=tx.now), _not_later_than_now(tx, past), ()
    )
    return add_turn(tx, request, session, (), parent=session.head)


def _not_later_than_now(tx: Tx, messages: Sequence[Message]) -> list[Message]:
    """With times that are not after now: the caller's clock may be ahead of the store's."""
    return [replace(message, created_at=min(message.created_at, tx.now)) for message in messages]


def edit_queued(tx: Tx, rid: RunId, owner: OwnerId, parts: tuple[Part, ...]) -> Accepted:
    run = get_run(tx, rid, owner)
    if run.status != "queued" or run.in_tree:
        raise NotAllowedError("edit the queued message", "it is no longer waiting in the queue")
    check_files(tx, parts, owner)
    message = replace(get_message(tx, run.user_message_id), parts=parts)
    tx.put_message(message)
    tx.add_change(Change("session.changed", owner, run.session_id))
    return Accepted(put_run(tx, run), message)


def new_rank(tx: Tx) -> int:
    """The place of a new turn in the queue: behind all earlier ones."""
    return int(tx.now * 1_000_000)


def check_files(tx: Tx, parts: Iterable[Part], owner: OwnerId) -> None:
    for part in parts:
        if isinstance(part, FilePart):
            file = tx.file(part.file_id)
            if file is None or file.owner != owner:
                raise NotFoundError("file", part.file_id)


def _new_run(
    request: TurnRequest,
    session: Session,
    now: float,
    rank: int,
    *,
    in_tree: bool,
    question: Message | None = None,
    continues: RunId | None = None,
) -> Run:
    options = request.options
    return Run(
        id=request.run_id,
        owner=session.owner,
        session_id=session.id,
        message_id=request.message_id,
        user_message_id=request.user_message_id if question is None else question.id,
        agent=options.agent or session.agent,
        model=options.model or session.model,
        settings=options.settings,
        lifetime=options.lifetime,
        created_at=now,
        rank=rank,
        in_tree=in_tree,
        connection=None if request.attached_by is None else request.attached_by.lease(now),
        key=options.key,
        fingerprint=options.fingerprint,
        continues=continues,
    )


def _question(request: TurnRequest, run: Run, parent: MessageId | None, now: float) -> Message:
    return Message(
        request.user_message_id,
        run.owner,
        run.session_id,
        "user",
        parent,
        now,
        run.id,
        parts=request.input,
        key=request.options.key,
        in_tree=run.in_tree,
    )


def _answer(run: Run, now: float) -> Message:
    return Message(
        run.message_id,
        run.owner,
        run.session_id,
        "assistant",
        run.user_message_id,
        now,
        run.id,
        status="streaming",
        model=run.model,
        in_tree=run.in_tree,
    )


def add_turn(
    tx: Tx,
    request: TurnRequest,
    session: Session,
    others: Sequence[Run],
    *,
    parent: MessageId | None,
    question: Message | None = None,
    continues: RunId | None = None,
) -> Accepted:
    """Add the user message (or answer `question` again), the empty answer and the run, and move the head. `others`: the
    session's open runs."""
    now = tx.now
    if request.claimed_by is None or others:
        _check_queue(tx, session.owner)
    run = _new_run(request, session, now, new_rank(tx), in_tree=True, question=question, continues=continues)
    if question is None:
        question = _question(request, run, parent, now)
        tx.add_message(question)
    tx.add_message(_answer(run, now))
    session = put_active_session(tx, tree.append(session, run.message_id))
    if request.claimed_by is not None and not others:
        run = with_lease(run, request.claimed_by, tx.now)
    put_run(tx, run)
    return Accepted(run, question, stop=stop_hidden(tx, session, others))


def _check_queue(tx: Tx, owner: OwnerId) -> None:
    if tx.has_queued_runs(owner, MAX_QUEUED_RUNS):
        raise QuotaExceededError("queued runs", MAX_QUEUED_RUNS, "Wait for some to be executed, or cancel them.")


def _enqueue(tx: Tx, request: TurnRequest, session: Session, *, rank: int) -> Accepted:
    """Store the turn outside the tree until its run is claimed."""
    _check_queue(tx, session.owner)
    run = _new_run(request, session, tx.now, rank, in_tree=False)
    question = _question(request, run, None, tx.now)
    tx.add_message(question)
    tx.add_message(_answer(run, tx.now))
    put_active_session(tx, session)
    put_run(tx, run)
    return Accepted(run, question)
