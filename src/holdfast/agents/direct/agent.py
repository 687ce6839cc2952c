"""One question to one model. The tools are the asker's: a call of one is the end of the run, and its result begins the
next turn. There is no loop, no prompt of ours and no summary: what does not fit is the model's to refuse.
"""

from holdfast.agents.chat.agent import FindModel
from holdfast.agents.chat.calls import unfinished_text, unsettled
from holdfast.agents.chat.files import FileReader, attached
from holdfast.agents.chat.history import answer, conversation
from holdfast.agents.chat.joint import Joint
from holdfast.agents.chat.prompt import GO_ON
from holdfast.agents.chat.record import Record
from holdfast.agents.chat.stream import Listening
from holdfast.agents.direct import wishes
from holdfast.agents.models.port import AssistantSaid, Model, Request, Said, UserSaid
from holdfast.core.parts import Part
from holdfast.core.values import dataclass
from holdfast.ports import AgentFailed, Out, Turn

TOOL_CALLS = "tool_calls"


@dataclass(frozen=True, slots=True)
class DirectAgent:
    find_model: FindModel
    files: FileReader
    can_continue: bool = True

    async def run(self, turn: Turn, out: Out) -> str | None:
        record = Record(out, turn.transcript)
        if unsettled(record.parts):  # an earlier life had got as far as its calls: they are the asker's to answer
            return TOOL_CALLS
        model = await self.find_model(turn.run.model)
        partial = unfinished_text(record.parts)
        request = await self._request(turn, model, record.parts)
        await record.close_reasoning()
        await record.begin_step(goes_on=partial is not None)
        told_to_go_on = partial is not None and isinstance(request.messages[-1], UserSaid)
        listening = Listening(record, Joint(partial or "" if told_to_go_on else ""))
        async with model.stream(request) as upstream:
            await listening.hear(upstream)
            calls = await listening.end(upstream.calls)
            finish_reason = upstream.finish_reason
        if not listening.spoke and partial is None:
            raise AgentFailed("empty-answer", "The model ended its answer without saying anything. Try again.")
        return TOOL_CALLS if calls else finish_reason

    async def _request(self, turn: Turn, model: Model, parts: tuple[Part, ...]) -> Request:
        wished = wishes.read(turn)
        files = await attached(self.files, turn.input.messages, model.info, {})
        said = conversation(turn.input.messages, files) + answer(parts)
        if not said:
            raise AgentFailed("no-question", "The question is no longer there, so there is nothing to answer.")
        system = [text for text in (wished.system, turn.input.summary) if text]
        messages = _ended(said, prefill="prefill" in model.info.abilities)
        return Request("\n\n".join(system) or None, tuple(messages), wished.tools, wished.settings)


def _ended(said: list[Said], *, prefill: bool) -> list[Said]:
    """Words that were cut off are gone on with: by the model itself where it can, else because it is told to."""
    return said if prefill or not isinstance(said[-1], AssistantSaid) else [*said, UserSaid((GO_ON,))]
