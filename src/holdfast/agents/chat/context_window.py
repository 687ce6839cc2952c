"""Decides when earlier turns are compacted and which tool results are omitted, so that a request fits into the model's
context window. Sizes are estimates, not for billing: four bytes of UTF-8 count as one token, an image a flat amount.

`core.model_input` decides which messages are sent; the loop in `agents.chat.agent` starts the compaction, also after a
provider's error; what is summarized, also on a person's request: `engine.sessions`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, assert_never

from holdfast.core.parts import ReasoningPart, TextPart
from holdfast.ports.model import AssistantMessage, ChatMessage, Media, ModelInfo, ModelRequest, ToolMessage, UserMessage
from holdfast.tools.result_text import as_text

COMPACT_AT: Final = 0.8  # The default of `ChatLimits.compact_at`, a fraction of the model's context window
_BYTES: Final = 4  # UTF-8 bytes that count as one token
_PER_MESSAGE: Final = 4
_IMAGE: Final = 1500
_SHORT: Final = 400  # Omitting a tool result of up to this many characters saves too little
_KEEP: Final = 2  # The newest results are never omitted: the model has not used them yet


def is_nearly_full(request: ModelRequest, info: ModelInfo, compact_at: float) -> bool:
    """Whether earlier turns are to be compacted: at this fraction of the model's window, if that is known."""
    return info.context is not None and estimate_request(request) >= info.context * compact_at


def fit_request(request: ModelRequest, info: ModelInfo, compact_at: float) -> ModelRequest:
    """The same request without the oldest tool results, if it is nearly full even after compaction."""
    if info.context is None or not is_nearly_full(request, info, compact_at):
        return request
    room = info.context * compact_at - estimate_request(replace(request, messages=()))
    return replace(request, messages=tuple(omit_old_results(request.messages, int(room))))


def estimate_text(text: str) -> int:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return (size + _BYTES - 1) // _BYTES


def estimate_request(request: ModelRequest) -> int:
    tools = sum(tool.size for tool in request.tools) // _BYTES
    return estimate_text(request.system or "") + estimate_messages(request.messages) + tools


def estimate_messages(messages: Sequence[ChatMessage]) -> int:
    return sum(_PER_MESSAGE + _estimate_message(message) for message in messages)


def _estimate_message(message: ChatMessage) -> int:
    match message:
        case UserMessage(content):
            return sum(estimate_text(item) if isinstance(item, str) else estimate_media(item) for item in content)
        case AssistantMessage(parts):
            return sum(
                estimate_text(part.text)
                if isinstance(part, TextPart | ReasoningPart)
                else estimate_text(part.name + as_text(part.args))
                for part in parts
            )
        case ToolMessage(text=text, images=images):
            return estimate_text(text) + sum(map(estimate_media, images))
        case _:
            assert_never(message)


def estimate_media(media: Media) -> int:
    return _IMAGE if media.media_type.startswith("image/") else len(media.data) // 4


def omit_old_results(messages: Sequence[ChatMessage], limit: int) -> list[ChatMessage]:
    """Omit long tool results, oldest first, until the messages fit into `limit` tokens.

    A note replaces each, so that every call keeps a result. Not guaranteed to fit: then the provider reports it."""
    kept = list(messages)
    excess = estimate_messages(kept) - limit
    results = [at for at, message in enumerate(kept) if isinstance(message, ToolMessage)]
    for at in results[:-_KEEP]:
        if excess <= 0:
            break
        old = kept[at]
        assert isinstance(old, ToolMessage)
        if len(old.text) > _SHORT or old.images:
            note = f"[A result of {len(old.text)} characters was omitted to save space. Call the tool again if needed.]"
            kept[at] = replace(old, text=note, images=())
            excess -= _estimate_message(old) - estimate_text(note)
    return kept
