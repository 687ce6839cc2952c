"""What the local model is told: plain turns of text, as many of the newest as fit. Pure."""

from typing import assert_never

from holdfast.agents.models import wire
from holdfast.agents.models.port import AssistantSaid, Media, Request, Said, ToolCall, ToolSaid, UserSaid
from holdfast.core.parts import Json, Reasoning, Text
from holdfast.core.values import replace

SETTINGS = frozenset({"temperature", "top_p", "top_k", "min_p", "max_tokens", "seed", "stop", "repeat_penalty"})
_DEFAULTS: dict[str, Json] = {"temperature": 0.6, "top_p": 0.92, "repeat_penalty": 1.1, "max_tokens": 1024}
_CHARACTERS_PER_TOKEN = 3.0
_ROOM_FOR_THE_ANSWER = 0.25


def body(request: Request) -> dict[str, Json]:
    known = {name: value for name, value in request.settings.items() if name in SETTINGS and value is not None}
    messages: list[Json] = [{"role": "system", "content": request.system}] if request.system else []
    for said in request.messages:
        role, text = _turn(said)
        if text:
            messages.append({"role": role, "content": text})
    return {
        **_DEFAULTS,
        **known,
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,  # a chunk per batch of the prompt: the moments at which it can be stopped
    }


def shortened(request: Request, found: int | None, context: int) -> Request | None:
    """Without the oldest turns that do not fit; a turn begins with what a person said. `found`: the tokens that it
    turned out to have, which was too much, so that at least one turn goes. None if only the newest is left."""
    messages = request.messages
    characters = _characters(request, messages)
    per_token = characters / found if found else _CHARACTERS_PER_TOKEN
    room = context * (1 - _ROOM_FOR_THE_ANSWER) * per_token
    begins = [at for at, said in enumerate(messages) if at > 0 and isinstance(said, UserSaid)]
    if found and not begins:
        return None
    dropped = 0
    for at in begins:
        if not (found and dropped == 0) and _characters(request, messages[dropped:]) <= room:
            break
        dropped = at
    return replace(request, messages=messages[dropped:])


def _characters(request: Request, messages: tuple[Said, ...]) -> int:
    return len(request.system or "") + sum(len(_turn(said)[1]) + 20 for said in messages)


def _turn(said: Said) -> tuple[str, str]:
    match said:
        case UserSaid(content):
            return "user", "\n\n".join(_item(item) for item in content)
        case AssistantSaid(parts):
            return "assistant", "".join(_part(part) for part in parts)
        case ToolSaid(_, name, text):
            return "user", f"(The tool {name} answered: {text})"
        case _:
            assert_never(said)


def _item(item: str | Media) -> str:
    if isinstance(item, str):
        return item
    return wire.as_text(item) if wire.is_text(item) else wire.left_out(item)


def _part(part: Text | Reasoning | ToolCall) -> str:
    return part.text if isinstance(part, Text) else ""
