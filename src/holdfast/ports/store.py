"""The store port: transactions over sessions, messages, runs, approvals, memory, files and the change feed."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from holdfast.core.events import Decision
from holdfast.core.ids import ApprovalId, FactId, FileId, MessageId, NodeId, OwnerId, RunId, SessionId
from holdfast.core.lease import Lease
from holdfast.core.memory_ledger import DirtyTurn, Ledger
from holdfast.core.parts import FilePart, Json
from holdfast.core.run import Run
from holdfast.core.session import Compaction, Message, Session

T = TypeVar("T")

ChangeKind = Literal["session.changed", "session.deleted", "run.changed", "approval.changed"]

# ---- values: sessions, messages and runs are those of core ----


@dataclass(frozen=True, slots=True)
class SessionQuery:
    owner: OwnerId
    archived: bool = False
    project: str | None = None
    limit: int = 50
    before: tuple[float, SessionId] | None = None  # Only sessions after this (updated_at, id) in the list
    comparisons: bool | None = None  # Only sessions of comparisons, or only others; see `core.session.COMPARE`


@dataclass(frozen=True, slots=True)
class RunQuery:
    owner: OwnerId
    session_id: SessionId | None = None
    status: Collection[str] | None = None
    limit: int = 50
    before: tuple[float, RunId] | None = None  # Only runs after this (created_at, id) in the list


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message or title that matches a search. `at` orders hits by recency and is the cursor for the next page."""

    session: Session
    message_id: MessageId | None
    excerpt: str
    at: int


@dataclass(frozen=True, slots=True)
class Approval:
    """A question to a person. The row is the truth of the decision; the journal repeats it."""

    id: ApprovalId
    owner: OwnerId
    run_id: RunId
    session_id: SessionId
    call_id: str
    name: str
    args: Json
    reason: str
    created_at: float
    decision: Decision | None = None
    decided_at: float | None = None
    note: str | None = None  # Why it was decided, if no person decided it


@dataclass(frozen=True, slots=True)
class ToolGrant:
    """A person's permission for a tool in one session, or in all (None), within `scope` unless that is empty."""

    owner: OwnerId
    session_id: SessionId | None
    tool: str
    scope: str
    created_at: float


@dataclass(frozen=True, slots=True)
class Fact:
    """A piece of knowledge, as the built-in memory keeps it."""

    id: FactId
    owner: OwnerId
    key: str  # The subject. An owner has one fact per key: a later one replaces the earlier one.
    text: str
    session_id: SessionId
    message_id: MessageId  # The answer of the turn it came from. Session and message may be deleted by now.
    said_at: float
    created_at: float
    updated_at: float
    pinned: bool = False
    confirmed: bool = False  # A person has confirmed, edited or pinned it as it is now
    vector: bytes = b""
    n: int = 0  # Assigned by the store at every write, larger than all before: the order of lists and a cursor


@dataclass(frozen=True, slots=True)
class StoredFile:
    id: FileId
    owner: OwnerId
    sha256: str
    name: str
    media_type: str
    size: int
    created_at: float

    def part(self) -> FilePart:
        return FilePart(self.id, self.name, self.media_type, self.size)


@dataclass(frozen=True, slots=True)
class Change:
    """A row of the change feed."""

    kind: ChangeKind
    owner: OwnerId
    session_id: SessionId
    run_id: RunId | None = None
    approval_id: ApprovalId | None = None
    status: str | None = None
    n: int = 0  # Assigned by the store: the order of the feed and a cursor


