"""The store port: transactions over sessions, messages, runs, approvals, memory, files, shares and the change feed.
What each transaction writes: `engine.transactions`."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

from holdfast.core.events import Decision
from holdfast.core.ids import (
    ApprovalId,
    FactId,
    FileId,
    MessageId,
    NodeId,
    OwnerId,
    ProjectId,
    RunId,
    SessionId,
    ShareId,
    SubscriptionId,
)
from holdfast.core.lease import Lease
from holdfast.core.memory_ledger import DirtyTurn, Ledger
from holdfast.core.parts import FilePart, Json
from holdfast.core.project import Project
from holdfast.core.run import Run
from holdfast.core.session import Compaction, Message, Role, Session
from holdfast.core.shares import Share
from holdfast.core.usage import UsageSum

T = TypeVar("T")

ChangeKind = Literal["session.changed", "session.deleted", "run.changed", "approval.changed", "project.changed"]

# ---- values: sessions, messages and runs are those of core ----


@dataclass(frozen=True, slots=True)
class SessionQuery:
    owner: OwnerId
    archived: bool = False
    project: str | None = None
    limit: int = 50
    before: tuple[float, SessionId] | None = None  # Only sessions after this (updated_at, id) in the list
    comparisons: bool | None = None  # Only sessions of comparisons, or only others; see `core.session.COMPARE`
    archived_projects: bool = True  # False: without the sessions of archived projects


@dataclass(frozen=True, slots=True)
class ProjectQuery:
    owner: OwnerId
    archived: bool = False
    limit: int = 50
    after: tuple[str, ProjectId] | None = None  # Only projects after this (name, id) in the list


SettingPath = tuple[str, ...]
"""Names that lead to a value inside the settings of a run. They become part of a statement: constants only."""


@dataclass(frozen=True, slots=True)
class RunQuery:
    owner: OwnerId
    session_id: SessionId | None = None
    status: Collection[str] | None = None
    limit: int = 50
    before: tuple[float, RunId] | None = None  # Only runs after this (created_at, id) in the list
    oldest_first: bool = False
    among_newest: int | None = None  # Only so many of the owner's newest runs with the first status
    settings_with: Mapping[SettingPath, str | None] = field(default_factory=dict)
    """Only runs whose settings have these texts at these paths; None: any value but null."""
    settings_without: Collection[SettingPath] = ()  # Only runs whose settings have nothing there, or null


@dataclass(frozen=True, slots=True)
class RunTimes:
    """When a run started and ended, if it has."""

    started_at: float | None
    ended_at: float | None


UsageGrouping = Literal["day", "model", "project"]


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """Which runs are summed: those of the owner that ended in this time and reported what they used. The times begin
    with a quarter of an hour (`core.usage.QUARTER`)."""

    owner: OwnerId
    since: float
    until: float  # Runs that ended at this moment are left out
    by: UsageGrouping = "model"
    utc_offset: float = 0.0  # Seconds that the time zone of the days is ahead of UTC
    session_id: SessionId | None = None  # Only its runs, whoever its owner is, without those that were erased


@dataclass(frozen=True, slots=True)
class PathEntry:
    """A message of a path, without its contents."""

    id: MessageId
    role: Role
    run_id: RunId | None


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
    message_id: MessageId  # The answer of the turn it came from. Session and message may be deleted by now; both are
    # empty if a person added it by hand.
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


PushKind = Literal["done", "failed", "approval"]


@dataclass(frozen=True, slots=True)
class PushSubscription:
    """A browser that is sent notifications, as its push service named it (RFC 8030), and what it is told."""

    id: SubscriptionId
    owner: OwnerId
    endpoint: str  # Where messages to it are sent; unique
    p256dh: str  # Its public key and secret, which messages are encrypted with (RFC 8291), as base64url
    auth: str
    device: str  # Such as "Firefox on Linux"
    credential: str | None  # The login or token that it was made with; None: of a server without a password
    done: bool
    failed: bool
    approval: bool
    shows_title: bool  # Whether notifications contain the title of the chat
    created_at: float
    succeeded_at: float | None = None  # The last message that its push service accepted
    failed_at: float | None = None
    failure: str | None = None  # Why the last one was not accepted; None if it was


@dataclass(frozen=True, slots=True)
class PushMessage:
    """A row of the outbox: a notification that a subscription is still to be sent. Whoever sends it moves `due_at`,
    which keeps others from sending it until then."""

    subscription_id: SubscriptionId
    tag: str  # The run, or the question: a repeat of the message, or a newer one with the tag, replaces it
    owner: OwnerId
    kind: PushKind
    session_id: SessionId
    run_id: RunId
    created_at: float
    due_at: float
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """A row of the change feed."""

    kind: ChangeKind
    owner: OwnerId
    session_id: SessionId  # Empty if a project changed: the list of projects is to be read again
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

    def session_ids(self, owner: OwnerId) -> Sequence[SessionId]:
        """All that are not deleted, newest activity first, archived ones last."""

    def deleted_sessions(self, limit: int) -> Sequence[SessionId]:
        """List deleted sessions whose rows are not erased yet."""

    def drop_session(self, sid: SessionId) -> None:
        """Erase a session with everything that belongs to it, except facts and what its runs used."""

    def message(self, mid: MessageId) -> Message | None: ...
    def known_messages(self, sid: SessionId, mids: Collection[MessageId]) -> Collection[MessageId]:
        """Those of the ids that messages of the session have, in no order; `mids` should be a few hundred at most."""

    def message_within(self, mid: MessageId, max_bytes: int) -> Message | None:
        """The message. It is without parts if those have more bytes as JSON."""

    def path(self, mid: MessageId) -> Sequence[PathEntry]:
        """List the messages from the root to this one, oldest first, without their contents. A message that is not in
        the tree has no path."""

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
        """Erase a run and its approvals. What it used is still counted by `usage`."""

    def renew_leases(self, lease: Lease, held: Collection[RunId], connections: Collection[RunId]) -> Sequence[Run]:
        """Renew the leases in `held` that the same holder still has, and set the connection lease of every run in
        `connections`, in one statement. Returns the named runs that are open, as they are now, in no order."""

    def run_with_key(self, owner: OwnerId, sid: SessionId, key: str) -> Run | None: ...
    def cancel_key(self, sid: SessionId, key: str) -> None:
        """Note that a request with this idempotency key is to be refused; a repeat changes its time."""

    def key_cancelled_at(self, sid: SessionId, key: str) -> float | None: ...
    def count_cancelled_keys(self, sid: SessionId) -> int: ...
    def trim_cancelled_keys(self, sid: SessionId, before: float) -> None:
        """Forget the canceled keys of a session that were noted before this time."""

    def open_runs(self, sid: SessionId) -> Sequence[Run]:
        """List the queued, running and waiting runs of a session by rank."""

    def all_open_runs(self, limit: int, after: RunId | None = None) -> Sequence[Run]:
        """List open runs of all sessions by id."""

    def pending_runs(self, limit: int, sid: SessionId | None = None) -> Sequence[Run]:
        """List runs whose recovery is pending, oldest `since` first."""

    def claimable_runs(self, limit: int) -> Sequence[Run]:
        """List queued runs without an intent whose session has no running or waiting run and no queued run ahead of
        them, by rank. A queued run in the tree goes ahead of all that are not; one that another run has taken
        (`Run.is_taken`) is ahead of none."""

    def shown_open_runs(self, sid: SessionId) -> Sequence[Run]:
        """`open_runs`, with `UNREAD_SETTINGS`."""

    def runs(self, query: RunQuery) -> Sequence[Run]:
        """List runs, newest first by (created_at, id), with `UNREAD_SETTINGS`."""

    def run_times(self, rids: Collection[RunId]) -> Mapping[RunId, RunTimes]:
        """The times of those of the runs that exist, in one statement; `rids` should be a few hundred at most."""

    def count_open_runs(self) -> Mapping[str, int]:
        """How many runs have each open status; statuses that none has are left out."""

    def queued_bytes(self, sid: SessionId) -> int:
        """How many bytes the user messages of a session's turns outside the tree have as JSON, without the ended."""

    def has_queued_runs(self, owner: OwnerId, count: int) -> bool:
        """Whether the owner has at least `count` queued runs, `count` being positive."""

    def usage(self, query: UsageQuery) -> Sequence[UsageSum]:
        """Sum what runs used, also those whose rows were erased since, per group and model, in no order. The model of a
        run without one is `agent:` and the name of its agent; a session without a project has the project ''."""

    def trim_erased_usage(self, ended_before: float) -> None:
        """Forget what runs used that ended before this time and whose rows are erased."""

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
        """List files that no message, share or project refers to, oldest first."""

    def drop_file(self, fid: FileId) -> None: ...
    def digest_in_use(self, sha256: str) -> bool:
        """Whether any file row has this content."""


