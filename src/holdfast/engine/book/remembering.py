"""What the ledger of a session goes through, and the facts of the built-in memory. Each function is one transaction or
a step of a larger one; the provider itself is called between `begin` and `finish`, outside of all of them (O4)."""

from collections.abc import Sequence

from holdfast.core import ledger as books
from holdfast.core.ids import FactId, SessionId
from holdfast.core.ledger import OFF, RESTS, Commit, DirtyTurn, Ledger, Policy, Words
from holdfast.core.parts import Json
from holdfast.core.run import Lease, Run, is_live
from holdfast.core.session import Session
from holdfast.core.values import dataclass, replace
from holdfast.engine.book.rows import Me
from holdfast.ports import Batch, Fact, NewFact, RememberedTurn, Tx

_ALL = 1_000_000_000
LEASE = 1.5
"""Times the limit of a commit: how long another node leaves it alone."""
_OWN_WORDS = "="
"""Keys of facts that are about nothing but themselves begin with it."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """That memory is kept, and how."""

    default: str | None
    policy: Policy
    commit_limit: float
    """Seconds for which one commit may take."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """M3: no turn is dirty. `unclaimed`: some are, and no provider was named for them yet."""

    unclaimed: bool = False


@dataclass(frozen=True, slots=True)
class UnderWay:
    """Another node is at it."""


@dataclass(frozen=True, slots=True)
class Begun:
    commit: Commit
    batch: Batch


@dataclass(frozen=True, slots=True)
class Forget:
    """Nothing is to be committed any more; these have to forget."""

    handles: tuple[str, ...]
    ledger: Ledger


Work = Nothing | UnderWay | Begun | Forget


def chosen(settings: Json) -> str | None:
    """The provider that a session or a run names."""
    name = settings.get("memory") if isinstance(settings, dict) else None
    return name if isinstance(name, str) and name else None


def handle_of(tx: Tx, session: Session, run: Run, keeping: Keeping) -> str | None:
    """Who is to remember the run; `OFF`: nobody is. A run may only leave memory out, not choose another provider."""
    if not session.is_kept or OFF in (chosen(run.settings), chosen(session.settings)):
        return OFF
    ledger = tx.ledger(session.id)
    return chosen(session.settings) or (None if ledger is None else ledger.handle) or keeping.default


def complete(tx: Tx, session: Session, run: Run, keeping: Keeping) -> None:
    """M1, M7: in the transaction that settles a run as complete. Of a session or run without memory nothing is kept."""
    handle = handle_of(tx, session, run, keeping)
    if handle == OFF:
        return
    ledger = tx.ledger(session.id) or Ledger(session.id, session.owner)
    ledger = books.complete(ledger, handle, tx.now, keeping.policy)
    tx.put_ledger(ledger)
    answer = (run.id, run.user_message_id, run.message_id)
    tx.put_dirty_turn(DirtyTurn(session.id, session.owner, ledger.completed, *answer, tx.now, handle))


# ---- boundaries ----


def reach(tx: Tx, sid: SessionId) -> int:
    """M2: what is dirty is to be committed now; up to which turn."""
    ledger = tx.ledger(sid)
    if ledger is None:
        return 0
    tx.put_ledger(books.reach(ledger, tx.now))
    return ledger.completed


def ripen(tx: Tx, limit: int) -> list[tuple[SessionId, int]]:
    """Sessions whose time has come, and up to which turn they are to be committed."""
    found = [books.ripen(ledger, tx.now) for ledger in tx.due_ledgers(tx.now, limit)]
    for ledger in found:
        tx.put_ledger(ledger)
    return [(ledger.session_id, ledger.boundary) for ledger in found]


def reach_all(tx: Tx, limit: int) -> int:
    """Everything that an earlier life left dirty."""
    found = tx.due_ledgers(RESTS, limit)
    for ledger in found:
        tx.put_ledger(books.reach(ledger, tx.now))
    return len(found)


def follow(tx: Tx, session: Session) -> None:
    """M2: a new session is the boundary of the one that it names as its predecessor."""
    before = None if session.previous_session_id is None else tx.session(session.previous_session_id)
    if before is not None and before.owner == session.owner:
        reach(tx, before.id)


def clear(tx: Tx, sid: SessionId) -> None:
    """The messages are about to be erased: dirty turns keep their words until they are committed."""
    for turn in tx.dirty_turns(sid, _ALL):
        if turn.words is None:
            tx.put_dirty_turn(replace(turn, words=_words(tx, turn)))
    reach(tx, sid)


def delete(tx: Tx, sid: SessionId, forget: bool) -> None:
    ledger = tx.ledger(sid)
    if ledger is None:
        return
    if not forget:
        tx.put_ledger(books.reach(ledger, tx.now))
    else:
        tx.drop_dirty_turns(sid, ledger.completed)
        tx.put_ledger(books.forget(ledger, tx.now))


def discard(tx: Tx, sid: SessionId) -> None:
    """The session became one of which nothing is remembered: what no provider was told yet, none is told."""
    ledger = tx.ledger(sid)
    if ledger is not None and (ledger.dirty or ledger.handle is not None):
        tx.drop_dirty_turns(sid, ledger.completed)
        tx.put_ledger(replace(books.discard(ledger), handle=None))


def is_over(tx: Tx, sid: SessionId) -> bool:
    """Whether a deleted session may be erased: all of it is committed or forgotten, or the last try was made."""
    ledger = tx.ledger(sid)
    return ledger is None or books.is_spent(ledger) or not (ledger.dirty or ledger.forget)


# ---- a commit ----


def begin(tx: Tx, sid: SessionId, me: Me, keeping: Keeping, named: str | None = None, up_to: int | None = None) -> Work:
    """Decide what the next commit is and hold it; `up_to`: no turn after this one. Only one task of a process calls
    this for a session at a time, so a lease of our own is a leftover."""
    ledger = tx.ledger(sid)
    if ledger is None:
        return Nothing()
    held = None if ledger.commit is None else ledger.commit.lease
    if held is not None and held.holder != me.node and is_live(held, me.incarnation, tx.now):
        return UnderWay()
    if ledger.forget:
        return Forget(ledger.told, ledger)
    lease = Lease(me.node, None if me.lease_time is None else tx.now + keeping.commit_limit * LEASE)
    dirty = tx.dirty_turns(sid, keeping.policy.most_turns)
    turns = [turn for turn in dirty if up_to is None or turn.n <= up_to]
    ledger, commit = books.begin(ledger, turns, lease, keeping.policy, named)
    if commit is None:
        rests = RESTS if turns else ledger.due_at  # those that nobody was named for
        tx.put_ledger(replace(ledger, due_at=rests if dirty else None))
        return Nothing(unclaimed=bool(turns))
    tx.put_ledger(replace(ledger, due_at=tx.now + keeping.commit_limit * LEASE))
    return Begun(commit, _batch(tx, ledger, commit, turns))


def _batch(tx: Tx, ledger: Ledger, commit: Commit, turns: Sequence[DirtyTurn]) -> Batch:
    session, run = tx.session(ledger.session_id), tx.run(turns[0].run_id) if turns else None
    model = None if session is None else session.model
    if model is None and run is not None:
        model = run.model
    remembered = [_remembered(tx, turn) for turn in turns if commit.first <= turn.n <= commit.last]
    return Batch(books.commit_id(ledger.session_id, commit), ledger.owner, ledger.session_id, model, remembered)


def _remembered(tx: Tx, turn: DirtyTurn) -> RememberedTurn:
    words = turn.words or _words(tx, turn)
    return RememberedTurn(turn.n, turn.run_id, turn.message_id, turn.said_at, words.user, words.assistant)


def _words(tx: Tx, turn: DirtyTurn) -> Words:
    user, assistant = tx.message(turn.user_message_id), tx.message(turn.message_id)
    return Words(() if user is None else user.parts, () if assistant is None else assistant.parts)


def finish(tx: Tx, sid: SessionId, commit: Commit, keeping: Keeping) -> None:
    """The provider has it. If another node took the commit over meanwhile, it is that one's to finish."""
    ledger = tx.ledger(sid)
    if ledger is None or ledger.commit != commit:
        return
    tx.drop_dirty_turns(sid, commit.last)
    _changed(tx, books.done(ledger, commit, tx.now, keeping.policy))


