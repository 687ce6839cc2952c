"""Accepts a turn (submit, retry, edit, continue): the user message, the empty answer, the run and the new head are
written in one transaction. `find_repeated` checks the idempotency key first, in the same transaction. The store
repeats these functions after a conflict, so they change nothing but `tx`. On a busy session `submit` queues, refuses or
interrupts as `on_busy` says, and at most `MAX_QUEUED` turns wait; `engine.transactions.run_queue` claims them. A
reached budget refuses new turns (`engine.transactions.budgets`)."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from holdfast.core import chat_settings
from holdfast.core import message_tree as tree
from holdfast.core.budgets import BudgetState
from holdfast.core.drafts import SentDraft
from holdfast.core.errors import (
    KeyCancelledError,
    KeyReusedError,
    NotAllowedError,
    NotFoundError,
    QueueTooLargeError,
    QuotaExceededError,
    SessionBusyError,
)
from holdfast.core.ids import MessageId, OwnerId, RunId, SessionId
from holdfast.core.late_approvals import unanswered_calls
from holdfast.core.lease import NodeIdentity
from holdfast.core.memory_ledger import OFF
from holdfast.core.parts import FilePart, Json, Part, json_size
from holdfast.core.personas import shown
from holdfast.core.run import Lifetime, Run
from holdfast.core.session import Message, Session
from holdfast.core.titles import first_words
from holdfast.core.transcript import CUT_SHORT
from holdfast.engine.transactions import approvals, budgets, drafts, memory, personas, projects, session_edits
from holdfast.engine.transactions.budgets import NO_INPUTS, BudgetInputs
from holdfast.engine.transactions.cancel_requests import KEYS_CANCELLED_FOR, SUPERSEDED, set_intent, stop_hidden
from holdfast.engine.transactions.row_access import (
    get_message,
    get_run,
    get_session,
    open_turns,
    put_active_session,
    put_run,
)
from holdfast.engine.transactions.run_queue import with_lease
from holdfast.ports.store import Change, Tx

MAX_QUEUED: Final = 100  # Turns of one session that wait
MAX_QUEUED_BYTES: Final = 8 * 1024 * 1024  # Of the messages of one session that wait; one alone may have more
MAX_QUEUED_RUNS: Final = 10_000  # Of one owner
_RECORDED: Final = (chat_settings.PROJECT, chat_settings.PERSONA)  # Settings of a run that no client gives it
_REMEDY: Final = "Wait for some to be answered, cancel some, or attach the long text as a file."
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
        """Empty without a key: nothing is compared with it."""
        if self.key is None:
            return ""
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
    budget_inputs: BudgetInputs = NO_INPUTS
    draft: SentDraft | None = None
    titles: bool = True  # Whether a session without a title gets the first words of its first message


@dataclass(frozen=True, slots=True)
class Accepted:
    run: Run
    message: Message  # The user's message
    fresh: bool = True  # False if the idempotency key was known; `run` is then that run as it is now
    stop: tuple[Run, ...] = ()  # Runs whose cancel was requested in the same transaction
    over_budget: Sequence[BudgetState] = ()  # Budgets that are reached and only warn


def find_repeated(tx: Tx, owner: OwnerId, sid: SessionId, options: RunOptions) -> Accepted | None:
    """The turn that was accepted with this idempotency key, if any. Raises KeyReusedError if its body was another, and
    KeyCancelledError if it was canceled before it came."""
    key = options.key
    if key is None:
        return None
    run = tx.run_with_key(owner, sid, key)
    if run is None:
        cancelled_at = tx.key_cancelled_at(sid, key)
        if cancelled_at is not None and cancelled_at > tx.now - KEYS_CANCELLED_FOR:
            raise KeyCancelledError(key)
        return None
    if run.fingerprint != options.fingerprint:
        raise KeyReusedError(key, run.id)
    return Accepted(run, get_message(tx, run.user_message_id), fresh=False)


def submit(tx: Tx, request: TurnRequest) -> Accepted:
    """A new user message at the head; on a busy session as `on_busy` says."""
    session = get_session(tx, request.session_id, request.owner)
    check_files(tx, request.input, request.owner)
    drafts.clear_sent(tx, request.owner, session.id, request.draft)
    others = open_turns(tx, session.id)
    if not others:
        return add_turn(tx, request, session, others, parent=session.head)
    active = [run for run in others if run.in_tree]
    if request.on_busy == "reject":
        raise SessionBusyError(session.id, (active or others)[0].id)
    if len(others) - len(active) >= MAX_QUEUED:
        raise QuotaExceededError("messages in the queue", MAX_QUEUED, "Wait for some to be answered, or cancel them.")
    _check_queued_bytes(tx.queued_bytes(session.id), request.input)
    if request.on_busy == "queue":
        return _enqueue(tx, request, session, rank=max(new_rank(tx), others[-1].rank + 1))
    stop = tuple(set_intent(tx, run, SUPERSEDED) for run in active)
    return replace(_enqueue(tx, request, session, rank=others[0].rank - 1), stop=stop)


def steer(tx: Tx, request: TurnRequest, rid: RunId, *, steerable: bool) -> Accepted:
    """Text for an active run, which takes it at its next step (`engine.transactions.steering`); otherwise the next
    turn."""
    run = get_run(tx, rid, request.owner)
    accepted = submit(tx, request)
    is_active = run.is_open and run.in_tree and run.intent is None
    if not (steerable and is_active) or accepted.run.in_tree:
        return accepted
    first = _move_up(tx, accepted.run, run)
    return replace(accepted, run=put_run(tx, replace(first, steers=rid)))


def _move_up(tx: Tx, added: Run, active: Run) -> Run:
    """What was added to an answer goes before the turns that wait for its end: if nobody reads it, it is answered
    first."""
    behind = [run for run in open_turns(tx, active.session_id) if not run.in_tree and run.rank > active.rank]
    waiting = [run for run in behind if run.steers is None and run.id != added.id]
    ranks = sorted(run.rank for run in (*waiting, added))
    for run, rank in zip(waiting, ranks[1:], strict=True):
        put_run(tx, replace(run, rank=rank))
    return replace(added, rank=ranks[0])


def retry(tx: Tx, request: TurnRequest, mid: MessageId, if_version: int | None = None) -> Accepted:
    """Another answer to the same user message, beside the earlier ones."""
    session = get_session(tx, request.session_id, request.owner, if_version)
    asked = tree.question(tx, session, mid)
    return add_turn(tx, request, session, open_turns(tx, session.id), parent=asked.id, question=asked)


def edit(tx: Tx, request: TurnRequest, mid: MessageId, if_version: int | None = None) -> Accepted:
    """Another version of a user message, as its sibling."""
    session = get_session(tx, request.session_id, request.owner, if_version)
    old = tree.node(tx, session, mid)
    if old.role != "user":
        raise NotAllowedError("edit", "only user messages can be edited")
    check_files(tx, request.input, request.owner)
    return add_turn(tx, request, session, open_turns(tx, session.id), parent=old.parent_id)


def continue_run(tx: Tx, request: TurnRequest, rid: RunId, allow: frozenset[str] = frozenset()) -> Accepted:
    """A new run that goes on where `rid` stopped. Its message takes the earlier one's place in the shown branch. It may
    make the calls in `allow`, which were denied because nobody answered in time."""
    earlier = get_run(tx, rid, request.owner)
    session = get_session(tx, request.session_id, request.owner)
    if others := open_turns(tx, session.id):
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
    if others := open_turns(tx, session.id):
        raise SessionBusyError(session.id, others[0].id)
    check_files(tx, [*(part for message in past for part in message.parts), *request.input], request.owner)
    for message in _not_later_than_now(tx, past):
        tx.put_message(message)
    return add_turn(tx, request, session, others, parent=past[-1].id if past else parent)


def begin(tx: Tx, request: TurnRequest, session: Session, past: Sequence[Message]) -> Accepted:
    """A new session with its history and first turn. With an idempotency key, the caller derives
    its id from the key, so that a repeated call finds it."""
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
    if run.status != "queued" or run.in_tree or run.intent is not None:  # canceled, or taken by a running answer
        raise NotAllowedError("edit the queued message", "it is no longer waiting in the queue")
    check_files(tx, parts, owner)
    earlier = get_message(tx, run.user_message_id)
    _check_queued_bytes(tx.queued_bytes(run.session_id) - json_size(earlier.parts), parts)
    message = replace(earlier, parts=parts)
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


def _settings(
    tx: Tx,
    request: TurnRequest,
    session: Session,
    preferences: Mapping[str, Json],
    question: Message | None,
    recorded: dict[str, Json],
) -> Json:
    """The settings of the new run, with what is `recorded` of its project and its persona. If memory is off for it,
    that is recorded with it: turning memory on again must not remember it, nor an answer to a question that was asked
    while memory was off."""
    settings = request.options.settings
    if not isinstance(settings, dict | None):
        return settings
    asked_by = None if question is None or question.run_id is None else tx.run(question.run_id)
    is_off = memory.is_off(session, preferences, recorded.get(chat_settings.PROJECT)) or (
        asked_by is not None and memory.named_provider(asked_by.settings) == OFF
    )
    given = {name: value for name, value in (settings or {}).items() if name not in _RECORDED}
    merged = {**given, **recorded, **({"memory": OFF} if is_off else {})}
    return merged or (None if settings else settings)


def _new_run(
    tx: Tx,
    request: TurnRequest,
    session: Session,
    rank: int,
    *,
    in_tree: bool,
    question: Message | None = None,
    continues: RunId | None = None,
) -> tuple[Run, Sequence[BudgetState]]:
    """The run, unless a budget refuses it. Every run is made here."""
    options, now, preferences = request.options, tx.now, tx.settings(session.owner)
    agent = options.agent or session.agent
    if continues is None:
        project, project_model = projects.of_turn(tx, session, agent)
        persona = personas.of_turn(tx, session)
    else:  # it goes on with what the earlier run was given
        project, project_model = chat_settings.project_of(options.settings), None
        persona = chat_settings.persona_of(options.settings)
    found = {chat_settings.PROJECT: project, chat_settings.PERSONA: persona}
    recorded = {name: value for name, value in found.items() if value is not None}
    over_budget = budgets.check(tx, session.owner, preferences, request.budget_inputs)
    run = Run(
        id=request.run_id,
        owner=session.owner,
        session_id=session.id,
        message_id=request.message_id,
        user_message_id=request.user_message_id if question is None else question.id,
        agent=agent,
        model=options.model or session.model or project_model,
        settings=_settings(tx, request, session, preferences, question, recorded),
        lifetime=options.lifetime,
        created_at=now,
        rank=rank,
        in_tree=in_tree,
        connection=None if request.attached_by is None else request.attached_by.lease(now),
        key=options.key,
        fingerprint=options.fingerprint,
        continues=continues,
    )
    return run, over_budget


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
        persona=shown(chat_settings.persona_of(run.settings)),
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
    rank = new_rank(tx)
    run, over_budget = _new_run(tx, request, session, rank, in_tree=True, question=question, continues=continues)
    if question is None:
        question = _question(request, run, parent, now)
        tx.add_message(question)
        if request.titles:
            session = _titled(session, question)
    tx.add_message(_answer(run, now))
    session = put_active_session(tx, tree.append(session, run.message_id))
    if request.claimed_by is not None and not others:
        run = with_lease(run, request.claimed_by, tx.now)
    put_run(tx, run)
    return Accepted(run, question, stop=stop_hidden(tx, session, others), over_budget=over_budget)


def _titled(session: Session, question: Message) -> Session:
    """Titled by its first message until a model or a person gives it a title; also by another version of that."""
    if session.titled_by != "nobody" or (session.title and question.parent_id is not None):
        return session
    return replace(session, title=first_words(question.parts) or session.title)


def _check_queue(tx: Tx, owner: OwnerId) -> None:
    if tx.has_queued_runs(owner, MAX_QUEUED_RUNS):
        raise QuotaExceededError("queued runs", MAX_QUEUED_RUNS, "Wait for some to be executed, or cancel them.")


def _check_queued_bytes(others: int, parts: Sequence[Part]) -> None:
    """`others`: the bytes of the session's other queued messages."""
    if others and others + json_size(parts) > MAX_QUEUED_BYTES:
        raise QueueTooLargeError("bytes of queued messages", MAX_QUEUED_BYTES, _REMEDY)


def _enqueue(tx: Tx, request: TurnRequest, session: Session, *, rank: int) -> Accepted:
    """Store the turn outside the tree until its run is claimed."""
    _check_queue(tx, session.owner)
    run, over_budget = _new_run(tx, request, session, rank, in_tree=False)
    question = _question(request, run, None, tx.now)
    tx.add_message(question)
    tx.add_message(_answer(run, tx.now))
    put_active_session(tx, session)
    put_run(tx, run)
    return Accepted(run, question, over_budget=over_budget)