class ShareRows(Protocol):
    """Share links. A share belongs to its session and is erased with it."""

    def share(self, share_id: ShareId) -> Share | None: ...
    def share_with_token(self, token_digest: str) -> Share | None: ...
    def shares(self, owner: OwnerId, limit: int, before: tuple[float, ShareId] | None = None) -> Sequence[Share]:
        """List shares, newest first by (created_at, id)."""

    def shared_bytes(self, owner: OwnerId) -> tuple[int, int]:
        """How many shares an owner has, and how many bytes their contents have."""

    def expired_shares(self, by: float, limit: int) -> Sequence[ShareId]:
        """List shares of all owners that end at `by` or before."""

    def add_share(self, share: Share) -> None: ...
    def touch_share(self, share_id: ShareId, at: float) -> None:
        """Set when a share was last opened; one that is gone stays so."""

    def drop_shares(self, share_ids: Collection[ShareId]) -> None: ...
    def drop_session_shares(self, sid: SessionId) -> None: ...


class ProjectRows(Protocol):
    """Projects and their files."""

    def project(self, pid: ProjectId) -> Project | None: ...
    def project_named(self, owner: OwnerId, name: str) -> Project | None:
        """The project with this name, or the one that had it until all its chats are moved."""

    def projects(self, query: ProjectQuery) -> Sequence[Project]:
        """List projects by (name, id), without those being removed."""

    def count_projects(self, owner: OwnerId) -> int: ...
    def count_chats(self, owner: OwnerId, names: Collection[str]) -> Mapping[str, int]:
        """How many sessions that are neither archived nor deleted have each of these projects; none is left out."""

    def unfinished_projects(self, limit: int) -> Sequence[Project]:
        """List projects of all owners whose chats are still to be moved or removed."""

    def add_project(self, project: Project) -> None:
        """Insert a project, unless its owner has one of this name."""

    def put_project(self, project: Project) -> None:
        """Insert or replace a project. StorageError: another project of this owner has the name."""

    def drop_project(self, pid: ProjectId) -> None:
        """Erase a project. Its files stay, and its sessions are not changed."""

    def project_files(self, pid: ProjectId) -> Sequence[StoredFile]:
        """List the files of a project in the order in which they were added."""

    def add_project_file(self, pid: ProjectId, fid: FileId) -> None:
        """Add a stored file to a project, unless it is there."""

    def drop_project_file(self, pid: ProjectId, fid: FileId) -> None: ...


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