class SessionRows(Protocol):
    """Sessions, messages and search."""

    def session(self, sid: SessionId) -> Session | None: ...
    def put_session(self, session: Session) -> None:
        """Insert or replace a session; also updates the search entry of its title and tags."""

    def sessions(self, query: SessionQuery) -> Sequence[Session]:
        """List sessions, newest activity first, without deleted ones."""

    def deleted_sessions(self, limit: int) -> Sequence[SessionId]:
        """List deleted sessions whose rows are not erased yet."""

    def drop_session(self, sid: SessionId) -> None:
        """Erase a session with everything that belongs to it except facts."""

    def message(self, mid: MessageId) -> Message | None: ...
    def add_message(self, message: Message) -> None:
        """`put_message` of one whose id is new."""

    def put_message(self, message: Message) -> None:
        """Insert or replace a message and its search entry, unless it is streaming or outside the tree."""

    def children(self, sid: SessionId, parent: MessageId | None) -> Sequence[MessageId]:
        """List the messages in the tree below `parent`, oldest first (creation time, then id)."""

    def drop_messages(self, sid: SessionId) -> None:
        """Erase all messages of a session, their search entries and compactions, but not turns outside the tree."""

    def compactions(self, sid: SessionId) -> Mapping[MessageId, Compaction]: ...
    def put_compaction(self, compaction: Compaction) -> None:
        """Insert or replace the compaction of a session at one message."""

    def search(self, owner: OwnerId, text: str, limit: int, before: int | None) -> Sequence[SearchHit]:
        """Find sessions where the title and tags, or one message, contain all words, each once with its newest hit,
        newest first."""


class RunRows(Protocol):
    """Runs, and the queue of journals to erase."""

    def run(self, rid: RunId) -> Run | None: ...
    def put_run(self, run: Run) -> None:
        """Insert or replace a run. StorageError: another run of this owner and session has the key."""

    def drop_run(self, rid: RunId) -> None:
        """Erase a run and its approvals."""

    def renew_leases(self, lease: Lease, held: Collection[RunId], connections: Collection[RunId]) -> Sequence[Run]:
        """Renew the leases in `held` that the same holder still has, and set the connection lease of every run in
        `connections`, in one statement. Returns the named runs that are open, as they are now, in no order."""

    def run_with_key(self, owner: OwnerId, sid: SessionId, key: str) -> Run | None: ...
    def open_runs(self, sid: SessionId) -> Sequence[Run]:
        """List the queued, running and waiting runs of a session by rank."""

    def all_open_runs(self, limit: int, after: RunId | None = None) -> Sequence[Run]:
        """List open runs of all sessions by id."""

    def pending_runs(self, limit: int, sid: SessionId | None = None) -> Sequence[Run]:
        """List runs whose recovery is pending, oldest `since` first."""

    def claimable_runs(self, limit: int) -> Sequence[Run]:
        """List queued runs without an intent whose session has no running or waiting run and no queued run ahead of
        them, by rank. A queued run in the tree goes ahead of all that are not."""

    def runs(self, query: RunQuery) -> Sequence[Run]:
        """List runs, newest first by (created_at, id)."""

    def has_queued_runs(self, owner: OwnerId, count: int) -> bool:
        """Whether the owner has at least `count` queued runs, `count` being positive."""

    def prunable_runs(self, ended_before: float, limit: int) -> Sequence[RunId]:
        """List ended runs whose journal may be pruned. A run whose output was never found keeps its journal."""

    def queue_purges(self, rids: Iterable[RunId]) -> None:
        """Queue journals for erasure, in the transaction that deletes the rows of their runs."""

    def queued_purges(self, limit: int) -> Sequence[RunId]: ...
    def drop_purges(self, rids: Iterable[RunId]) -> None:
        """Remove journals from the queue after they are erased."""


class ApprovalRows(Protocol):
    """Approvals, tool grants, and settings of owners."""

    def approval(self, aid: ApprovalId) -> Approval | None: ...
    def put_approval(self, approval: Approval) -> None: ...
    def open_approvals(self, rid: RunId) -> Sequence[Approval]:
        """List the undecided approvals of a run, oldest first."""

    def undecided_approvals(self, created_before: float, limit: int) -> Sequence[Approval]:
        """List undecided approvals of all runs, oldest first."""

    def grants(self, owner: OwnerId, sid: SessionId | None) -> Sequence[ToolGrant]:
        """List the grants that apply in a session, its own and those for all (`sid` None: only those), oldest first."""

    def put_grant(self, grant: ToolGrant) -> None:
        """Insert a grant; an existing one of the same owner, session, tool and scope remains as it is."""

    def drop_grant(self, owner: OwnerId, sid: SessionId | None, tool: str, scope: str) -> None: ...

    def settings(self, owner: OwnerId) -> Mapping[str, Json]: ...
    def put_setting(self, owner: OwnerId, name: str, value: Json) -> None:
        """Set an owner's setting; None removes it."""


