"""Steps of a session's memory ledger, and the facts of the built-in memory. Each function is a transaction or part of
one; the provider is called between `begin` and `finish`, outside any transaction. A turn that was accepted while memory
was off is never remembered (`is_off`)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.core import chat_settings, memory_ledger, memory_scope
from holdfast.core.ids import FactId, MessageId, OwnerId, SessionId
from holdfast.core.lease import Lease, NodeIdentity, is_live
from holdfast.core.memory_ledger import OFF, ON, RESTS, DirtyTurn, Ledger, LedgerPolicy, MemoryCommit, TurnText
from holdfast.core.parts import Json, ToolPart
from holdfast.core.run import Run
from holdfast.core.session import Session
from holdfast.ports.memory import MemoryBatch, NewFact, RememberedTurn
from holdfast.ports.store import Change, Fact, Tx

_ALL = 1_000_000_000
LEASE = 1.5  # A commit's lease lasts this many times its time limit
_UNIQUE = "="  # Prefix of the keys of facts that stand for themselves and never replace each other


@dataclass(frozen=True, slots=True)
class MemoryPolicy:
    """How completed turns are committed to memory."""

    default: str | None
    ledger: LedgerPolicy
    commit_limit: float  # Seconds that one commit may take


@dataclass(frozen=True, slots=True)
class CommitOutcome:
    """The result of one commit. Neither committed nor an error: nothing was due, or another node is committing."""

    committed: int = 0
    provider: str | None = None
    error: str | None = None
    under_way: bool = False
    unclaimed: bool = False  # Turns are dirty, but no provider was ever named for them


@dataclass(frozen=True, slots=True)
class CommitBegun:
    commit: MemoryCommit
    batch: MemoryBatch


@dataclass(frozen=True, slots=True)
class ForgetSession:
    """The session is to be forgotten: nothing is committed any more, and its providers must delete their copies."""

    ledger: Ledger


Work = CommitOutcome | CommitBegun | ForgetSession


def named_provider(settings: Json) -> str | None:
    """The provider that a session or a run names."""
    name = settings.get("memory") if isinstance(settings, dict) else None
    return name if isinstance(name, str) and name else None


def handle_of(tx: Tx, session: Session, run: Run, policy: MemoryPolicy) -> str | None:
    """The provider for the run, or `OFF`. A run may opt out of memory but not choose another provider. Whether the
    owner's defaults turn memory off was recorded with the run when it was accepted, as was its project, which may have
    a memory of its own (`core.memory_scope`)."""
    named = named_provider(session.settings)
    if not session.is_kept or OFF in (named_provider(run.settings), named):
        return OFF
    ledger = tx.ledger(session.id)
    last = None if ledger is None or ledger.handle is None else memory_scope.provider_of(ledger.handle)
    provider = (None if named == ON else named) or last or policy.default
    own = memory_scope.memory_of(run.settings)
    if own is None or provider == OFF:
        return provider
    # Without a provider, one that is named later would put the turn into the memory of all chats.
    return OFF if provider is None else memory_scope.scoped(provider, own[0])


def is_off(session: Session, preferences: Mapping[str, Json], of_project: Json = None) -> bool:
    """Whether memory is off for a turn that is accepted now: the session decides, else its project (as a run records
    it), else the owner's defaults."""
    named = named_provider(session.settings) or named_provider(of_project)
    if named is not None:
        return named == OFF
    return chat_settings.defaults(session, preferences).get("memory") == OFF


def complete(tx: Tx, session: Session, run: Run, policy: MemoryPolicy) -> None:
    """Enter a completed turn into the ledger, in the transaction that settles its run."""
    handle = handle_of(tx, session, run, policy)
    if handle == OFF:
        return
    ledger = tx.ledger(session.id) or Ledger(session.id, session.owner)
    ledger = memory_ledger.complete(ledger, handle, tx.now, policy.ledger)
    tx.put_ledger(ledger)
    answer = (run.id, run.user_message_id, run.message_id)
    tx.put_dirty_turn(DirtyTurn(session.id, session.owner, ledger.completed, *answer, tx.now, handle))


# ---- boundaries ----


def reach_boundary(tx: Tx, sid: SessionId) -> int:
    """A boundary: everything dirty is to be committed now. Returns the last turn."""
    ledger = tx.ledger(sid)
    if ledger is None:
        return 0
    tx.put_ledger(memory_ledger.reach_boundary(ledger, tx.now))
    return ledger.completed


