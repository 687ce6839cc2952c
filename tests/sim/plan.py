"""A history as plain data: what clients do and when, what agents output, and what fails."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from holdfast.agents.scripted_agent import Action
from holdfast.core.events import Decision
from holdfast.core.run import Lifetime
from holdfast.engine.settings import EngineSettings
from holdfast.engine.transactions.accept import OnBusy
from holdfast.testing import Plan as Faults

AgentName = Literal["able", "resuming", "unable"]
"""`able` can park, resume and be steered, `resuming` keeps its task while it waits for a person, `unable` can do none
of these."""


Moment = Literal[
    "claimed",
    "parked",
    "decided",
    "asked to end",
    "settled",
    "pending",
    "run.started",
    "text.delta",
    "tool.started",
    "tool.finished",
    "approval.requested",
    "approval.resolved",
    "message.steered",
    "sealed",
]
"""What has just been committed somewhere: the instants around which things go wrong."""


@dataclass(frozen=True, slots=True)
class After:
    """A pause: `seconds` of virtual time, or until the `moment` comes if it comes sooner; then `ticks` turns of the
    scheduler, in which no time passes."""

    ticks: int = 0
    seconds: float = 0.0
    moment: Moment | None = None


@dataclass(frozen=True, slots=True)
class Once:
    """Happens only while the turn has said nothing before: the next attempt gets past it."""

    action: Action


@dataclass(frozen=True, slots=True)
class Brittle:
    """Somewhere in a script: when the turn is stopped, the upstream breaks with an error of its own."""


Script = tuple[Action | Once | Brittle, ...]


@dataclass(frozen=True, slots=True)
class Watch:
    """How a client follows a run: it leaves after so many deliveries, comes back after the pause, through any node."""

    leaves: tuple[int, ...] = ()
    pause: After = field(default_factory=After)
    after: int = 0


# ---- what clients do; `pick` chooses the target among what there is ----


@dataclass(frozen=True, slots=True)
class Create:
    titled: bool
    agent: AgentName


@dataclass(frozen=True, slots=True)
class Submit:
    session: int
    script: int
    agent: AgentName = "able"
    on_busy: OnBusy = "queue"
    lifetime: Lifetime = "detached"
    key: str | None = None
    serial: int = 0
    """Makes the text of the message unlike all others."""
    twice: bool = False
    """The same request goes out twice at once, through two nodes if there are two."""
    insists: bool = False
    """After an error or a lost answer the client repeats the request with the same key."""
    watch: Watch | None = None
    leaves: After | None = None
    """When the client of an attached run goes; None: it stays to the end."""


TurnKind = Literal["retry", "edit", "continue"]


@dataclass(frozen=True, slots=True)
class Again:
    kind: TurnKind
    session: int
    pick: int
    script: int
    serial: int
    key: str | None = None
    twice: bool = False
    insists: bool = False
    watch: Watch | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    pick: int
    twice: bool = False


@dataclass(frozen=True, slots=True)
class Steer:
    """Text for an active run, which is answered by a script if it becomes a turn of its own."""

    pick: int
    script: int
    serial: int
    key: str | None = None
    twice: bool = False
    insists: bool = False


@dataclass(frozen=True, slots=True)
class Decide:
    pick: int
    decision: Decision
    twice: bool = False


RunVerb = Literal["recover", "read", "watch", "edit_queued"]


@dataclass(frozen=True, slots=True)
class OnRun:
    verb: RunVerb
    pick: int
    serial: int = 0
    watch: Watch = field(default_factory=Watch)


SessionVerb = Literal[
    "undo",
    "redo",
    "truncate",
    "switch",
    "clear",
    "delete",
    "fork",
    "compact",
    "amend",
    "title",
    "read",
    "messages",
    "list",
]


@dataclass(frozen=True, slots=True)
class OnSession:
    verb: SessionVerb
    session: int
    pick: int
    if_version: bool = False
    slow: float = 0.0
    """How long the summary or the title takes to make."""


@dataclass(frozen=True, slots=True)
class FollowChanges:
    leaves: tuple[int, ...]
    away: float
    """How long the client stays away before it comes back."""


@dataclass(frozen=True, slots=True)
class Tick:
    """The sweeper's chores, now."""


# ---- what happens to nodes and storage ----


@dataclass(frozen=True, slots=True)
class Kill:
    """The process is gone at this instant; another one starts after `down`, or none."""

    down: After | None


@dataclass(frozen=True, slots=True)
class Stop:
    """An orderly end; another process starts after `down`, or none. `abrupt`: the engine is cancelled, not asked."""

    down: After | None
    abrupt: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """One more node joins (cluster)."""


Port = Literal["store", "journal", "wakeups"]
How = Literal["cut", "stalled"]
Where = Literal["all", "one", "owner", "others"]
"""`owner`: the node that executes the newest run; `others`: all but it."""


@dataclass(frozen=True, slots=True)
class Break:
    """A port does not answer for a while: `cut` calls fail at once, `stalled` ones hang and then go through."""

    port: Port
    where: Where
    how: How
    seconds: float


@dataclass(frozen=True, slots=True)
class Jump:
    """The clock is set (embedded: the machine slept, or somebody set it)."""

    seconds: float


Act = (
    Create
    | Submit
    | Again
    | Cancel
    | Steer
    | Decide
    | OnRun
    | OnSession
    | FollowChanges
    | Tick
    | Kill
    | Stop
    | Start
    | Break
    | Jump
)


@dataclass(frozen=True, slots=True)
class Step:
    after: After
    """Pause since the step before began; steps do not wait for each other's end."""
    node: int
    """Which of the live nodes is asked."""
    act: Act


@dataclass(frozen=True, slots=True)
class NodePlan:
    """What fails under one incarnation, and how far its clock is off (cluster)."""

    store: Faults = field(default_factory=dict)
    journal: Faults = field(default_factory=dict)
    skew: float = 0.0


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """A memory provider that all nodes share, and what it does with its nth call of `commit` or `forget`."""

    fails: frozenset[int] = frozenset()
    """Raises and has done nothing."""
    doubts: frozenset[int] = frozenset()
    """Raises when it is done."""
    takes: float = 0.0
    idle: float = 20.0
    incognito: int | None = None
    """Which session is without memory."""


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    mode: Literal["embedded", "cluster"]
    nodes: int
    sessions: int
    scripts: Sequence[Script]
    settings: EngineSettings
    incarnations: Sequence[NodePlan]
    """The nth node that is started gets the nth; later ones have no faults."""
    wakes: Mapping[int, Literal["lost", "doubled"]]
    steps: Sequence[Step]
    leave_waiting: bool
    """In the end, open questions are left to a person instead of being answered."""
    troubled: bool
    """Storage may fail or nodes may go: errors of storage are legitimate answers."""
    memory: MemoryPlan | None = None
    budget: int | None = None
    """Tokens of a month beyond which new turns are refused."""
