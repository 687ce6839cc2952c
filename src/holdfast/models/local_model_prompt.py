"""The local model's prompt: plain text turns, as many of the newest as fit. Pure."""

from dataclasses import replace
from typing import assert_never

from holdfast.core.parts import Json, TextPart
from holdfast.ports.model import AssistantMessage, ChatMessage, ModelRequest, ToolMessage, UserMessage

SETTINGS = frozenset({"temperature", "top_p", "top_k", "min_p", "max_tokens", "seed", "stop", "repeat_penalty"})
_DEFAULTS: dict[str, Json] = {"temperature": 0.6, "top_p": 0.92, "repeat_penalty": 1.1, "max_tokens": 1024}
_CHARACTERS_PER_TOKEN = 3.0
_ROOM_FOR_THE_ANSWER = 0.25


def body(request: ModelRequest) -> dict[str, Json]:
    known = {name: value for name, value in request.settings.items() if name in SETTINGS and value is not None}
    messages: list[Json] = [{"role": "system", "content": request.system}] if request.system else []
    for message in request.messages:
        role, text = _turn(message)
        if text:
            messages.append({"role": role, "content": text})
    return {
        **_DEFAULTS,
        **known,
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,  # a chunk per batch of the prompt, at which it can be cancelled
    }


def shortened(request: ModelRequest, found: int | None, context: int) -> ModelRequest | None:
    """The request without the oldest turns that do not fit; a turn starts with a user message. `found`: the number of
    tokens that turned out to be too many, so at least one turn is dropped. None if only the newest is left."""
    messages = request.messages
    characters = _characters(request, messages)
    per_token = characters / found if found else _CHARACTERS_PER_TOKEN
    room = context * (1 - _ROOM_FOR_THE_ANSWER) * per_token
    starts = [at for at, message in enumerate(messages) if at > 0 and isinstance(message, UserMessage)]
    if found and not starts:
        return None
    dropped = 0
    for at in starts:
        if not (found and dropped == 0) and _characters(request, messages[dropped:]) <= room:
            break
        dropped = at
    return replace(request, messages=messages[dropped:])


def _characters(request: ModelRequest, messages: tuple[ChatMessage, ...]) -> int:
    return len(request.system or "") + sum(len(_turn(message)[1]) + 20 for message in messages)


def _turn(message: ChatMessage) -> tuple[str, str]:
    match message:
        case UserMessage(content):
            return "user", "\n\n".join(item for item in content if isinstance(item, str))
        case AssistantMessage(parts):
            return "assistant", "".join(part.text for part in parts if isinstance(part, TextPart))
        case ToolMessage(_, name, text):
            return "user", f"(The tool {name} answered: {text})"
        case _:
            assert_never(message)
