"""The direct agent: one request to one model, without a loop, a prompt or compaction, for clients that bring their own
instructions and tools. A tool call ends the run, and its result begins the next turn."""

from dataclasses import dataclass
from typing import Any

from holdfast.agents.chat.agent import FindModel
from holdfast.agents.chat.answer_reader import AnswerReader
from holdfast.agents.chat.attachments import FileReader, read_attachments
from holdfast.agents.chat.model_messages import answer, ask_to_continue, conversation
from holdfast.agents.chat.requested_calls import unsettled
from holdfast.agents.chat.run_log import RunLog
from holdfast.core.parts import Json, Part
from holdfast.models.dialects import ALL_SETTINGS
from holdfast.ports.agent import AgentError, AgentOutput, Turn
from holdfast.ports.model import Model, ModelRequest, ToolSpec

TOOL_CALLS = "tool_calls"


@dataclass(frozen=True, slots=True)
class DirectAgent:
    find_model: FindModel
    files: FileReader
    can_park: bool = True
    can_resume: bool = True

    async def run(self, turn: Turn, out: AgentOutput) -> str | None:
        log = RunLog(out, turn.transcript)
        if unsettled(log.parts):  # an earlier execution ended with calls, which the client answers
            return TOOL_CALLS
        model = await self.find_model(turn)
        request = await self._request(turn, model, log.parts)
        calls, finish_reason = await AnswerReader(log, request).read(model)
        return TOOL_CALLS if calls else finish_reason

    async def _request(self, turn: Turn, model: Model, parts: tuple[Part, ...]) -> ModelRequest:
        merged: dict[str, Json] = {}  # the run's settings take precedence over the session's
        for settings in (turn.session.settings, turn.run.settings):
            merged |= settings if isinstance(settings, dict) else {}
        instructions = merged.get("instructions", turn.session.system)
        if not isinstance(instructions, str | None):
            raise AgentError("bad-request", "settings.instructions must be a string.")
        files = await read_attachments(self.files, turn.input.messages, model.info, {}, parts)
        messages = conversation(turn.input.messages, files) + answer(parts, files)
        system = "\n\n".join(text for text in (instructions, turn.input.summary) if text) or None
        passed = {name: merged[name] for name in ALL_SETTINGS if merged.get(name) is not None}
        return ModelRequest(system, ask_to_continue(messages, model.info), _tools(merged.get("tools")), passed)


def _tools(tools: Json) -> tuple[ToolSpec, ...]:
    if not isinstance(tools, list | None):
        raise AgentError("bad-request", "settings.tools must be a list of functions.")
    return tuple(_tool(item) for item in tools or ())


def _tool(item: Any) -> ToolSpec:
    match item:
        case {"name": str(name), "parameters": dict(parameters)}:
            strict = item.get("strict")
            return ToolSpec(name, str(item.get("description") or ""), parameters, strict)
        case _:
            raise AgentError("bad-request", "A tool in settings.tools must have a name and parameters.")
