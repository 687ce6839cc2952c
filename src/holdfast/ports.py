"""What the engine needs from outside, as Protocols. An adapter has no ancestor, only a contract suite to pass
(`holdfast.testing`), and nobody asks which adapter it has.

    Store, Tx     sessions, messages, runs, approvals, changes: transactions over plain values
    Journal       the append-only events of each run
    Wakeups       hints between nodes and tasks; never trusted
    Agent, Out    what answers a turn, and where it writes
    MemoryProvider, Clock, Ids, Files
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from types import TracebackType
from typing import BinaryIO, Literal, NamedTuple, Protocol, TypeVar

from holdfast.core.errors import Refused
from holdfast.core.events import ApprovalRequested, Decision, Entry, Event
from holdfast.core.ids import ApprovalId, FactId, FileId, MessageId, NodeId, OwnerId, RunId, SessionId
from holdfast.core.ledger import DirtyTurn, Ledger
from holdfast.core.parts import File, Json, Part
from holdfast.core.run import Lease, Run
from holdfast.core.session import Compaction, Message, ModelInput, Session
from holdfast.core.transcript import Transcript
from holdfast.core.values import dataclass

T = TypeVar("T")


# ------------------------------------------------------------------------------------------------ Store


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
    note: str | None = None
    """Why it was decided, where no person did."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A person allowed a tool, within `scope` if that is not empty: in one session, or (None) in all."""

    owner: OwnerId
    session_id: SessionId | None
    tool: str
    scope: str
    created_at: float


ChangeKind = Literal["session.changed", "session.deleted", "run.changed", "approval.changed"]


@dataclass(frozen=True, slots=True)
class Change:
    """A row of the change feed. `n` is given by the store."""

    n: int
    kind: ChangeKind
    owner: OwnerId
    session_id: SessionId
    run_id: RunId | None = None
    approval_id: ApprovalId | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True)
class StoredFile:
    id: FileId
    owner: OwnerId
    sha256: str
    name: str
    media_type: str
    size: int
    created_at: float

    def part(self) -> File:
        return File(self.id, self.name, self.media_type, self.size)


@dataclass(frozen=True, slots=True)
class Hit:
    """A message or title that matches a search; `at` orders hits by recency and pages them."""

    session: Session
    message_id: MessageId | None
    excerpt: str
    at: int


@dataclass(frozen=True, slots=True)
class SessionQuery:
    owner: OwnerId
    archived: bool = False
    project: str | None = None
    limit: int = 50
    before: tuple[float, SessionId] | None = None
    """Keyset: only sessions that come after this (updated_at, id) in the list, which runs from new to old."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something worth remembering, as the built-in memory keeps it."""

    id: FactId
    owner: OwnerId
    key: str
    """What it is about. An owner has one fact of a key: a later one takes the earlier one's place."""
    text: str
    session_id: SessionId
    message_id: MessageId
    """The answer of the turn it came from. Session and message may be gone by now."""
    said_at: float
    created_at: float
    updated_at: float
    pinned: bool = False
    vector: bytes = b""
    n: int = 0
    """Given by the store with every write, larger than all before: the order of lists, and what a follower has seen."""


