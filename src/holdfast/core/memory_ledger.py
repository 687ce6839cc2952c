"""The memory ledger of a session: which completed turns are committed to memory, and which are still dirty. Pure.
Whether a turn is remembered at all: `engine.transactions.memory`. `LedgerPolicy` says when a session is idle, how often
a failed commit is repeated, and how many turns one has.

A boundary (`reach_boundary`) makes dirty turns due; a commit is then begun, and is done or fails. A commit is fixed
when it begins: it keeps its turns, provider and id until it is done, however often it fails and whichever process
tries. Turns that are completed meanwhile belong to the next commit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from holdfast.core.ids import MessageId, OwnerId, RunId, SessionId
from holdfast.core.lease import Lease
from holdfast.core.parts import Part

OFF: Final = "none"  # The provider name that turns memory off for a session
ON: Final = "default"  # The provider name that turns memory on, with the server's own provider
RESTS: Final = float("inf")  # `due_at` of a ledger whose attempts are used up: only another boundary makes it due


@dataclass(frozen=True, slots=True)
class LedgerPolicy:
    idle: float = 600.0  # Seconds after the last completed turn at which an idle session reaches a boundary
    tries: int = 8  # Attempts per boundary. A deleted session is erased after the last one.
    pause: float = 5.0  # Seconds before the second attempt; doubled with each
    longest_pause: float = 3600.0
    most_turns: int = 50  # Most turns of one commit


@dataclass(frozen=True, slots=True)
class TurnText:
    """The text of a turn whose messages were erased before it was committed."""

    user: tuple[Part, ...]
    assistant: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class DirtyTurn:
    """A completed turn that is not committed yet. Its row is deleted when it is."""

    session_id: SessionId
    owner: OwnerId
    n: int  # 1, 2, 3 … in the order of completion
    run_id: RunId
    user_message_id: MessageId
    message_id: MessageId
    said_at: float
    handle: str | None = None  # The provider to commit to; None: the next one that is named
    words: TurnText | None = None  # None while the messages have the text


@dataclass(frozen=True, slots=True)
class MemoryCommit:
    """A commit of the turns `first` to `last` to the provider `handle`."""

    handle: str
    first: int
    last: int
    lease: Lease | None = None  # The node that is committing; None after a failure


@dataclass(frozen=True, slots=True)
class Ledger:
    session_id: SessionId
    owner: OwnerId
    completed: int = 0
    committed: int = 0
    applied: int = 0  # The last turn whose facts the built-in provider stored, in the same transaction
    handle: str | None = None  # The session's provider, until it is evicted or replaced
    told: tuple[str, ...] = ()  # Providers that have turns of this session, and would have to forget it
    commit: MemoryCommit | None = None
    boundary: int = 0  # Turns up to this one are to be committed now
    due_at: float | None = None  # When the next commit is due; None if nothing is
    attempts: int = 0
    last_error: str | None = None
    forget: bool = False  # Deleted with `forget`: nothing more is committed, and the providers forget the session

    @property
    def dirty(self) -> int:
        return self.completed - self.committed


def commit_id(sid: SessionId, commit: MemoryCommit) -> str:
    return f"{sid}/{commit.first}-{commit.last}"


def complete(ledger: Ledger, handle: str | None, now: float, policy: LedgerPolicy) -> Ledger:
    """Add a dirty turn. Its number is `completed` of the result."""
    due_at = ledger.due_at
    if ledger.boundary <= ledger.committed or due_at in (None, RESTS):  # no commit is due
        due_at = now + policy.idle
    return replace(ledger, completed=ledger.completed + 1, handle=handle, due_at=due_at)


def reach_boundary(ledger: Ledger, now: float) -> Ledger:
    """A boundary: dirty turns become due, and attempts are counted anew."""
    if not ledger.dirty and not ledger.forget:
        return ledger
    return replace(ledger, boundary=ledger.completed, due_at=now, attempts=0)


def reach_due_boundary(ledger: Ledger, now: float) -> Ledger:
    """A due ledger that is idle reaches a boundary. One whose commit is being retried stays as it is."""
    return ledger if ledger.boundary > ledger.committed or ledger.forget else reach_boundary(ledger, now)


def begin(
    ledger: Ledger, turns: Sequence[DirtyTurn], lease: Lease, policy: LedgerPolicy, named: str | None = None
) -> tuple[Ledger, MemoryCommit | None]:
    """Begin a commit of the dirty `turns`, or resume the one that failed; nobody else may be committing. `named`
    becomes the provider of later turns. Returns no commit if nothing is dirty or no provider was ever named."""
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


def _next(ledger: Ledger, turns: Sequence[DirtyTurn], policy: LedgerPolicy) -> MemoryCommit | None:
    """The oldest turns that belong to the same provider."""
    owner = turns[0].handle
    handle = owner or ledger.handle
    if handle is None:
        return None
    last = turns[0].n
    for turn in turns[1 : policy.most_turns]:
        if turn.handle != owner:
            break
        last = turn.n
    return MemoryCommit(handle, turns[0].n, last)


def done(ledger: Ledger, commit: MemoryCommit, now: float, policy: LedgerPolicy) -> Ledger:
    """The provider has committed. Turns after the boundary stay dirty."""
    committed = max(ledger.committed, commit.last)
    due_at: float | None = None
    if ledger.forget or committed < ledger.boundary:
        due_at = now
    elif committed < ledger.completed:
        due_at = now + policy.idle
    return replace(ledger, committed=committed, commit=None, due_at=due_at, attempts=0, last_error=None)


def failed(ledger: Ledger, error: str, now: float, policy: LedgerPolicy) -> Ledger:
    """Everything stays dirty, and the commit keeps its turns and provider, until the next attempt."""
    commit = None if ledger.commit is None else replace(ledger.commit, lease=None)
    attempts = ledger.attempts + 1
    pause = min(policy.pause * 2.0 ** (attempts - 1), policy.longest_pause)
    due_at = RESTS if attempts >= policy.tries else now + pause
    return replace(ledger, commit=commit, attempts=attempts, last_error=error, due_at=due_at)


def is_spent(ledger: Ledger) -> bool:
    """Whether the last attempt of this boundary has failed."""
    return ledger.due_at == RESTS


def evict(ledger: Ledger) -> Ledger:
    """Forget the session's provider. Dirty turns keep theirs."""
    return replace(ledger, handle=None)


def discard(ledger: Ledger) -> Ledger:
    """Drop what is dirty. A commit that is under way may finish."""
    if ledger.commit is not None and ledger.commit.lease is not None:
        return replace(ledger, boundary=min(ledger.boundary, ledger.commit.last), completed=ledger.commit.last)
    return replace(ledger, committed=ledger.completed, commit=None, due_at=None, attempts=0, last_error=None)


def forget(ledger: Ledger, now: float) -> Ledger:
    return replace(ledger, forget=True, due_at=now, attempts=0)


def forgotten(ledger: Ledger) -> Ledger:
    return replace(ledger, forget=False, told=(), due_at=None, commit=None, committed=ledger.completed)