def reach_due_boundaries(tx: Tx, limit: int) -> list[tuple[SessionId, int]]:
    """Sessions that are due, and up to which turn they are to be committed."""
    found = [memory_ledger.reach_due_boundary(ledger, tx.now) for ledger in tx.due_ledgers(tx.now, limit)]
    for ledger in found:
        tx.put_ledger(ledger)
    return [(ledger.session_id, ledger.boundary) for ledger in found]


def reach_all_boundaries(tx: Tx, limit: int) -> None:
    """A boundary for everything that an earlier process left dirty."""
    for ledger in tx.due_ledgers(RESTS, limit):
        tx.put_ledger(memory_ledger.reach_boundary(ledger, tx.now))


def follow(tx: Tx, session: Session) -> None:
    """A new session is a boundary of the session that it names as its predecessor."""
    before = None if session.previous_session_id is None else tx.session(session.previous_session_id)
    if before is not None and before.owner == session.owner:
        reach_boundary(tx, before.id)


def clear(tx: Tx, sid: SessionId) -> None:
    """Before the messages are erased, copy those of dirty turns, which keep them until they are committed."""
    for turn in tx.dirty_turns(sid, _ALL):
        if turn.words is None:
            tx.put_dirty_turn(replace(turn, words=_words(tx, turn)))
    reach_boundary(tx, sid)


def delete(tx: Tx, sid: SessionId, forget: bool) -> None:
    ledger = tx.ledger(sid)
    if ledger is not None and forget:
        tx.drop_dirty_turns(sid, ledger.completed)
        tx.put_ledger(memory_ledger.forget(ledger, tx.now))
    else:
        reach_boundary(tx, sid)


def discard(tx: Tx, sid: SessionId) -> None:
    """Memory was turned off for the session: its dirty turns are not committed."""
    ledger = tx.ledger(sid)
    if ledger is not None and (ledger.dirty or ledger.handle is not None):
        tx.drop_dirty_turns(sid, ledger.completed)
        tx.put_ledger(replace(memory_ledger.discard(ledger), handle=None))


def is_over(tx: Tx, sid: SessionId) -> bool:
    """Whether a deleted session may be erased: it is committed or forgotten, or the last attempt failed."""
    ledger = tx.ledger(sid)
    return ledger is None or memory_ledger.is_spent(ledger) or not (ledger.dirty or ledger.forget)


# ---- a commit ----


def begin(
    tx: Tx, sid: SessionId, me: NodeIdentity, policy: MemoryPolicy, named: str | None = None, up_to: int | None = None
) -> Work:
    """Decide what the next commit is and take its lease; `up_to` is the last turn it may include. A process calls this
    for a session from one task at a time, so a lease of our own is left over."""
    ledger = tx.ledger(sid)
    if ledger is None:
        return CommitOutcome()
    held = None if ledger.commit is None else ledger.commit.lease
    if held is not None and held.holder != me.node and is_live(held, me.incarnation, tx.now):
        return CommitOutcome(under_way=True)
    if ledger.forget:
        return ForgetSession(ledger)
    lease = Lease(me.node, None if me.lease_time is None else tx.now + policy.commit_limit * LEASE)
    dirty = tx.dirty_turns(sid, policy.ledger.most_turns)
    turns = [turn for turn in dirty if up_to is None or turn.n <= up_to]
    ledger, commit = memory_ledger.begin(ledger, turns, lease, policy.ledger, named)
    if commit is None:
        rests = RESTS if turns else ledger.due_at  # no provider was named for them
        tx.put_ledger(replace(ledger, due_at=rests if dirty else None))
        return CommitOutcome(unclaimed=bool(turns))
    tx.put_ledger(replace(ledger, due_at=tx.now + policy.commit_limit * LEASE))
    return CommitBegun(commit, _batch(tx, ledger, commit, turns))


def _batch(tx: Tx, ledger: Ledger, commit: MemoryCommit, turns: Sequence[DirtyTurn]) -> MemoryBatch:
    sid = ledger.session_id
    session, run = tx.session(sid), tx.run(turns[0].run_id) if turns else None
    model = (session and session.model) or (run and run.model) or None
    remembered = [_remembered(tx, turn) for turn in turns if commit.first <= turn.n <= commit.last]
    owner = memory_scope.owner_of(ledger.owner, memory_scope.project_of(commit.handle))
    return MemoryBatch(memory_ledger.commit_id(sid, commit), owner, sid, model, remembered)


def _remembered(tx: Tx, turn: DirtyTurn) -> RememberedTurn:
    words = turn.words or _words(tx, turn)
    external = any(isinstance(part, ToolPart) for part in words.assistant)
    answer = () if external else words.assistant
    return RememberedTurn(turn.n, turn.run_id, turn.message_id, turn.said_at, words.user, answer, external)