class Tx(Protocol):
    """One transaction, as the synchronous function inside it sees it. Reads see the transaction's own writes.

    `put_*` writes the whole value (insert or replace by id). Deleted sessions are returned like others: `deleted_at`
    says so. Lists come in the order that is named. Only the engine's `book` package calls the writing half."""

    @property
    def now(self) -> float:
        """The store's clock, the only one that judges leases."""

    # sessions
    def session(self, sid: SessionId) -> Session | None: ...
    def put_session(self, session: Session) -> None:
        """Also keeps the title's search entry right."""

    def sessions(self, query: SessionQuery) -> Sequence[Session]:
        """Newest activity first; without deleted ones."""

    def deleted_sessions(self, limit: int) -> Sequence[SessionId]:
        """Hidden ones that are not purged yet."""

    def drop_session(self, sid: SessionId) -> None:
        """Erase the row and everything that hangs on it: messages, runs, approvals, compactions, search entries, the
        ledger. Facts stay."""

    # messages
    def message(self, mid: MessageId) -> Message | None: ...
    def put_message(self, message: Message) -> None:
        """Also keeps the search entry right: text of messages in the tree that are not streaming."""

    def children(self, sid: SessionId, parent: MessageId | None) -> Sequence[MessageId]:
        """In the tree, oldest first (creation time, then id)."""

    def drop_messages(self, sid: SessionId) -> None:
        """Erase all messages of a session with their search entries and compactions. Messages of queued runs that are
        not in the tree stay."""

    # runs
    def run(self, rid: RunId) -> Run | None: ...
    def put_run(self, run: Run) -> None: ...
    def renew(self, lease: Lease, held: Collection[RunId], connections: Collection[RunId]) -> Sequence[Run]:
        """Put `lease` in the place of the same holder's, of those of `held`, and of whatever connection those of
        `connections` have. One step for however many. Returns all that are named and open, as they now are, in no
        order."""

    def drop_run(self, rid: RunId) -> None: ...
    def run_with_key(self, owner: OwnerId, sid: SessionId, key: str) -> Run | None: ...
    def open_runs(self, sid: SessionId) -> Sequence[Run]:
        """Queued, running and waiting ones of a session, by rank."""

    def all_open_runs(self, limit: int, after: RunId | None = None) -> Sequence[Run]:
        """Of all sessions, by id."""

    def pending_runs(self, limit: int, sid: SessionId | None = None) -> Sequence[Run]:
        """Those with `recovery` pending, oldest `since` first."""

    def claimable_runs(self, limit: int) -> Sequence[Run]:
        """Queued runs whose session has no running or waiting run and no queued run of smaller rank (a queued run
        that is in the tree goes before all that are not), by rank. Those with an intent are left out."""

    def runs(
        self,
        owner: OwnerId,
        *,
        status: Collection[str] | None = None,
        sid: SessionId | None = None,
        limit: int = 50,
        before: tuple[float, RunId] | None = None,
    ) -> Sequence[Run]:
        """Newest first by (created_at, id)."""

    def prunable_runs(self, ended_before: float, limit: int) -> Sequence[RunId]:
        """Ended, not pruned, and not one whose output was never found: J6 keeps that journal."""

    # the rest
    def approval(self, aid: ApprovalId) -> Approval | None: ...
    def put_approval(self, approval: Approval) -> None: ...
    def open_approvals(self, rid: RunId) -> Sequence[Approval]:
        """Undecided ones of a run."""

    def old_approvals(self, created_before: float, limit: int) -> Sequence[Approval]:
        """Undecided ones of all runs, oldest first."""

    def grants(self, owner: OwnerId, sid: SessionId | None) -> Sequence[Grant]:
        """What counts in this session: its own and those for all (None: those alone), oldest first. A session's own go
        with it."""

    def put_grant(self, grant: Grant) -> None:
        """One per owner, session, tool and scope."""

    def drop_grant(self, owner: OwnerId, sid: SessionId | None, tool: str, scope: str) -> None: ...

    def settings(self, owner: OwnerId) -> Mapping[str, Json]: ...
    def put_setting(self, owner: OwnerId, name: str, value: Json) -> None:
        """None takes it away."""

    def compactions(self, sid: SessionId) -> Mapping[MessageId, Compaction]: ...
    def put_compaction(self, compaction: Compaction) -> None: ...

    def file(self, fid: FileId) -> StoredFile | None: ...
    def put_file(self, file: StoredFile) -> None: ...
    def orphan_files(self, created_before: float, limit: int) -> Sequence[StoredFile]:
        """Files that no message names."""

    def drop_file(self, fid: FileId) -> None: ...
    def digest_in_use(self, sha256: str) -> bool:
        """Whether any file row still names this content."""

    # memory
    def ledger(self, sid: SessionId) -> Ledger | None: ...
    def put_ledger(self, ledger: Ledger) -> None: ...
    def drop_ledger(self, sid: SessionId) -> None:
        """With its dirty turns."""

    def due_ledgers(self, by: float, limit: int) -> Sequence[Ledger]:
        """Those whose `due_at` is not later than `by`, the earliest first (then by session id)."""

    def dirty_turns(self, sid: SessionId, limit: int) -> Sequence[DirtyTurn]:
        """By n."""

    def put_dirty_turn(self, turn: DirtyTurn) -> None:
        """One per session and n."""

    def drop_dirty_turns(self, sid: SessionId, last: int) -> None:
        """Those up to and including `last`."""

    def fact(self, fid: FactId) -> Fact | None: ...
    def fact_with_key(self, owner: OwnerId, key: str) -> Fact | None: ...
    def put_fact(self, fact: Fact) -> None:
        """Gives it a new `n`, whatever it says, and keeps its search entry right. A fact of a smaller n that can still
        commit must not appear after one of a larger n: who follows `facts_after` would miss it. StorageError: another
        fact of this owner has the key."""

    def drop_fact(self, fid: FactId) -> None: ...
    def drop_session_facts(self, sid: SessionId) -> None:
        """All that came from the session."""

    def facts(
        self, owner: OwnerId, limit: int, *, text: str = "", prefix: bool = False, before: int | None = None
    ) -> Sequence[Fact]:
        """Newest first (n). With `text`, those that contain all its words; with `prefix`, the last may be the beginning
        of one. A text without words finds nothing."""

    def facts_after(self, owner: OwnerId, n: int, limit: int) -> Sequence[Fact]:
        """By n, the smallest first."""

    def add_purge(self, rids: Iterable[RunId]) -> None:
        """Remember journals to erase: their rows here are gone or going."""

    def purges(self, limit: int) -> Sequence[RunId]: ...
    def drop_purges(self, rids: Iterable[RunId]) -> None: ...

    def add_change(
        self,
        kind: ChangeKind,
        owner: OwnerId,
        session_id: SessionId,
        run_id: RunId | None = None,
        approval_id: ApprovalId | None = None,
        status: str | None = None,
    ) -> None:
        """Written in the changing transaction; numbered so that n is shown only when no smaller one can still
        commit."""

    def changes(self, after: int, limit: int) -> Sequence[Change]: ...
    def change_bounds(self) -> tuple[int, int]:
        """(the smallest cursor from which nothing is missing, the largest n)."""

    def changes_held_back(self) -> bool:
        """Whether there are changes that cannot be shown yet, and will be in a moment, without a hint."""

    def trim_changes(self, keep: int) -> None: ...

    def search(self, owner: OwnerId, text: str, limit: int, before: int | None) -> Sequence[Hit]:
        """Sessions whose title or messages contain all words, each once with its newest hit, newest first."""


