"""The memory ledger of a session: how many turns were completed, which of them a memory provider was told of, and who
must be told of the rest. Pure: a boundary only says that it is time (`reach`), and a commit is begun, done or failed.

A commit is pinned when it begins: the same turns, the same provider and so the same id until it is done, however often
it fails and whichever process tries. Turns that are completed meanwhile are for the next one.
"""

from collections.abc import Sequence
from typing import Final

from holdfast.core.ids import MessageId, OwnerId, RunId, SessionId
from holdfast.core.parts import Part
from holdfast.core.run import Lease
from holdfast.core.values import dataclass, replace

OFF: Final = "none"
"""The provider of a session of which nothing is to be remembered."""
RESTS: Final = float("inf")
"""`due_at` of a ledger that has been tried often enough: only another boundary wakes it."""


@dataclass(frozen=True, slots=True)
class Policy:
    idle: float = 600.0
    """How long after its last completed turn a session is at a boundary by itself."""
    tries: int = 8
    """Of one boundary. A deleted session is erased after the last one."""
    pause: float = 5.0
    """Before the second try; doubled with each."""
    longest_pause: float = 3600.0
    most_turns: int = 50
    """Of one commit."""


@dataclass(frozen=True, slots=True)
class Words:
    """What was said in a turn whose messages are erased before it was committed."""

    user: tuple[Part, ...]
    assistant: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class DirtyTurn:
    """A completed turn that no provider has been told of. Its row is erased when one has."""

    session_id: SessionId
    owner: OwnerId
    n: int
    """1, 2, 3 … in the order of completion."""
    run_id: RunId
    user_message_id: MessageId
    message_id: MessageId
    said_at: float
    handle: str | None = None
    """The provider that must be told; None: whichever is named first."""
    words: Words | None = None
    """None: the messages have them."""


@dataclass(frozen=True, slots=True)
class Commit:
    """The turns `first` to `last`, on their way to `handle`."""

    handle: str
    first: int
    last: int
    lease: Lease | None = None
    """Who is at it; None: nobody, since it failed."""


@dataclass(frozen=True, slots=True)
class Ledger:
    session_id: SessionId
    owner: OwnerId
    completed: int = 0
    committed: int = 0
    applied: int = 0
    """The last turn whose facts the store itself has (the built-in provider): written with them, so never twice."""
    handle: str | None = None
    """The session's provider, until it is evicted or replaced."""
    told: tuple[str, ...] = ()
    """Providers that were told anything of this session: who has to forget it."""
    commit: Commit | None = None
    boundary: int = 0
    """Up to this turn everything is to be committed now."""
    due_at: float | None = None
    """When somebody has to look. None: there is nothing to do."""
    attempts: int = 0
    last_error: str | None = None
    forget: bool = False
    """Deleted with the wish to be forgotten: nothing is committed any more, and whoever was told forgets."""

    @property
    def dirty(self) -> int:
        return self.completed - self.committed


def commit_id(sid: SessionId, commit: Commit) -> str:
    return f"{sid}/{commit.first}-{commit.last}"


def complete(ledger: Ledger, handle: str | None, now: float, policy: Policy) -> Ledger:
    """M1: one more turn, dirty and not committed. Its number is `completed` of the result."""
    due_at = ledger.due_at
    if ledger.boundary <= ledger.committed or due_at in (None, RESTS):  # nobody is about to commit what there was
        due_at = now + policy.idle
    return replace(ledger, completed=ledger.completed + 1, handle=handle, due_at=due_at)


def reach(ledger: Ledger, now: float) -> Ledger:
    """M2: a boundary. What is dirty now is to be committed; what fails is tried anew from the first pause on."""
    if not ledger.dirty and not ledger.forget:
        return ledger
    return replace(ledger, boundary=ledger.completed, due_at=now, attempts=0)


def ripen(ledger: Ledger, now: float) -> Ledger:
    """Its time has come: idle for long enough is a boundary too. One that is being tried again stays as it is."""
    return ledger if ledger.boundary > ledger.committed or ledger.forget else reach(ledger, now)


def begin(
    ledger: Ledger, turns: Sequence[DirtyTurn], lease: Lease, policy: Policy, named: str | None = None
) -> tuple[Ledger, Commit | None]:
    """Pin a commit, or take up the one that is pinned: the caller has seen that nobody is at it. `turns` are the dirty
    ones in order; `named` is the provider that the caller names, which takes over once the turns of others are
    flushed. No commit: nothing is dirty (M3), or nobody was ever named who could be told."""
    if named is not None:
        ledger = replace(ledger, handle=named)
    if not turns:
        return replace(ledger, commit=None), None
    commit = ledger.commit or _next(ledger, turns, policy)
    if commit is None:
        return ledger, None
    commit = replace(commit, lease=lease)
    told = ledger.told if commit.handle in ledger.told else (*ledger.told, commit.handle)
    return replace(ledger, commit=commit, told=told, boundary=max(ledger.boundary, commit.last)), commit


def _next(ledger: Ledger, turns: Sequence[DirtyTurn], policy: Policy) -> Commit | None:
    """M6: the oldest turns, as far as they belong to the same provider."""
    owner = turns[0].handle
    handle = owner or ledger.handle
    if handle is None:
        return None
    last = turns[0].n
    for turn in turns[1 : policy.most_turns]:
        if turn.handle != owner:
            break
        last = turn.n
    return Commit(handle, turns[0].n, last)


def done(ledger: Ledger, commit: Commit, now: float, policy: Policy) -> Ledger:
    """The provider has it. What came after the boundary stays dirty (M4)."""
    committed = max(ledger.committed, commit.last)
    due_at: float | None = None
    if ledger.forget or committed < ledger.boundary:
        due_at = now
    elif committed < ledger.completed:
        due_at = now + policy.idle
    return replace(ledger, committed=committed, commit=None, due_at=due_at, attempts=0, last_error=None)


def failed(ledger: Ledger, error: str, now: float, policy: Policy) -> Ledger:
    """M5: everything stays dirty, the pinned commit with its provider among it, until it is time to try again."""
    commit = None if ledger.commit is None else replace(ledger.commit, lease=None)
    attempts = ledger.attempts + 1
    return replace(ledger, commit=commit, attempts=attempts, last_error=error, due_at=_again(attempts, now, policy))


def _again(attempts: int, now: float, policy: Policy) -> float:
    if attempts >= policy.tries:
        return RESTS
    return now + min(policy.pause * 2.0 ** (attempts - 1), policy.longest_pause)


def is_spent(ledger: Ledger) -> bool:
    """Whether the last try of this boundary was made in vain."""
    return ledger.due_at == RESTS


def evict(ledger: Ledger) -> Ledger:
    """M9: the handle is gone. Dirty turns keep theirs."""
    return replace(ledger, handle=None)


def discard(ledger: Ledger) -> Ledger:
    """Nothing that is dirty is to be remembered. A commit that somebody is at is left to end."""
    if ledger.commit is not None and ledger.commit.lease is not None:
        return replace(ledger, boundary=min(ledger.boundary, ledger.commit.last), completed=ledger.commit.last)
    return replace(ledger, committed=ledger.completed, commit=None, due_at=None, attempts=0, last_error=None)


def forget(ledger: Ledger, now: float) -> Ledger:
    return replace(ledger, forget=True, due_at=now, attempts=0)


def forgotten(ledger: Ledger) -> Ledger:
    return replace(ledger, forget=False, told=(), due_at=None, commit=None, committed=ledger.completed)
