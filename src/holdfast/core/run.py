"""A run: one attempt to answer one user message. `TRANSITIONS` is its state machine. How a run's ending is carried out:
`engine.transactions.run_endings`; which ending wins: the journal's first terminal event."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from holdfast.core.errors import IllegalTransitionError
from holdfast.core.events import Failure, Usage
from holdfast.core.ids import MessageId, OwnerId, RunId, SessionId
from holdfast.core.lease import Lease
from holdfast.core.parts import Json

RunStatus = Literal["queued", "running", "waiting", "complete", "cancelled", "failed", "interrupted"]
Verb = Literal[
    "claim",  # a node starts executing it
    "park",  # it waits for a person
    "decide",  # the person answered: any node may claim it
    "answer",  # the person answered, and the run kept its task
    "requeue",  # automatic continue, or a draining node hands it over
    "complete",
    "cancel",
    "fail",
    "interrupt",
]

_ENDS: Final[Mapping[Verb, RunStatus]] = {
    "complete": "complete",
    "cancel": "cancelled",
    "fail": "failed",
    "interrupt": "interrupted",
}
TRANSITIONS: Final[Mapping[RunStatus, Mapping[Verb, RunStatus]]] = {
    "queued": {"claim": "running", **_ENDS},  # it may end: a crash came between seal and settle, then it was requeued
    "running": {"park": "waiting", "requeue": "queued", **_ENDS},
    "waiting": {"decide": "queued", "answer": "running", **_ENDS},
    "complete": {},
    "cancelled": {},
    "failed": {},
    "interrupted": _ENDS,  # only while recovery is pending: once the journal is readable, its terminal event decides
}
ENDING_VERB: Final[Mapping[RunStatus, Verb]] = {status: verb for verb, status in _ENDS.items()}

Lifetime = Literal["detached", "attached"]
RecoveryState = Literal["pending", "recovered", "none"]


OUTAGE: Final = "storage"  # The reason of an intent: storage failed for longer than the run waited for it


@dataclass(frozen=True, slots=True)
class Intent:
    """How the run is to end: a cancel was requested, or storage failed while it was executed."""

    status: Literal["cancelled", "failed"]
    reason: str | None = None
    error: Failure | None = None

    @property
    def is_outage(self) -> bool:
        """Whether nobody wants the run to end, and it may go on once storage answers."""
        return self.status == "failed" and self.reason == OUTAGE


@dataclass(frozen=True, slots=True)
class Recovery:
    """The recovery of unreadable output: since when it is pending, and how often the journal was readable but empty."""

    state: RecoveryState
    since: float = 0.0
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class UnreadSettings:
    """The `settings` of a run in a list, where they are not read because they may be long. No store takes it."""


UNREAD_SETTINGS: Final = UnreadSettings()


@dataclass(frozen=True, slots=True)
class Run:
    id: RunId
    owner: OwnerId
    session_id: SessionId
    message_id: MessageId
    user_message_id: MessageId
    agent: str
    model: str | None
    settings: Json
    lifetime: Lifetime
    created_at: float
    rank: int  # Place in the queue; the smallest goes first
    in_tree: bool  # Whether its messages are in the tree. A turn sent to a busy session joins when it is claimed.
    status: RunStatus = "queued"
    epoch: int = 0
    lease: Lease | None = None
    connection: Lease | None = None  # The node that an attached run's client is connected to
    key: str | None = None
    fingerprint: str = ""  # Hash of the request body: reusing the idempotency key with another body is refused
    continues: RunId | None = None
    resumes: int = 0  # How often automatic continue has requeued it
    intent: Intent | None = None
    recovery: Recovery | None = None
    reason: str | None = None
    finish_reason: str | None = None
    error: Failure | None = None
    usage: Usage | None = None
    started_at: float | None = None
    ended_at: float | None = None
    last_seq: int = 0
    pruned: bool = False
    steers: RunId | None = None
    """The open run that this queued one's text is to be added to. With an intent, an execution of that run has taken
    the text, and whether it is part of that run is decided by its journal."""

    @property
    def is_open(self) -> bool:
        return self.status in OPEN

    @property
    def is_taken(self) -> bool:
        """Whether it waits for the journal of another run, which may have its text."""
        return self.steers is not None and self.intent is not None

    @property
    def log_extra(self) -> Mapping[str, Mapping[str, str]]:
        """For log lines that concern this run: its ids, as fields of their own."""
        return {"fields": {"run": self.id, "session": self.session_id}}

    @property
    def cancel_requested(self) -> bool:
        return self.intent is not None and self.intent.status == "cancelled"

    @property
    def is_unread(self) -> bool:
        """Whether recovery was given up before the journal could be read, so that its output is unknown."""
        return self.recovery is not None and self.recovery.state == "none" and not self.last_seq

    @property
    def is_pending(self) -> bool:
        return self.recovery is not None and self.recovery.state == "pending"


OPEN: Final[frozenset[RunStatus]] = frozenset({"queued", "running", "waiting"})


def after(run: Run, verb: Verb) -> RunStatus:
    """The status after `verb`. Raises IllegalTransitionError."""
    target = TRANSITIONS[run.status].get(verb)
    if target is None or (run.status == "interrupted" and not run.is_pending):
        raise IllegalTransitionError(run.status, verb)
    return target


def step(run: Run, verb: Verb) -> Run:
    """The run after `verb`. Raises IllegalTransitionError."""
    return replace(run, status=after(run, verb))