class Store(Protocol):
    """Where accepted work lives. A transaction is a synchronous function: it may run on another thread and more than
    once (a conflict is retried inside), so it has no effects but those on `tx` and returns plain values."""

    @property
    def generation(self) -> str:
        """Changes whenever change numbers may have begun anew, as after restoring a backup."""

    @property
    def incarnation(self) -> NodeId | None:
        """The only node that can be alive, where the storage itself excludes all others; None where leases lapse."""

    async def transact(self, work: Callable[[Tx], T]) -> T:
        """All of it, durably, or nothing. Raises what `work` raises (nothing written), or StorageError (unknown)."""

    async def read(self, work: Callable[[Tx], T]) -> T:
        """The same on one snapshot, without writing."""

    def free_bytes(self) -> int | None:
        """Room left on the medium, or None where that is not known."""

    async def close(self) -> None: ...


# ------------------------------------------------------------------------------------------------ Journal


class Append(NamedTuple):
    """Events of one run to be added, the first of which must follow the last one there. An epoch newer than the run's
    raises the fence; an older one is refused."""

    run: RunId
    epoch: int
    entries: Sequence[Entry]
    seals: bool = False
    """The last entry is the terminal event."""


@dataclass(frozen=True, slots=True)
class Head:
    """How far a journal goes. `pruned`: it was, and is no longer there."""

    epoch: int = 0
    last_seq: int = 0
    sealed: bool = False
    pruned: bool = False


