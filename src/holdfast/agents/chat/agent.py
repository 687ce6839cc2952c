"""The chat agent's loop: call the model, run the tools it requests, and repeat until it requests none. The transcript
is its only state, so starting and resuming a turn are the same: first run the calls that have no result yet."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from holdfast.agents.chat import context_window
from holdfast.agents.chat.answer_reader import AnswerReader
from holdfast.agents.chat.attachments import ToolFileStore, read_attachments
from holdfast.agents.chat.model_messages import Attached, answer, ask_to_continue, conversation
from holdfast.agents.chat.person_questions import PersonQuestions
from holdfast.agents.chat.requested_calls import RequestedCall, unsettled
from holdfast.agents.chat.run_log import RunLog
from holdfast.agents.chat.server_sampling import answer_server
from holdfast.agents.chat.summary_and_title import ModelSummarizer
from holdfast.agents.chat.system_prompt import INSTRUCTIONS, system_prompt
from holdfast.agents.chat.tool_runner import ToolRunner
from holdfast.agents.chat.workspaces import workspace
from holdfast.core.errors import HoldfastError
from holdfast.core.model_input import ModelInput
from holdfast.core.parts import Json
from holdfast.ports.agent import AgentError, AgentOutput, Summarizer, Turn
from holdfast.ports.model import Model, ModelError, ModelRequest, ToolSpec
from holdfast.ports.tool import Tool
from holdfast.tools.approval_policy import ApprovalPolicy, GrantStore

log = logging.getLogger("holdfast.agents")

FindModel = Callable[[Turn], Awaitable[Model]]
"""Returns the turn's model, or the default model. Raises AgentError when there is none."""
FindTools = Callable[[Turn], Awaitable[Sequence[Tool]]]
FindPolicy = Callable[[Turn], Awaitable[ApprovalPolicy]]
"""Returns the owner's tool rules as they are when the turn begins."""

MODEL_SETTINGS: Final = ("temperature", "top_p", "max_tokens", "seed", "reasoning_effort", "stop")


@dataclass(frozen=True, slots=True)
class ChatLimits:
    max_steps: int = 100
    """Model calls per run. Continuing makes another run."""
    max_cost: float | None = None  # Per run, in the currency of the model's prices; checked before each model call
    max_repeats: int = 3  # Identical consecutive calls. The next one is refused, and the one after that ends the run.
    answer_within: float = 600.0  # Seconds that a person has to answer a question of a running tool
    compact_at: float = 0.8  # Fraction of the context window at which earlier turns are summarized


class History(Protocol):
    """The session's history, which compaction may shorten while the run is active."""

    async def reload(self, turn: Turn) -> ModelInput:
        """The turn's input now; the session may have been compacted since."""

    async def compact(self, turn: Turn, summarizer: Summarizer) -> None:
        """Summarize the history before this turn. On failure nothing changes."""


@dataclass(frozen=True, slots=True)
class ChatAgent:
    find_model: FindModel
    find_tools: FindTools
    files: ToolFileStore
    workspaces: Path  # Parent of the sessions' working directories
    find_policy: FindPolicy
    grants: GrantStore
    history: History
    limits: ChatLimits = field(default_factory=ChatLimits)
    instructions: str = INSTRUCTIONS
    has_person: Callable[[Turn], bool] = lambda turn: True
    """Whether somebody can answer questions of running tools: clients of an API may show none."""
    can_park: bool = True
    can_resume: bool = True

    async def run(self, turn: Turn, out: AgentOutput) -> str | None:
        """Answer the turn. A model without tool support is offered none, but calls left by another model are run."""
        model = await self.find_model(turn)
        needed = "tools" in model.info.abilities or unsettled(turn.transcript.parts)
        tools = await self.find_tools(turn) if needed else ()
        run_log = RunLog(out, turn.transcript)
        runner = ToolRunner(
            turn,
            out,
            run_log,
            {tool.spec.name: tool for tool in tools},
            await self.find_policy(turn),
            self.grants,
            workspace(self.workspaces, turn.session.id),
            self.limits.max_repeats,
            dict(turn.decisions),
            partial(self.files.store_for_run, turn.run),
            PersonQuestions(out, self.limits.answer_within) if self.has_person(turn) else None,
            partial(answer_server, model, run_log),
        )
        specs = tuple(tool.spec for tool in tools) if "tools" in model.info.abilities else ()
        notes = tuple(dict.fromkeys(tool.traits.instructions for tool in tools if tool.traits.instructions))
        return await _ChatLoop(self, turn, model, specs, notes, run_log, runner, turn.input).run()