class PushRows(Protocol):
    """Push subscriptions, and the outbox of messages to them."""

    def push_subscription(self, pid: SubscriptionId) -> PushSubscription | None: ...
    def push_subscription_at(self, endpoint: str) -> PushSubscription | None: ...
    def push_subscriptions(self, owner: OwnerId) -> Sequence[PushSubscription]:
        """List the subscriptions of an owner, oldest first."""

    def has_push_subscriptions(self) -> bool:
        """Whether any owner has one."""

    def put_push_subscription(self, subscription: PushSubscription) -> None:
        """Insert or replace a subscription. StorageError: another one has the endpoint."""

    def drop_push_subscription(self, pid: SubscriptionId) -> None:
        """Erase a subscription and the messages to it."""

    def add_push(self, kind: PushKind, tag: str, run: Run) -> None:
        """Insert a message, due now, to each of the owner's subscriptions that wants this kind, or replace the one
        with this tag. One statement, which reads and writes nothing if there is no subscription."""

    def due_pushes(self, by: float, limit: int) -> Sequence[PushMessage]:
        """List messages whose `due_at` is not later than `by`, the earliest first."""

    def next_push(self) -> float | None:
        """The smallest `due_at`."""

    def push(self, pid: SubscriptionId, tag: str) -> PushMessage | None: ...
    def put_push(self, message: PushMessage) -> None: ...
    def drop_push(self, pid: SubscriptionId, tag: str) -> None: ...


class Tx(
    SessionRows, RunRows, ApprovalRows, MemoryRows, FileRows, ShareRows, ProjectRows, PushRows, ChangeRows, Protocol
):
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

    async def reusable_bytes(self) -> int:
        """Free space inside the store's own files, which deleted rows left and new ones use; 0 if unknown."""

    async def close(self) -> None: ...