class Journal(Protocol):
    """The append-only events of each run. A run that was never written to is an empty, open journal of epoch 0.

    Only one `append` is under way at a time in a process; other calls may overlap it."""

    async def append(self, batch: Sequence[Append]) -> Sequence[Refused | None]:
        """One durable commit; per item None or why it was refused (fence, seal, sequence, size), which concerns that
        item alone. StorageError: the commit failed or is in doubt; ask `heads` before repeating. At most one item per
        run."""

    async def fence(self, epochs: Mapping[RunId, int]) -> Mapping[RunId, Head]:
        """Raise the epoch durably, so that no older append can follow, and say where the journal stands. Raising it to
        what it is, or lower, changes nothing. StorageError: not fenced, or in doubt."""

    async def heads(self, runs: Collection[RunId]) -> Mapping[RunId, Head]: ...

    async def read(self, run: RunId, after: int = 0, limit: int = 1000) -> Sequence[Entry]:
        """Committed entries in order, without gaps; a torn record ends what can be read. Fewer than `limit`: there are
        no more at the moment. JournalPruned after pruning."""

    async def read_whole(self, runs: Collection[RunId]) -> Mapping[RunId, Sequence[Entry]]:
        """All that `read` has of each, at once: for journals that `heads` or `fence` said are short. JournalPruned if
        one of them is."""

    async def settled(self, runs: Collection[RunId]) -> None:
        """The runs are settled in the store: their journals may be put into a form that is cheap to keep. So may any
        that was sealed when this journal was opened: whoever settled it may not have got to say so."""

    async def purge(self, runs: Collection[RunId]) -> None:
        """Erase the events. A mark stays: a later read answers JournalPruned, and a late append is refused."""

    async def reopen(self) -> None:
        """After a failed commit: drop and open again whatever was held. StorageError if it cannot be done yet."""

    async def close(self) -> None: ...


# ------------------------------------------------------------------------------------------------ Wakeups


@dataclass(frozen=True, slots=True)
class Wake:
    """`queue`: something may be claimable. `control`: look at the run's row (cancel, decision). `appended`: the run's
    journal grew. `changed`: the change feed grew. `control` and `appended` without a run are of any: hints were
    missed, and nobody knows of which."""

    kind: Literal["queue", "control", "appended", "changed"]
    run: RunId | None = None


class Listener(Protocol):
    async def next(self) -> Collection[Wake]:
        """Wait for at least one."""


class Wakeups(Protocol):
    """Hints. One may be lost, doubled or late: whoever waits for one also looks by himself now and then."""

    def listen(self, node: NodeId) -> AbstractAsyncContextManager[Listener]: ...
    async def notify(self, node: NodeId, wakes: Collection[Wake]) -> None:
        """Tell every listener of other nodes; `node`'s own knows, and may hear of it too. Never raises and never waits
        for a listener."""


# ------------------------------------------------------------------------------------------------ Agent


@dataclass(frozen=True, slots=True)
class Turn:
    """What an agent is given. `transcript` is not empty when it continues: seeded or resumed parts, tools with their
    states, and the answer to the question it stopped at. An answer that an earlier execution was already given is not
    repeated: a tool that was allowed once and whose outcome is unknown has to be asked about again."""

    run: Run
    session: Session
    input: ModelInput
    transcript: Transcript
    decisions: Mapping[str, Decision]
    """By call id."""


class Out(Protocol):
    """Where an agent writes. Nothing is shown to anybody before it is durable."""

    async def write(self, event: Event) -> None:
        """Take a delta (text, reasoning, tool, usage, step). Returns at once while there is room, else waits: that is
        the back-pressure."""

    def put(self, event: Event) -> bool:
        """The same for those who cannot wait just now: it is taken in any case. False: `room` is to be awaited before
        the next."""

    async def room(self) -> None:
        """Wait until there is room."""

    async def commit(self, event: Event) -> None:
        """Take an event and return when it is durable: `tool.started` before the effect, `tool.finished` after it."""

    async def ask(self, question: ApprovalRequested) -> Decision:
        """Ask a person. Where the agent can continue this does not return: the run is parked and a later turn has
        the decision. Elsewhere it waits."""

    def new_approval_id(self) -> ApprovalId: ...


class AgentFailed(Exception):
    """The agent, model or tool could not go on. `code` is stable; the message is for a person."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Agent(Protocol):
    @property
    def can_continue(self) -> bool:
        """Whether it can take up a turn from its transcript: after a crash, or after a decision."""

    async def run(self, turn: Turn, out: Out) -> str | None:
        """Answer the turn; the finish reason. Cancelled by cancellation: it must let go of the upstream and raise
        on."""


class Agents(Protocol):
    def get(self, name: str) -> Agent | None: ...


class Summariser(Protocol):
    async def summarise(self, messages: Sequence[Message], earlier: str | None) -> str: ...


class Titler(Protocol):
    async def title(self, messages: Sequence[Message]) -> str: ...


# ------------------------------------------------------------------------------------------------ Memory


@dataclass(frozen=True, slots=True)
class RememberedTurn:
    n: int
    run_id: RunId
    message_id: MessageId
    said_at: float
    user: Sequence[Part]
    assistant: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Batch:
    """Completed turns of one session for a provider to keep. The same id always has the same turns."""

    id: str
    owner: OwnerId
    session_id: SessionId
    model: str | None
    """The session's."""
    turns: Sequence[RememberedTurn]