def _words(tx: Tx, turn: DirtyTurn) -> TurnText:
    user, assistant = tx.message(turn.user_message_id), tx.message(turn.message_id)
    return TurnText(() if user is None else user.parts, () if assistant is None else assistant.parts)


def finish(tx: Tx, sid: SessionId, commit: MemoryCommit, policy: MemoryPolicy) -> None:
    """The provider has committed. If another node has taken the commit over, that node finishes it."""
    ledger = tx.ledger(sid)
    if ledger is None or ledger.commit != commit:
        return
    tx.drop_dirty_turns(sid, commit.last)
    _changed(tx, memory_ledger.done(ledger, commit, tx.now, policy.ledger))


def fail(tx: Tx, sid: SessionId, commit: MemoryCommit | None, error: str, policy: MemoryPolicy) -> None:
    ledger = tx.ledger(sid)
    if ledger is not None and (commit is None or ledger.commit == commit):
        _changed(tx, memory_ledger.failed(ledger, error, tx.now, policy.ledger))


def forgotten(tx: Tx, sid: SessionId) -> None:
    ledger = tx.ledger(sid)
    if ledger is not None and ledger.forget:
        tx.put_ledger(memory_ledger.forgotten(ledger))


def evicted(tx: Tx, sid: SessionId) -> None:
    """The session no longer has a provider."""
    ledger = tx.ledger(sid)
    if ledger is not None and ledger.handle is not None:
        tx.put_ledger(memory_ledger.evict(ledger))


def _changed(tx: Tx, ledger: Ledger) -> None:
    tx.put_ledger(ledger)
    session = tx.session(ledger.session_id)
    if session is not None and session.deleted_at is None:
        tx.add_change(Change("session.changed", ledger.owner, ledger.session_id))


# ---- facts ----


def apply(tx: Tx, batch: MemoryBatch, facts: Sequence[NewFact], ids: Sequence[FactId]) -> bool:
    """Store the facts of a batch and mark it as applied. False if it was before, or the session is gone or forgotten.
    The facts of a project's own memory are dropped if the project was deleted."""
    ledger = tx.ledger(batch.session_id)
    if ledger is None or ledger.forget or not batch.turns or ledger.applied >= batch.turns[-1].n:
        return False
    pid = memory_scope.project_of_owner(batch.owner)
    if pid is None or ((found := tx.project(pid)) is not None and found.removal is None):
        for new, fid in zip(facts, ids, strict=True):
            _learn(tx, batch, new, fid)
    tx.put_ledger(replace(ledger, applied=batch.turns[-1].n))
    return True


def _learn(tx: Tx, batch: MemoryBatch, new: NewFact, fid: FactId) -> None:
    """A later statement about the same subject replaces an earlier one, never the other way round."""
    known = tx.fact_with_key(batch.owner, new.key)
    if known is None:
        source = (batch.session_id, new.message_id, new.said_at)
        tx.put_fact(Fact(fid, batch.owner, new.key, new.text, *source, tx.now, tx.now, vector=new.vector))
    elif known.said_at <= new.said_at and known.text != new.text and not new.key.startswith(_UNIQUE):
        known = replace(known, text=new.text, vector=new.vector, updated_at=tx.now, confirmed=False)
        tx.put_fact(replace(known, session_id=batch.session_id, message_id=new.message_id, said_at=new.said_at))


def note(tx: Tx, owner: OwnerId, fid: FactId, text: str) -> Fact:
    """What a person wrote down: confirmed, from no session, and never replaced by what they say later."""
    key = _UNIQUE + hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()
    known = tx.fact_with_key(owner, key)
    if known is not None and known.text == text:
        return known
    if known is not None:
        key = _UNIQUE + fid  # that one has another text by now
    fact = Fact(fid, owner, key, text, SessionId(""), MessageId(""), tx.now, tx.now, tx.now, confirmed=True)
    tx.put_fact(fact)
    return tx.fact(fid) or fact


def amend(tx: Tx, fact: Fact, text: str | None, pinned: bool | None, confirmed: bool | None = None) -> Fact:
    """A person's correction; a later statement may replace it. The vector of a changed text is computed on demand. Who
    edits or pins a fact has confirmed it."""
    if confirmed is None:
        confirmed = fact.confirmed or text is not None or bool(pinned)
    changed = replace(fact, confirmed=confirmed)
    if text is not None and text != fact.text:
        changed = replace(changed, text=text, said_at=tx.now, updated_at=tx.now, vector=b"")
    if pinned is not None:
        changed = replace(changed, pinned=pinned)
    if changed != fact:
        tx.put_fact(changed)
    return tx.fact(fact.id) or changed
