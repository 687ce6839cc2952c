"""What answers where no model can be had. It says so in its first line, and what to do about it."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType

import anyio

from holdfast.agents.models.port import Answer, AssistantSaid, Delta, ModelInfo, Request, Take, ToolCall, UserSaid
from holdfast.core.events import TextDelta, Usage
from holdfast.core.parts import Text
from holdfast.core.values import dataclass

DEMO = ModelInfo("demo/scripted", "Scripted demo", "demo", context=None, abilities=frozenset({"prefill"}))
FIRST_LINE = "This is the scripted demo, not a language model."
HELP = (
    "To talk to a real one, set a key such as OPENAI_API_KEY or ANTHROPIC_API_KEY, start Ollama or LM Studio on this "
    "machine, or fetch the small local model with `holdfast models pull`. Then choose it in the list of models."
)


def reply(request: Request) -> str:
    """The whole answer to a request."""
    said = [m for m in request.messages if isinstance(m, UserSaid)]
    texts = [item for item in said[-1].content if isinstance(item, str)] if said else []
    asked = " ".join(" ".join(texts).split())[:200]
    echo = f"\n\nYou wrote: “{asked}”" if asked else ""
    everything = "Everything else is real: this answer is written to the journal word by word before you see it."
    return (
        f"{FIRST_LINE}\n\n{HELP}{echo}\n\n{everything} Reload the page or stop it in the middle, and nothing is lost."
    )


@dataclass(frozen=True, slots=True)
class DemoModel:
    info: ModelInfo = DEMO
    pause: float = 0.03
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep

    def stream(self, request: Request) -> AbstractAsyncContextManager[Answer]:
        return _DemoAnswer(self, request)


class _DemoAnswer:
    def __init__(self, model: DemoModel, request: Request) -> None:
        self._model = model
        text = reply(request)
        last = request.messages[-1] if request.messages else None
        if isinstance(last, AssistantSaid):
            text = text.removeprefix("".join(p.text for p in last.parts if isinstance(p, Text)))
        words = re.findall(r"\S+\s*|\s+", text)
        self._deltas: list[Delta] = [TextDelta(word) for word in words]
        self._deltas.append(Usage(0, len(words)))
        self._at = 0

    calls: Sequence[ToolCall] = ()
    finish_reason = "stop"

    async def __aenter__(self) -> "_DemoAnswer":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    async def follow(self, take: Take) -> None:
        pass

    def __aiter__(self) -> AsyncIterator[Sequence[Delta]]:
        return self

    async def __anext__(self) -> Sequence[Delta]:
        if self._at == len(self._deltas):
            raise StopAsyncIteration
        await self._model.sleep(self._model.pause)
        self._at += 1
        return [self._deltas[self._at - 1]]
