"""The chat agent's loop: call the model, run the tools it requests, and repeat until it requests none. The transcript
is its only state, so starting and resuming a turn are the same: first run the calls that have no result yet. Its limits
(`ChatLimits`: steps, cost, repeats) are here; which settings it sends: `core.chat_settings`; retries of the model:
`models.request_policy`."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from holdfast.agents.chat import context_window
from holdfast.agents.chat.answer_reader import AnswerReader
from holdfast.agents.chat.attachments import ToolFileStore, read_attachments
from holdfast.agents.chat.mcp_sampling import answer_server
from holdfast.agents.chat.model_messages import (
    Attached,
    answer,
    ask_to_continue,
    beside_loop,
    compose_conversation,
    with_answer,
)
from holdfast.agents.chat.person_questions import PersonQuestions
from holdfast.agents.chat.project_files import ProjectFiles, read_project_files, with_media
from holdfast.agents.chat.requested_calls import RequestedCall, unsettled
from holdfast.agents.chat.run_log import RunLog
from holdfast.agents.chat.summary_and_title import ModelSummarizer
from holdfast.agents.chat.system_prompt import INSTRUCTIONS, system_prompt
from holdfast.agents.chat.tool_runner import ToolRunner
from holdfast.agents.chat.workspaces import workspace
from holdfast.core import chat_settings
from holdfast.core.errors import HoldfastError
from holdfast.core.model_input import ModelInput
from holdfast.core.parts import Json
from holdfast.ports.agent import AgentError, AgentOutput, Summarizer, Turn
from holdfast.ports.model import Model, ModelError, ModelRequest, ToolSpec
from holdfast.ports.tool import ChangeRecorder, Tool
from holdfast.tools.approval_policy import ApprovalPolicy, GrantStore

log = logging.getLogger("holdfast.agents")

FindModel = Callable[[Turn], Awaitable[Model]]
"""Returns the turn's model, or the default model. Raises AgentError when there is none."""
FindTools = Callable[[Turn], Awaitable[Sequence[Tool]]]
FindPolicy = Callable[[Turn], Awaitable[ApprovalPolicy]]
"""Returns the owner's tool rules as they are when the turn begins."""


@dataclass(frozen=True, slots=True)
class ChatLimits:
    max_steps: int = 100
    """Model calls per run. Continuing makes another run."""
    max_cost: float | None = None
    """Per run, as the provider reports it (`models.usage`); checked before each model call. No setting changes it."""
    max_repeats: int = 3  # Identical consecutive calls. The next one is refused, and the one after that ends the run.
    answer_within: float = 600.0  # Seconds that a person has to answer a question of a running tool
    compact_at: float = context_window.COMPACT_AT  # Fraction of the context window at which turns are summarized


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
    record_changes: Callable[[Turn], ChangeRecorder | None] = lambda turn: None
    can_park: bool = True
    can_resume: bool = True
    can_steer: bool = True

    async def run(self, turn: Turn, out: AgentOutput) -> str | None:
        """Answer the turn. The model is offered tools only if it supports them and the chat has not turned them off.
        Calls that an earlier answer left open are run in either case."""
        model = await self.find_model(turn)
        chat = chat_settings.of_run(turn.session, turn.run, turn.preferences)
        offered = "tools" in model.info.abilities and chat.get("use_tools") is not False
        needed = offered or unsettled(turn.transcript.parts)
        has_person = self.has_person(turn)
        found = await self.find_tools(turn) if needed else ()
        tools = [tool for tool in found if has_person or not tool.traits.asks_user]
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
            PersonQuestions(out, self.limits.answer_within) if has_person else None,
            partial(answer_server, model, run_log),
            self.record_changes(turn),
        )
        specs = tuple(tool.spec for tool in tools) if offered else ()
        notes = tuple(dict.fromkeys(tool.traits.instructions for tool in tools if tool.traits.instructions))
        return await _ChatLoop(self, turn, model, chat, specs, notes, run_log, runner, turn.input).run()


@dataclass(slots=True)
class _ChatLoop:
    agent: ChatAgent
    turn: Turn
    model: Model
    chat: Mapping[str, Json]  # The settings that count for this run
    specs: tuple[ToolSpec, ...]
    tool_notes: tuple[str, ...]
    log: RunLog
    tool_runner: ToolRunner
    input: ModelInput
    files: Attached = field(default_factory=dict)
    project_files: ProjectFiles | None = None  # Read once
    requests_made: int = 0
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
        if self.log.transcript.steps:  # the first request follows at once
            await self.log.take_steering()
        reader = AnswerReader(self.log, await self._request())
        self.requests_made += 1
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
        if self.requests_made:
            self.input = await self.agent.history.reload(self.turn)
        request = await self._compose()
        window = self.model.info, self.agent.limits.compact_at
        if not await beside_loop(request.messages, lambda: context_window.is_nearly_full(request, *window)):
            return request
        if not self.compacted:
            await self._compact()
            request = await self._compose()
        return await beside_loop(request.messages, lambda: context_window.fit_request(request, *window))

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
        if self.project_files is None:
            self.project_files = await read_project_files(self.agent.files, self.turn.run, self.model.info)
        messages = with_answer(await compose_conversation(self.input.messages, self.files), answer(parts, self.files))
        messages = with_media(messages, self.project_files.media)
        settings = {name: self.chat[name] for name in chat_settings.MODEL_SETTINGS if name in self.chat}
        custom = self.chat.get("system")
        has_tools, notes = bool(self.specs), self.tool_notes
        system = system_prompt(
            self.agent.instructions,
            custom,
            self.input.summary,
            parts,
            tools=has_tools,
            tool_notes=notes,
            project_files=self.project_files.text,
        )
        return ModelRequest(system, ask_to_continue(messages, self.model.info), self.specs, settings)
