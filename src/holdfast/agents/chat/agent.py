"""The agent loop: model step, its tools, model step … until the model asks for nothing more.

Everything that the loop knows of a run is its transcript, so it starts a turn and takes one up in the same way: first
the calls that have no answer yet, then the model.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from holdfast.agents.chat import tokens
from holdfast.agents.chat.calls import Wanted, unfinished_text, unsettled
from holdfast.agents.chat.compaction import FixedHistory, History
from holdfast.agents.chat.files import FileReader, attached
from holdfast.agents.chat.hands import Hands
from holdfast.agents.chat.helpers import ModelSummariser
from holdfast.agents.chat.history import Attached, answer, conversation
from holdfast.agents.chat.joint import Joint
from holdfast.agents.chat.prompt import GO_ON, INSTRUCTIONS, system_prompt
from holdfast.agents.chat.record import Record
from holdfast.agents.chat.stream import Listening
from holdfast.agents.chat.workspaces import workspace
from holdfast.agents.models.port import AssistantSaid, Model, ModelFailed, Request, Said, ToolCall, UserSaid
from holdfast.agents.tools.policy import Grants, NoGrants, Policy
from holdfast.agents.tools.port import Tool, by_name
from holdfast.core.parts import Json
from holdfast.core.values import dataclass, replace
from holdfast.ports import AgentFailed, Out, Turn

FindModel = Callable[[str | None], Awaitable[Model]]
"""The model of that id, or the default one. AgentFailed says why there is none, and what to do."""
FindTools = Callable[[Turn], Awaitable[Sequence[Tool]]]
FindPolicy = Callable[[Turn], Awaitable[Policy]]
"""What the turn's owner has set, as it is when the turn begins."""

MODEL_SETTINGS: Final = ("temperature", "top_p", "max_tokens", "seed", "reasoning_effort", "stop")


@dataclass(frozen=True, slots=True)
class Limits:
    max_steps: int = 100
    """Model calls of one execution: a run that was answered or continued by a person may make as many again."""
    max_cost: float | None = None
    """Of one run, in what its model's prices are given in; checked before each model call."""
    max_repeats: int = 3
    """The same call with the same arguments, in a row: the next is refused, and the one after it ends the run."""
    compact_at: float = 0.8
    """Fraction of the context at which what came before the turn is summarised."""


async def defaults(turn: Turn) -> Policy:
    """Every tool by its own rule."""
    return Policy()


@dataclass(frozen=True, slots=True)
class ChatAgent:
    find_model: FindModel
    find_tools: FindTools
    files: FileReader
    workspaces: Path
    """Below it, each session has a directory of its own."""
    find_policy: FindPolicy = defaults
    grants: Grants = field(default_factory=NoGrants)
    history: History = field(default_factory=FixedHistory)
    limits: Limits = field(default_factory=Limits)
    instructions: str = INSTRUCTIONS
    can_continue: bool = True

    async def run(self, turn: Turn, out: Out) -> str | None:
        """A model that knows no tools is offered none; calls that another one left are still seen to."""
        model = await self.find_model(turn.run.model)
        needed = "tools" in model.info.abilities or unsettled(turn.transcript.parts)
        tools = await self.find_tools(turn) if needed else ()
        return await _Loop(self, turn, out, model, tools, await self.find_policy(turn)).go()