class MemoryRows(Protocol):
    """Memory ledgers, dirty turns and facts."""

    def ledger(self, sid: SessionId) -> Ledger | None: ...
    def put_ledger(self, ledger: Ledger) -> None: ...
    def due_ledgers(self, by: float, limit: int) -> Sequence[Ledger]:
        """List ledgers whose `due_at` is not later than `by`, the earliest first (then by session id)."""

    def dirty_turns(self, sid: SessionId, limit: int) -> Sequence[DirtyTurn]:
        """List the turns of a session that are not committed to memory yet, by n."""

    def put_dirty_turn(self, turn: DirtyTurn) -> None:
        """Insert or replace the turn of its session and n."""

    def drop_dirty_turns(self, sid: SessionId, last: int) -> None:
        """Erase the turns up to and including `last`."""

    def fact(self, fid: FactId) -> Fact | None: ...
    def fact_with_key(self, owner: OwnerId, key: str) -> Fact | None: ...
    def put_fact(self, fact: Fact) -> None:
        """Insert or replace a fact under a new `n`, never smaller than a visible one, and update its search entry.
        StorageError: another fact of this owner has the key."""

    def drop_fact(self, fid: FactId) -> None: ...
    def drop_session_facts(self, sid: SessionId) -> None:
        """Erase all facts that came from the session."""

    def facts(
        self, owner: OwnerId, limit: int, *, text: str = "", prefix: bool = False, before: int | None = None
    ) -> Sequence[Fact]:
        """List facts, newest first (n); with `text`, those that contain all its words, with `prefix` the last as a
        prefix. A text without words matches nothing."""

    def facts_after(self, owner: OwnerId, n: int, limit: int) -> Sequence[Fact]:
        """List facts written after `n`, the smallest first."""


class FileRows(Protocol):
    """Attached files."""

    def file(self, fid: FileId) -> StoredFile | None: ...
    def put_file(self, file: StoredFile) -> None: ...
    def orphan_files(self, created_before: float, limit: int) -> Sequence[StoredFile]:
        """List files that no message refers to, oldest first."""

    def drop_file(self, fid: FileId) -> None: ...
    def digest_in_use(self, sha256: str) -> bool:
        """Whether any file row has this content."""


class ChangeRows(Protocol):
    """The change feed."""

    def add_change(self, change: Change) -> None:
        """Add a change in the transaction that makes it. Its number is hidden while a smaller one can still commit."""

    def changes(self, after: int, limit: int) -> Sequence[Change]:
        """List visible changes after a cursor, by n."""

    def change_bounds(self) -> tuple[int, int]:
        """(the smallest cursor from which no change is missing, the largest visible n)."""

    def changes_held_back(self) -> bool:
        """Whether there are committed changes that are not visible yet and will be in a moment, without a wake-up."""

    def trim_changes(self, keep: int) -> None:
        """Erase all but the newest `keep` changes."""


class Tx(SessionRows, RunRows, ApprovalRows, MemoryRows, FileRows, ChangeRows, Protocol):
    """One transaction, as the synchronous function inside it sees it. Reads see the transaction's own writes.

    `put_*` writes the whole value (insert or replace by id). Deleted sessions are returned like others: `deleted_at`
    marks them. Only `engine.transactions` calls the writing half."""

    @property
    def now(self) -> float:
        """The store's clock, the only one that judges leases."""


class Store(Protocol):
    """Durable storage of accepted work. A transaction is a synchronous function. It may run on another thread and more
    than once (a conflict is retried inside), so its only effects are those on `tx`, and it returns plain values."""

    @property
    def generation(self) -> str:
        """Changes whenever change numbers may have started over, as after restoring a backup."""

    @property
    def incarnation(self) -> NodeId | None:
        """The only node that can be alive, if the storage itself excludes all others; None if leases lapse."""

    async def transact(self, work: Callable[[Tx], T]) -> T:
        """Commit all of `work` durably, or nothing. Raises what `work` raises; StorageError: the outcome is unknown."""

    async def read(self, work: Callable[[Tx], T]) -> T:
        """Run `work` on one snapshot without writing."""

    def free_bytes(self) -> int | None:
        """Free space on the medium, or None if unknown."""

    async def close(self) -> None: ...
