"""Summaries for compaction and titles for the session list, both written by a model. When to summarize:
`agents.chat.context_window`; which title wins: `engine.titles`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.agents.chat.inline_reasoning import InlineReasoning
from holdfast.agents.message_text import parts_as_text
from holdfast.core.events import ReasoningDelta, TextDelta
from holdfast.core.session import Message
from holdfast.ports.model import Model, ModelError, ModelRequest, UserMessage
from holdfast.tools.result_text import shorten

SUMMARIZE: Final = (
    "Summarize the conversation below for yourself: you will continue it and see only this summary. Keep what the "
    "user wants, decisions and their reasons, facts, names, file paths, numbers, what was done with which tool, and "
    "what is still open. Answer with the summary alone."
)
TITLE: Final = (
    "Give the conversation below a title of at most six words, in its language, without quotation marks or a period. "
    "Answer with the title alone."
)
_LONGEST_ANSWER: Final = 64 * 1024  # Characters: several times what the token limits allow, which a server may ignore
_LONGEST_TITLE: Final = 80
_MAX_MESSAGE: Final = 8000
_DEFAULT_CONTEXT: Final = 32_000


async def ask(model: Model, system: str, text: str, max_tokens: int) -> str:
    """Ask one question; return the answer's text without its reasoning, cut at `_LONGEST_ANSWER`."""
    request = ModelRequest(system, (UserMessage((text,)),), settings={"max_tokens": max_tokens})
    answer = await _read_text(model, request, lambda read: len(read) >= _LONGEST_ANSWER)
    return answer[:_LONGEST_ANSWER]


async def _read_text(model: Model, request: ModelRequest, is_enough: Callable[[str], bool] = lambda _: False) -> str:
    """The answer's text without reasoning, also without that which the model writes into its text."""
    inline, text = InlineReasoning(), ""
    async with model.stream(request) as answer:
        async for deltas in answer:
            text += _text_of([d for delta in deltas if isinstance(delta, TextDelta) for d in inline.take(delta.text)])
            if is_enough(text):
                return text.strip()
    return (text + _text_of(inline.end())).strip()


def _text_of(deltas: Sequence[TextDelta | ReasoningDelta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


@dataclass(frozen=True, slots=True)
class ModelSummarizer:
    """`ports.agent.Summarizer`. Shortens the middle of what exceeds the model's context window."""

    model: Model
    max_tokens: int = 2000

    async def summarize(self, messages: Sequence[Message], earlier: str | None) -> str:
        room = ((self.model.info.context or _DEFAULT_CONTEXT) - self.max_tokens) * 3
        before = f"Summary of what came before:\n{earlier}\n\n" if earlier else ""
        summary = await ask(self.model, SUMMARIZE, shorten(before + as_dialog(messages), room), self.max_tokens)
        if not summary:
            raise ModelError("protocol", "The model returned no summary. Try again or choose another model.")
        return summary


@dataclass(frozen=True, slots=True)
class ModelTitler:
    """`ports.agent.Titler`. A title is worth little: few tokens are allowed, and reading stops after the first line. A
    model that spends them on reasoning gives no title."""

    model: Model
    max_tokens: int = 60

    async def title(self, messages: Sequence[Message]) -> str:
        text = shorten(as_dialog(messages[:4]), 3000)
        request = ModelRequest(TITLE, (UserMessage((text,)),), settings={"max_tokens": self.max_tokens})
        answer = await _read_text(self.model, request, lambda read: "\n" in read.strip() or len(read) > _LONGEST_TITLE)
        line = next((line.strip() for line in answer.splitlines() if line.strip()), "")
        if not any(map(str.isalnum, line)):
            return ""  # such as the brace of a model that answers with JSON
        return line.strip("\"'“”„«»*#` ").rstrip(".")[:_LONGEST_TITLE]


def as_dialog(messages: Sequence[Message]) -> str:
    """A conversation as plain text."""
    names = {"user": "User", "assistant": "Assistant"}
    return "\n\n".join(
        f"{names[message.role]}: {shorten(parts_as_text(message.parts), _MAX_MESSAGE)}" for message in messages
    )
