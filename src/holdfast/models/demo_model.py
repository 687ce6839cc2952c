"""The scripted demo model, which answers if no other model is available. Its answer says so, and how to connect a real
model. When it is chosen: `models.default_model`."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from holdfast.core.events import TextDelta, Usage
from holdfast.core.parts import TextPart
from holdfast.models.iterated_answer import IteratedAnswer
from holdfast.ports.model import AssistantMessage, Delta, ModelAnswer, ModelInfo, ModelRequest, UserMessage

DEMO = ModelInfo("demo/scripted", "Scripted demo", "demo", context=None, abilities=frozenset({"prefill"}))
FIRST_LINE = "This is the scripted demo, not a language model."
HELP = (
    "To use a real one, open *Settings → Models → Connect a model*: it finds Ollama and LM Studio on this machine, and "
    "takes an API key or the address of a model server. Without a browser, set a key such as OPENAI_API_KEY, or "
    "download the small local model with `holdfast models pull`."
)


def reply(request: ModelRequest) -> str:
    """The whole answer to a request."""
    messages = [m for m in request.messages if isinstance(m, UserMessage)]
    texts = [item for item in messages[-1].content if isinstance(item, str)] if messages else []
    question = " ".join(" ".join(texts).split())[:200]
    echo = f"\n\nYou wrote: “{question}”" if question else ""
    return (
        f"{FIRST_LINE}\n\n{HELP}{echo}\n\nEverything else is real: this answer is saved word by word before you "
        "see it. Reload the page or stop it midway, and nothing is lost."
    )


@dataclass(frozen=True, slots=True)
class DemoModel:
    info: ModelInfo = DEMO
    pause: float = 0.03
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelAnswer]:
        yield IteratedAnswer(lambda _: self._deltas(request), finish_reason="stop")

    async def _deltas(self, request: ModelRequest) -> AsyncIterator[Sequence[Delta]]:
        text = reply(request)
        last = request.messages[-1] if request.messages else None
        if isinstance(last, AssistantMessage):
            text = text.removeprefix("".join(p.text for p in last.parts if isinstance(p, TextPart)))
        words = re.findall(r"\S+\s*|\s+", text)
        deltas: list[Delta] = [*(TextDelta(word) for word in words), Usage(0, len(words))]
        for delta in deltas:
            await self.sleep(self.pause)
            yield [delta]
