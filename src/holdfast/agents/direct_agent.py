"""The direct agent: one request to one model, without a loop, a prompt or compaction, for clients that bring their own
instructions and tools. A tool call ends the run, and its result begins the next turn. Which settings it sends:
`core.chat_settings`."""

from dataclasses import dataclass
from typing import Any

from holdfast.agents.chat.agent import FindModel
from holdfast.agents.chat.answer_reader import AnswerReader
from holdfast.agents.chat.attachments import FileReader, read_attachments
from holdfast.agents.chat.model_messages import answer, ask_to_continue, compose_conversation, with_answer
from holdfast.agents.chat.requested_calls import unsettled
from holdfast.agents.chat.run_log import RunLog
from holdfast.core import chat_settings
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
    can_steer: bool = False

    async def run(self, turn: Turn, out: AgentOutput) -> str | None:
        log = RunLog(out, turn.transcript)
        if unsettled(log.parts):  # an earlier execution ended with calls, which the client answers
            return TOOL_CALLS
        model = await self.find_model(turn)
        request = await self._request(turn, model, log.parts)
        calls, finish_reason = await AnswerReader(log, request).read(model)
        return TOOL_CALLS if calls else finish_reason

    async def _request(self, turn: Turn, model: Model, parts: tuple[Part, ...]) -> ModelRequest:
        chat = chat_settings.of_run(turn.session, turn.run, turn.preferences)
        if not isinstance(chat.get("instructions"), str | None):
            raise AgentError("bad-request", "settings.instructions must be a string.")
        files = await read_attachments(self.files, turn.input.messages, model.info, {}, parts)
        messages = with_answer(await compose_conversation(turn.input.messages, files), answer(parts, files))
        system = "\n\n".join(text for text in (chat.get("system"), turn.input.summary) if text) or None
        passed = {name: chat[name] for name in ALL_SETTINGS if name in chat}
        return ModelRequest(system, ask_to_continue(messages, model.info), _tools(chat.get("tools")), passed)


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