def fail(tx: Tx, sid: SessionId, commit: Commit | None, error: str, keeping: Keeping) -> None:
    ledger = tx.ledger(sid)
    if ledger is not None and (commit is None or ledger.commit == commit):
        _changed(tx, books.failed(ledger, error, tx.now, keeping.policy))


def forgotten(tx: Tx, sid: SessionId) -> None:
    ledger = tx.ledger(sid)
    if ledger is not None and ledger.forget:
        tx.put_ledger(books.forgotten(ledger))


def evicted(tx: Tx, sid: SessionId) -> None:
    """M9: the session has no handle any more."""
    ledger = tx.ledger(sid)
    if ledger is not None and ledger.handle is not None:
        tx.put_ledger(books.evict(ledger))


def _changed(tx: Tx, ledger: Ledger) -> None:
    tx.put_ledger(ledger)
    session = tx.session(ledger.session_id)
    if session is not None and session.deleted_at is None:
        tx.add_change("session.changed", ledger.owner, ledger.session_id)


# ---- facts ----


def apply(tx: Tx, batch: Batch, facts: Sequence[NewFact], ids: Sequence[FactId]) -> bool:
    """M11: the facts of a batch and the mark that it is applied, together. False: it was, or the session is gone or to
    be forgotten."""
    ledger = tx.ledger(batch.session_id)
    if ledger is None or ledger.forget or not batch.turns or ledger.applied >= batch.turns[-1].n:
        return False
    for new, fid in zip(facts, ids, strict=True):
        _learn(tx, batch, new, fid)
    tx.put_ledger(replace(ledger, applied=batch.turns[-1].n))
    return True


def _learn(tx: Tx, batch: Batch, new: NewFact, fid: FactId) -> None:
    """A later word about the same thing takes the place of an earlier one, never the other way round."""
    known = tx.fact_with_key(batch.owner, new.key)
    if known is None:
        source = (batch.session_id, new.message_id, new.said_at)
        tx.put_fact(Fact(fid, batch.owner, new.key, new.text, *source, tx.now, tx.now, vector=new.vector))
    elif known.said_at <= new.said_at and known.text != new.text and not new.key.startswith(_OWN_WORDS):
        tx.put_fact(
            replace(
                known,
                text=new.text,
                session_id=batch.session_id,
                message_id=new.message_id,
                said_at=new.said_at,
                updated_at=tx.now,
                vector=new.vector,
            )
        )


def amend(tx: Tx, fact: Fact, text: str | None, pinned: bool | None) -> Fact:
    """A person's word: it stands until something is said later. Who needs the vector of a changed text makes it."""
    changed = fact
    if text is not None and text != fact.text:
        changed = replace(changed, text=text, said_at=tx.now, updated_at=tx.now, vector=b"")
    if pinned is not None:
        changed = replace(changed, pinned=pinned)
    if changed != fact:
        tx.put_fact(changed)
    return tx.fact(fact.id) or changed
