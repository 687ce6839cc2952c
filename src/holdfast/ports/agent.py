"""The agent port: what answers a turn, and where it writes. Which agent answers: `app.agents`; how its failure ends the
run: `engine.executor`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from holdfast.core.events import ApprovalRequested, Decision, Event, InputAction, InputRequested, MessageSteered
from holdfast.core.ids import ApprovalId, MessageId
from holdfast.core.model_input import ModelInput
from holdfast.core.parts import Json
from holdfast.core.run import Run
from holdfast.core.session import Message, Session
from holdfast.core.transcript import Transcript


@dataclass(frozen=True, slots=True)
class Turn:
    """The input of an agent. `transcript` is not empty if it continues a run: earlier parts with the tools' states."""

    run: Run
    session: Session
    input: ModelInput
    transcript: Transcript
    decisions: Mapping[str, Decision]
    """Answers to the question the run stopped at, by call id; a tool with an unknown outcome needs a new approval. Of a
    continuing run, also the calls that a person allowed after nobody had answered in time."""
    preferences: Mapping[str, Json] = field(default_factory=dict)  # The owner's settings when the turn began


class ApprovalAnswer(NamedTuple):
    decision: Decision
    note: str | None = None  # Why, if no person decided; otherwise the chosen option of the question


@dataclass(frozen=True, slots=True)
class InputAnswer:
    action: InputAction
    content: Mapping[str, Json] = field(default_factory=dict, repr=False)  # Values that fit the form, if accepted


class AgentOutput(Protocol):
    """Receives an agent's events. Clients see an event only after it is durable."""

    async def write(self, event: Event) -> None:
        """Add a delta (text, reasoning, tool, usage, step); waits while the buffer is full (back-pressure)."""

    def write_nowait(self, event: Event) -> bool:
        """Add a delta without waiting. False: the buffer is full; await `wait_for_room` before the next call."""

    async def wait_for_room(self) -> None:
        """Wait until the buffer is no longer full."""

    async def commit(self, event: Event) -> None:
        """Add an event and wait until it is durable: `tool.started` before the effect, `tool.finished` after it."""

    async def ask(
        self,
        question: ApprovalRequested,
        answer_within: float | None = None,
        *,
        announced: bool = False,
        can_allow_later: bool = True,
    ) -> ApprovalAnswer:
        """Ask a person. If the agent can park, this never returns: the run gives up its task, and a later turn has the
        decision. Otherwise it waits, for at most `answer_within` seconds: then the answer is deny, with that noted. A
        cancelled caller withdraws the question. `announced`: the journal has the call already, so a cancelled run has a
        denial too; without it, the call would count as one that may have run. `can_allow_later`: whether a person may
        still allow the call after that time."""

    async def ask_during_call(self, question: InputRequested) -> InputAnswer:
        """Ask a person while a tool runs, one question at a time. The run waits with its task kept, for at most
        `expires_in` seconds. A cancelled caller withdraws the question."""

    async def take_steering(self, known: Collection[MessageId]) -> Sequence[MessageSteered]:
        """What the user has added to the run since, in order, without the messages in `known`, which the transcript
        has. The agent commits each event before its next step; one that it does not commit is sent as the next
        message."""

    def new_approval_id(self) -> ApprovalId:
        """For `ask`."""

    def new_question_id(self) -> ApprovalId:
        """For `ask_during_call`."""

    def new_user_question_id(self) -> ApprovalId:
        """For `ask` with a question whose answer is the result of the call (`core.user_questions`). A later turn has
        the result."""


class AgentError(Exception):
    """The agent, model or tool failed. `code` is stable; the message is for a person."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Agent(Protocol):
    @property
    def can_park(self) -> bool:
        """Whether it can give up its task at a question and take the decision in a later turn. Otherwise its task
        waits, and a crash meanwhile interrupts the run."""

    @property
    def can_resume(self) -> bool:
        """Whether it can resume a turn from its transcript after a crash."""

    @property
    def can_steer(self) -> bool:
        """Whether it reads what the user adds to an active run (`AgentOutput.take_steering`)."""

    async def run(self, turn: Turn, out: AgentOutput) -> str | None:
        """Answer the turn and return the finish reason. When cancelled, close the upstream connection and re-raise."""


class AgentLookup(Protocol):
    def get(self, name: str, /) -> Agent | None: ...


class Summarizer(Protocol):
    async def summarize(self, messages: Sequence[Message], earlier: str | None) -> str:
        """Summarize the messages and the earlier summary before them."""


class Titler(Protocol):
    async def title(self, messages: Sequence[Message]) -> str:
        """Return a short title for the conversation."""
