"""Questions of running tools to the person, one at a time: a run shows one question. How long a person has:
`answer_within` of `agents.chat.agent.ChatLimits`."""

from dataclasses import dataclass, field

import anyio

from holdfast.core.events import InputRequested
from holdfast.ports.agent import AgentOutput, InputAnswer
from holdfast.ports.tool import PersonQuestion


@dataclass(frozen=True, slots=True)
class PersonQuestions:
    out: AgentOutput
    answer_within: float  # Seconds
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    async def ask(self, call_id: str, question: PersonQuestion) -> InputAnswer:
        async with self._lock:
            asked = (call_id, question.server, question.kind, question.message, question.schema, self.answer_within)
            return await self.out.ask_during_call(InputRequested(self.out.new_question_id(), *asked))