class MemoryProvider(Protocol):
    """Called outside every transaction and with a limit of time; it may raise anything. Calls for one session do not
    overlap, except `recall`."""

    async def recall(self, owner: OwnerId, sid: SessionId, query: str) -> Sequence[Mapping[str, Json]]:
        """Items `{text, source}` worth putting in front of the model, the most useful first."""

    async def commit(self, batch: Batch) -> None:
        """Keep what is worth keeping; durable when it returns. A batch may come again: applying it twice must do no
        harm."""

    async def forget(self, owner: OwnerId, sid: SessionId) -> None:
        """Erase what came from the session."""

    async def release(self, sid: SessionId) -> None:
        """The session is evicted: let go of what is held for it alone."""

    async def health(self) -> str | None:
        """What is wrong, in a sentence; None: nothing."""

    async def close(self) -> None: ...


class MemoryProviders(Protocol):
    @property
    def default(self) -> str | None:
        """The provider of sessions that name none. None: whichever a commit names."""

    @property
    def names(self) -> Collection[str]: ...
    def get(self, name: str) -> MemoryProvider | None: ...


@dataclass(frozen=True, slots=True)
class NewFact:
    key: str
    text: str
    message_id: MessageId
    said_at: float
    vector: bytes


class FactShelf(Protocol):
    """The facts in the store, as the built-in provider may touch them: the engine alone writes there."""

    async def after(self, owner: OwnerId, n: int, limit: int) -> Sequence[Fact]:
        """What was written since, in order."""

    async def with_words(self, owner: OwnerId, words: Sequence[str], limit: int) -> Sequence[Sequence[Fact]]:
        """For each word the newest facts that have it."""

    async def by_id(self, ids: Sequence[FactId]) -> Sequence[Fact]:
        """Those that are still there."""

    async def apply(self, batch: Batch, facts: Sequence[NewFact]) -> bool:
        """Write them all, and that the batch is applied, in one transaction. False: it was already, or the session is
        gone or to be forgotten."""

    async def forget(self, sid: SessionId) -> None: ...


# ------------------------------------------------------------------------------------------------ the machine


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch, UTC. May jump; leases and time-outs do not rest on it."""


class Ids(Protocol):
    def new(self, prefix: str) -> str:
        """A fresh id `prefix_…`; later ones sort after earlier ones of the same process."""


class Incoming(Protocol):
    """A content that is being written. A context manager: leaving it without `finish` throws the content away."""

    def __enter__(self) -> "Incoming": ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def write(self, chunk: bytes) -> None: ...
    def finish(self) -> tuple[str, int]:
        """Digest and size; the content is durable under its digest."""


class Files(Protocol):
    """Contents by digest. Synchronous: called from worker threads."""

    def begin(self) -> Incoming: ...
    def open(self, sha256: str) -> BinaryIO:
        """NotFound if it is not there."""

    def delete(self, sha256: str) -> None: ...


class Workspaces(Protocol):
    """What agents leave in the directories of sessions. Synchronous: called from worker threads."""

    def erase(self, sid: SessionId) -> None:
        """All of it. Nothing there is no mistake; OSError: some of it is left, to be tried again."""


@dataclass(frozen=True, slots=True)
class Token:
    """A program's key to the API. Shown once; kept as a digest."""

    id: str
    name: str
    sha256: str
    created_at: float


@dataclass(frozen=True, slots=True)
class Keyring:
    """What must not be lost to strangers. Never exported, returned or logged."""

    cookie_key: str = field(repr=False)
    """Signs login cookies. Replacing it ends every login."""
    password: str | None = field(default=None, repr=False)
    """Argon2id hash, or None: open to the person at the machine."""
    tokens: tuple[Token, ...] = ()
    provider_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Keys typed into the settings, by provider."""


class Keys(Protocol):
    """The keyring's file. Synchronous; what another process changed is seen at the next `read`."""

    def read(self) -> Keyring: ...
    def change(self, work: Callable[[Keyring], Keyring]) -> Keyring:
        """Atomic and durable; returns what is there now."""
