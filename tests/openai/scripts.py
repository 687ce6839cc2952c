"""Answers of the scripted upstream, and what the clients of these tests send."""

from typing import Any, Final

from pydantic import BaseModel

from tests.chat.model_server import PROVIDER
from tests.upstream import End, Head, Script, delta, sse

USAGE: Final = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}}
PNG: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5Er"
    "kJggg=="
)


class Tide(BaseModel):
    place: str
    hours: list[int]


TIDE: Final = '{"place":"Brest","hours":[6,18]}'
WEATHER: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL: Final[Any] = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather",
    "parameters": WEATHER,
    "strict": True,
}
CHAT_TOOL: Final[Any] = {
    "type": "function",
    "function": {"name": "get_weather", "description": "The weather", "parameters": WEATHER, "strict": True},
}


def calls_function(*pieces: str, call_id: str = "call_1", thinks: str = "", name: str = "get_weather") -> Script:
    """A call of the client's function, with its arguments in pieces."""
    head = {"index": 0, "id": call_id, "function": {"name": name, "arguments": ""}}
    rest = [delta(tool_calls=[{"index": 0, "function": {"arguments": piece}}]) for piece in pieces]
    thought = [delta(reasoning_content=thinks)] if thinks else []
    return [Head(), *sse(*thought, delta(tool_calls=[head]), *rest, delta(finish="tool_calls"), "[DONE]"), End()]


def thinks_and_says(thought: str, *texts: str) -> Script:
    said = [delta(content=text) for text in texts]
    return [Head(), *sse(delta(reasoning_content=thought), *said, delta(finish="stop"), USAGE, "[DONE]"), End()]


def named(model: str) -> str:
    return f"{PROVIDER}/{model}"
