"""Storage that reports every committed transaction and append to an observer."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from holdfast.core import events as ev
from holdfast.core.errors import AppendRefusedError
from holdfast.core.ids import ApprovalId, MessageId, RunId, SessionId
from holdfast.core.lease import Lease
from holdfast.core.run import Run
from holdfast.core.session import Message, Session
from holdfast.ports.journal import Append
from holdfast.ports.store import Approval, Change, ChangeKind, RunQuery, Tx
from holdfast.storage.in_memory import InMemoryJournal

T = TypeVar("T")


@dataclass(slots=True)
class Effect:
    call_id: str
    at_seq: int
    """How long the journal was."""


@dataclass(slots=True)
class Story:
    """A run's journal as it was committed. It stays when the journal is purged."""

    entries: list[ev.Entry] = field(default_factory=list)
    events: list[ev.Event] = field(default_factory=list)
    epoch: int = 0
    sealed_at: float | None = None
    effects: list[Effect] = field(default_factory=list)
    purged: bool = False

    @property
    def sealed(self) -> bool:
        return self.sealed_at is not None

    @property
    def ending(self) -> ev.RunEnded | None:
        last = self.events[-1] if self.events else None
        return last if isinstance(last, ev.RunEnded) else None


@dataclass(slots=True)
class Commit:
    """What one transaction changed: (before, after) of each row; None where there was or is none."""

    now: float
    runs: list[tuple[Run | None, Run | None]]
    messages: list[tuple[Message | None, Message | None]]
    sessions: list[tuple[Session | None, Session | None]]
    approvals: list[tuple[Approval | None, Approval | None]]
    changes: list[tuple[ChangeKind, SessionId, RunId | None, str | None]]
    erased: set[SessionId]
    """Sessions that were cleared or dropped."""


class RecordingTx:
    """Remembers what the transaction writes, and what was there before."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._runs: dict[RunId, Run | None] = {}
        self._messages: dict[MessageId, Message | None] = {}
        self._sessions: dict[SessionId, Session | None] = {}
        self._approvals: dict[ApprovalId, Approval | None] = {}
        self._changes: list[tuple[ChangeKind, SessionId, RunId | None, str | None]] = []
        self._erased: set[SessionId] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def put_session(self, session: Session) -> None:
        self._sessions.setdefault(session.id, self._tx.session(session.id))
        self._tx.put_session(session)

    def add_message(self, message: Message) -> None:
        assert self._tx.message(message.id) is None
        self._messages.setdefault(message.id, None)
        self._tx.add_message(message)

    def put_message(self, message: Message) -> None:
        self._messages.setdefault(message.id, self._tx.message(message.id))
        self._tx.put_message(message)

    def put_run(self, run: Run) -> None:
        self._runs.setdefault(run.id, self._tx.run(run.id))
        self._tx.put_run(run)

    def renew_leases(self, lease: Lease, held: Collection[RunId], connections: Collection[RunId]) -> Sequence[Run]:
        for rid in {*held, *connections}:
            self._runs.setdefault(rid, self._tx.run(rid))
        return self._tx.renew_leases(lease, held, connections)

    def drop_run(self, rid: RunId) -> None:
        self._runs.setdefault(rid, self._tx.run(rid))
        self._tx.drop_run(rid)

    def drop_messages(self, sid: SessionId) -> None:
        self._erased.add(sid)
        self._tx.drop_messages(sid)

    def drop_session(self, sid: SessionId) -> None:
        self._erased.add(sid)
        self._sessions.setdefault(sid, self._tx.session(sid))
        session = self._tx.session(sid)
        if session is not None:
            for run in self._tx.runs(RunQuery(session.owner, sid, limit=1_000_000)):
                self._runs.setdefault(run.id, run)
        self._tx.drop_session(sid)

    def put_approval(self, approval: Approval) -> None:
        self._approvals.setdefault(approval.id, self._tx.approval(approval.id))
        self._tx.put_approval(approval)

    def add_change(self, change: Change) -> None:
        self._changes.append((change.kind, change.session_id, change.run_id, change.status))
        self._tx.add_change(change)

    def commit(self) -> Commit | None:
        """None: nothing that anybody looks at was written."""
        tx = self._tx
        if not (self._runs or self._messages or self._sessions or self._approvals or self._changes or self._erased):
            return None
        return Commit(
            tx.now,
            [(old, tx.run(rid)) for rid, old in self._runs.items()],
            [(old, tx.message(mid)) for mid, old in self._messages.items()],
            [(old, tx.session(sid)) for sid, old in self._sessions.items()],
            [(old, tx.approval(aid)) for aid, old in self._approvals.items()],
            self._changes,
            self._erased,
        )


class Observer(Protocol):
    def committed(self, node: str, commit: Commit, tx: Tx) -> None: ...
    def appended(self, item: Append) -> None: ...
    def refused(self, item: Append, why: AppendRefusedError) -> None: ...
    def purged(self, runs: Iterable[RunId]) -> None: ...


class ObservedJournal(InMemoryJournal):
    """The one journal of a history. Tells its observer at the instant of the commit, before anybody can read it."""

    def __init__(self, observer: Observer) -> None:
        super().__init__()
        self._observer = observer

    def _append(self, item: Append) -> AppendRefusedError | None:
        refusal = super()._append(item)
        if refusal is None:
            self._observer.appended(item)
        else:
            self._observer.refused(item, refusal)
        return refusal

    async def purge(self, runs: Collection[RunId]) -> None:
        await super().purge(runs)
        self._observer.purged(runs)


def observe(work: Callable[[Tx], T], tx: Tx, node: str, observer: Observer) -> T:
    """Do `work`, and tell the observer in the same instant. What the store does not keep (an error, a conflict) has
    raised in here, and nobody is told."""
    recording = RecordingTx(tx)
    result = work(recording)
    commit = recording.commit()
    if commit is not None:
        observer.committed(node, commit, tx)
    return result