@dataclass(slots=True)
class _ChatLoop:
    agent: ChatAgent
    turn: Turn
    model: Model
    specs: tuple[ToolSpec, ...]
    tool_notes: tuple[str, ...]
    log: RunLog
    tool_runner: ToolRunner
    input: ModelInput
    files: Attached = field(default_factory=dict)
    steps: int = 0
    compacted: bool = False

    async def run(self) -> str | None:
        await self.tool_runner.store_grants()
        await self.tool_runner.run_calls(unsettled(self.log.parts))
        while True:
            calls, finish_reason = await self._step()
            if not calls:
                return finish_reason
            await self.tool_runner.run_calls(calls)

    # ---- one step ----

    async def _step(self) -> tuple[Sequence[RequestedCall], str | None]:
        self._check_limits()
        reader = AnswerReader(self.log, await self._request())
        self.steps += 1
        try:
            return await reader.read(self.model)
        except ModelError as error:
            if error.code != "context-length" or reader.has_output or self.compacted:
                raise
            await self._compact()  # the context window is smaller than listed, or unknown
            return await self._step()

    def _check_limits(self) -> None:
        limits, usage = self.agent.limits, self.log.transcript.usage
        steps = self.log.transcript.steps
        if steps >= limits.max_steps:
            raise AgentError("limit", f"Stopped after {steps} steps, the limit for one turn. Press Continue to go on.")
        cost = None if usage is None else usage.cost
        if limits.max_cost is not None and cost is not None and cost >= limits.max_cost:
            raise AgentError("limit", f"Stopped: this run cost {cost:.4f}; the limit is {limits.max_cost}.")

    # ---- model input ----

    async def _request(self) -> ModelRequest:
        if self.steps:
            self.input = await self.agent.history.reload(self.turn)
        request = await self._compose()
        window = self.model.info, self.agent.limits.compact_at
        if not context_window.is_nearly_full(request, *window):
            return request
        if not self.compacted:
            await self._compact()
            request = await self._compose()
        return context_window.fit_request(request, *window)

    async def _compact(self) -> None:
        """Summarize earlier turns, once per execution: a second summary would save nothing. If that fails, the run
        goes on with what there is."""
        self.compacted = True
        try:
            await self.agent.history.compact(self.turn, ModelSummarizer(self.model))
        except (HoldfastError, AgentError) as error:
            session, extra = self.turn.session.id, self.turn.run.log_extra
            log.warning("session %s was not compacted: %s", session, error, extra=extra)
        self.input = await self.agent.history.reload(self.turn)

    async def _compose(self) -> ModelRequest:
        parts = self.log.parts
        self.files = await read_attachments(self.agent.files, self.input.messages, self.model.info, self.files, parts)
        messages = conversation(self.input.messages, self.files) + answer(parts, self.files)
        session, run = self.turn.session, self.turn.run
        settings: dict[str, Json] = {}
        for own in (session.settings, run.settings):
            if isinstance(own, dict):
                settings |= {name: own[name] for name in MODEL_SETTINGS if own.get(name) is not None}
        custom = run.settings.get("instructions") if isinstance(run.settings, dict) else None
        custom = custom if isinstance(custom, str) else session.system
        has_tools, notes = bool(self.specs), self.tool_notes
        system = system_prompt(
            self.agent.instructions, custom, self.input.summary, parts, tools=has_tools, tool_notes=notes
        )
        return ModelRequest(system, ask_to_continue(messages, self.model.info), self.specs, settings)
