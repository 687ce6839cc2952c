"""Small jobs for a model beside the conversation: a summary when the context fills, a title for the list."""

from collections.abc import Sequence
from typing import Final

from holdfast.agents.models.port import Model, ModelFailed, Request, UserSaid
from holdfast.agents.tools.port import as_text, shorten
from holdfast.core.events import TextDelta
from holdfast.core.parts import File, Part, Text, Tool
from holdfast.core.session import Message
from holdfast.core.values import dataclass

SUMMARISE: Final = (
    "Summarise the conversation below for yourself: you will go on with it and see only this summary. Keep what the "
    "person wants, decisions and their reasons, facts, names, file paths, numbers, what was done with which tool, and "
    "what is still open. Answer with the summary alone."
)
TITLE: Final = (
    "Give the conversation below a title of at most six words, in its language, without quotation marks or full stop. "
    "Answer with the title alone."
)
_MESSAGE: Final = 8000
_RESULT: Final = 1000
_DEFAULT_CONTEXT: Final = 32_000


async def ask(model: Model, system: str, text: str, max_tokens: int) -> str:
    """One question, one text; reasoning is not part of it."""
    request = Request(system, (UserSaid((text,)),), settings={"max_tokens": max_tokens})
    pieces: list[str] = []
    async with model.stream(request) as answer:
        async for deltas in answer:
            pieces += [delta.text for delta in deltas if isinstance(delta, TextDelta)]
    return "".join(pieces).strip()


@dataclass(frozen=True, slots=True)
class ModelSummariser:
    """`ports.Summariser`. What does not fit into the model's context is shortened in its middle."""

    model: Model
    max_tokens: int = 2000

    async def summarise(self, messages: Sequence[Message], earlier: str | None) -> str:
        room = ((self.model.info.context or _DEFAULT_CONTEXT) - self.max_tokens) * 3
        before = f"Summary of what came before:\n{earlier}\n\n" if earlier else ""
        summary = await ask(self.model, SUMMARISE, shorten(before + as_script(messages), room), self.max_tokens)
        if not summary:
            raise ModelFailed("protocol", "The model gave no summary. Try again, or choose another model.")
        return summary


@dataclass(frozen=True, slots=True)
class ModelTitler:
    """`ports.Titler`. A reasoning model may need the room; the title itself is a line."""

    model: Model
    max_tokens: int = 1000

    async def title(self, messages: Sequence[Message]) -> str:
        answer = await ask(self.model, TITLE, shorten(as_script(messages[:4]), 6000), self.max_tokens)
        line = next((line.strip() for line in answer.splitlines() if line.strip()), "")
        return line.strip("\"'“”„«»*#` ").rstrip(".")[:80]


def as_script(messages: Sequence[Message]) -> str:
    """A conversation as plain text."""
    names = {"user": "Person", "assistant": "Assistant"}
    return "\n\n".join(f"{names[message.role]}: {shorten(_plain(message.parts), _MESSAGE)}" for message in messages)


def _plain(parts: Sequence[Part]) -> str:
    lines: list[str] = []
    for part in parts:
        if isinstance(part, Text):
            lines.append(part.text)
        elif isinstance(part, File):
            lines.append(f"[file {part.name}]")
        elif isinstance(part, Tool):
            result = shorten(as_text(part.result), _RESULT) if part.state == "done" else part.state
            lines.append(f"[{part.name}({shorten(as_text(part.args), _RESULT)}) → {result}]")
    return "\n".join(lines)
