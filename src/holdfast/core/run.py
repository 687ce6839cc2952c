"""A run: one attempt to answer one user message. Its states are one literal table."""

from collections.abc import Mapping
from typing import Final, Literal

from holdfast.core.errors import IllegalTransition
from holdfast.core.events import Ending, Failure, Usage
from holdfast.core.ids import MessageId, NodeId, OwnerId, RunId, SessionId
from holdfast.core.parts import Json
from holdfast.core.values import dataclass, replace

RunStatus = Literal["queued", "running", "waiting", "complete", "cancelled", "failed", "interrupted"]
Verb = Literal[
    "claim",  # a node takes it up
    "park",  # it asks a person and lets go
    "decide",  # the person answered: any node may take it up again
    "answer",  # the person answered a run that kept its task
    "requeue",  # automatic continue, or a draining node hands it over
    "complete",
    "cancel",
    "fail",
    "interrupt",
]

TRANSITIONS: Final[Mapping[RunStatus, Mapping[Verb, RunStatus]]] = {
    "queued": {
        "claim": "running",
        "complete": "complete",  # put back after a crash that came between its seal and its settling
        "cancel": "cancelled",
        "fail": "failed",
        "interrupt": "interrupted",
    },
    "running": {
        "park": "waiting",
        "requeue": "queued",
        "complete": "complete",
        "cancel": "cancelled",
        "fail": "failed",
        "interrupt": "interrupted",
    },
    "waiting": {
        "decide": "queued",
        "answer": "running",
        "complete": "complete",
        "cancel": "cancelled",
        "fail": "failed",
        "interrupt": "interrupted",
    },
    "complete": {},
    "cancelled": {},
    "failed": {},
    # Shown as interrupted while its journal could not be read: the journal's own terminal event decides in the end.
    "interrupted": {
        "complete": "complete",
        "cancel": "cancelled",
        "fail": "failed",
        "interrupt": "interrupted",
    },
}

ENDING_VERB: Final[Mapping[Ending, Verb]] = {
    "complete": "complete",
    "cancelled": "cancel",
    "failed": "fail",
    "interrupted": "interrupt",
}

Lifetime = Literal["detached", "attached"]
RecoveryState = Literal["pending", "recovered", "none"]


@dataclass(frozen=True, slots=True)
class Intent:
    """How the run is to end once somebody can end it: a person asked for a cancel, or storage gave way under it."""

    status: Literal["cancelled", "failed"]
    reason: str | None = None
    error: Failure | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """Permission to execute. `until` is None where the holder's own life is the lease (the data directory's lock)."""

    holder: NodeId
    until: float | None = None


def is_live(lease: Lease | None, incarnation: NodeId | None, now: float) -> bool:
    """`incarnation` is the only node that can be alive where leases have no end; elsewhere the store's clock judges."""
    if lease is None:
        return False
    return lease.holder == incarnation if lease.until is None else now < lease.until


@dataclass(frozen=True, slots=True)
class Recovery:
    """What section J counts: since when the output is sought, and how often a readable journal had none."""

    state: RecoveryState
    since: float = 0.0
    attempts: int = 0


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
    rank: int
    """Place in the session's queue, and among the claimable runs; smaller goes first."""
    in_tree: bool
    """Its messages are in the tree. A turn sent to a busy session joins when it is claimed."""
    status: RunStatus = "queued"
    epoch: int = 0
    lease: Lease | None = None
    connection: Lease | None = None
    """Who holds an attached run's connection: when that node is gone, so is the client."""
    key: str | None = None
    fingerprint: str = ""
    """Of the request body: the same idempotency key with another one is refused."""
    continues: RunId | None = None
    resumes: int = 0
    """How often automatic continue has put it back."""
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

    @property
    def is_open(self) -> bool:
        return self.status in OPEN

    @property
    def cancel_requested(self) -> bool:
        return self.intent is not None and self.intent.status == "cancelled"

    @property
    def is_unread(self) -> bool:
        """Its recovery was given up without its journal having been read: nobody knows what it did."""
        return self.recovery is not None and self.recovery.state == "none" and not self.last_seq

    @property
    def is_pending(self) -> bool:
        return self.recovery is not None and self.recovery.state == "pending"


OPEN: Final[frozenset[RunStatus]] = frozenset({"queued", "running", "waiting"})


def after(run: Run, verb: Verb) -> RunStatus:
    """The status after `verb`; an illegal one raises."""
    target = TRANSITIONS[run.status].get(verb)
    if target is None or (run.status == "interrupted" and not run.is_pending):
        raise IllegalTransition(run.status, verb)
    return target


def step(run: Run, verb: Verb) -> Run:
    """The run after `verb`; an illegal one raises and changes nothing."""
    return replace(run, status=after(run, verb))
