"""What a message is made of, and how it is written as JSON (the same in the store, the API and `message.seeded`)."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, assert_never

from holdfast.core.ids import FileId
from holdfast.core.values import dataclass

Json = Any
"""A JSON value. `Any`, because tool arguments and results are whatever the tool says."""

ToolState = Literal["pending", "waiting", "running", "done", "denied", "unknown", "not_run"]


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    text: str
    provider: Json = None
    """Opaque data (signatures) that the provider wants back when the run is continued."""
    duration_ms: int | None = None
    """How long it was thought, where the journal says so and something came after it."""


@dataclass(frozen=True, slots=True)
class Tool:
    call_id: str
    name: str
    args: Json
    """Complete arguments; while the model is still writing them, the text so far."""
    state: ToolState
    result: Json = None
    is_error: bool = False
    output: str = ""
    """What the tool printed while it ran. Kept beside the result: somebody was shown it."""
    duration_ms: int | None = None
    provider: Json = None
    may_have_run: bool = False
    """Asked about or allowed once more after a start whose outcome is unknown. A message that is settled says so by
    the state alone."""


@dataclass(frozen=True, slots=True)
class File:
    file_id: FileId
    name: str
    media_type: str
    size: int


@dataclass(frozen=True, slots=True)
class Remembered:
    items: tuple[Mapping[str, Json], ...]
    note: str | None = None
    """Why there is not more, if something was in the way."""


Part = Text | Reasoning | Tool | File | Remembered


def to_json(part: Part) -> dict[str, Json]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Reasoning(text, provider, duration_ms):
            reasoning: dict[str, Json] = {"type": "reasoning", "text": text}
            if provider is not None:
                reasoning["provider"] = provider
            return reasoning if duration_ms is None else {**reasoning, "duration_ms": duration_ms}
        case Tool():
            data: dict[str, Json] = {
                "type": "tool",
                "call_id": part.call_id,
                "name": part.name,
                "args": part.args,
                "result": part.result,
                "is_error": part.is_error,
                "state": part.state,
            }
            if part.output:
                data["output"] = part.output
            if part.duration_ms is not None:
                data["duration_ms"] = part.duration_ms
            if part.provider is not None:
                data["provider"] = part.provider
            if part.may_have_run:
                data["may_have_run"] = True
            return data
        case File(file_id, name, media_type, size):
            return {"type": "file", "file_id": file_id, "name": name, "media_type": media_type, "size": size}
        case Remembered(items, note):
            remembered = {"type": "remembered", "items": list(items)}
            return remembered if note is None else {**remembered, "note": note}
        case _:
            assert_never(part)


def from_json(data: Mapping[str, Json]) -> Part | None:
    """The part, or None for a type this version does not know (clients and readers ignore those)."""
    match data.get("type"):
        case "text":
            return Text(data["text"])
        case "reasoning":
            return Reasoning(data["text"], data.get("provider"), data.get("duration_ms"))
        case "tool":
            return Tool(
                data["call_id"],
                data["name"],
                data["args"],
                data["state"],
                data.get("result"),
                data.get("is_error", False),
                data.get("output", ""),
                data.get("duration_ms"),
                data.get("provider"),
                data.get("may_have_run", False),
            )
        case "file":
            return File(FileId(data["file_id"]), data["name"], data["media_type"], data["size"])
        case "remembered":
            return Remembered(tuple(data["items"]), data.get("note"))
        case _:
            return None


def all_to_json(parts: Sequence[Part]) -> list[dict[str, Json]]:
    return [to_json(part) for part in parts]


def all_from_json(items: Sequence[Mapping[str, Json]]) -> tuple[Part, ...]:
    return tuple(part for item in items if (part := from_json(item)) is not None)


def plain_text(parts: Sequence[Part]) -> str:
    """The words of a message, for search and titles: text only, not reasoning and not tools."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))