class _Loop:
    def __init__(
        self, agent: ChatAgent, turn: Turn, out: Out, model: Model, tools: Sequence[Tool], policy: Policy
    ) -> None:
        self._agent = agent
        self._turn = turn
        self._model = model
        self._specs = tuple(tool.spec for tool in tools) if "tools" in model.info.abilities else ()
        self._input = turn.input
        self._files: Attached = {}
        self._record = Record(out, turn.transcript)
        self._steps = 0
        self._compacted = False
        self._hands = Hands(
            turn,
            out,
            self._record,
            by_name(tools),
            policy,
            agent.grants,
            workspace(agent.workspaces, turn.session.id),
            agent.limits.max_repeats,
            dict(turn.decisions),
        )

    async def go(self) -> str | None:
        await self._hands.heed()
        await self._hands.settle(unsettled(self._record.parts))
        while True:
            calls, finish_reason = await self._step()
            if not calls:
                return finish_reason
            await self._hands.settle(calls)

    # ---- one step ----

    async def _step(self) -> tuple[Sequence[Wanted], str | None]:
        self._check_limits()
        partial = unfinished_text(self._record.parts)
        request = await self._request()
        await self._record.close_reasoning()
        await self._record.begin_step(goes_on=partial is not None)
        told_to_go_on = partial is not None and isinstance(request.messages[-1], UserSaid)
        listening = Listening(self._record, Joint(partial or "" if told_to_go_on else ""))
        self._steps += 1
        try:
            calls, finish_reason = await self._listen(listening, request)
        except ModelFailed as error:
            if error.code != "context-length" or listening.spoke or self._compacted:
                raise
            await self._compact()  # its context is smaller than we thought, or not known
            return await self._step()
        wanted = await listening.end(calls)
        if not listening.spoke and partial is None:
            raise AgentFailed("empty-answer", "The model ended its answer without saying anything. Try again.")
        return wanted, finish_reason

    async def _listen(self, listening: Listening, request: Request) -> tuple[Sequence[ToolCall], str | None]:
        async with self._model.stream(request) as upstream:
            await listening.hear(upstream)
            return upstream.calls, upstream.finish_reason

    def _check_limits(self) -> None:
        limits, usage = self._agent.limits, self._record.transcript.usage
        if self._steps >= limits.max_steps:
            raise AgentFailed("limit", f"Stopped after {self._steps} steps, the most at a time. Continue to go on.")
        cost = None if usage is None else usage.cost
        if limits.max_cost is not None and cost is not None and cost >= limits.max_cost:
            raise AgentFailed("limit", f"Stopped: this run has cost {cost:.4f}, and its limit is {limits.max_cost}.")

    # ---- what the model is shown ----

    async def _request(self) -> Request:
        if self._steps:
            self._input = await self._agent.history.reload(self._turn)
        request = await self._compose()
        limit = self._model.info.context
        if limit is None or tokens.of_request(request) < limit * self._agent.limits.compact_at:
            return request
        if not self._compacted:
            await self._compact()
            request = await self._compose()
        room = limit * self._agent.limits.compact_at - tokens.of_request(replace(request, messages=()))
        return replace(request, messages=tuple(tokens.fit(request.messages, int(room))))

    async def _compact(self) -> None:
        """Once per execution: what a second summary could save is what this one kept."""
        self._compacted = True
        await self._agent.history.compact(self._turn, ModelSummariser(self._model))
        self._input = await self._agent.history.reload(self._turn)

    async def _compose(self) -> Request:
        self._files = await attached(self._agent.files, self._input.messages, self._model.info, self._files)
        parts = self._record.parts
        said = conversation(self._input.messages, self._files) + answer(parts, self._record.marks)
        system = system_prompt(
            self._agent.instructions,
            self._own_instructions(),
            self._input.summary,
            parts,
            tools=bool(self._specs),
        )
        return Request(system, tuple(self._ended(said)), self._specs, self._settings())

    def _ended(self, said: list[Said]) -> list[Said]:
        """Words that were cut off are gone on with: by the model itself where it can, else because it is told to."""
        if not said:
            raise AgentFailed("no-question", "The question is no longer there, so there is nothing to answer.")
        if not isinstance(said[-1], AssistantSaid) or "prefill" in self._model.info.abilities:
            return said
        return [*said, UserSaid((GO_ON,))]

    def _own_instructions(self) -> str | None:
        """Those that came with the turn, or else the session's."""
        settings = self._turn.run.settings
        own = settings.get("instructions") if isinstance(settings, dict) else None
        return own if isinstance(own, str) else self._turn.session.system

    def _settings(self) -> dict[str, Json]:
        merged: dict[str, Json] = {}
        for settings in (self._turn.session.settings, self._turn.run.settings):
            if isinstance(settings, dict):
                merged |= {name: settings[name] for name in MODEL_SETTINGS if settings.get(name) is not None}
        return merged
