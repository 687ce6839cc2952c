"""The parts of a message, and their JSON form, which the store, the API and `message.seeded` share. How events become
parts: `core.transcript`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, Final, Literal

from holdfast.core.ids import FileId, MessageId

Json = Any  # A JSON value. `Any`, because tools define their arguments and results.

ToolState = Literal["pending", "waiting", "running", "done", "denied", "unknown", "not_run"]


@dataclass(frozen=True, slots=True)
class TextPart:
    text: str
    begins_step: bool | None = None  # Set where the position among the parts does not tell (core/steps.py)


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    text: str
    provider: Json = None  # Opaque provider data (signatures) that must be sent back to continue
    duration_ms: int | None = None  # How long the reasoning took, if the journal records it and something followed
    begins_step: bool | None = None


@dataclass(frozen=True, slots=True)
class ToolPart:
    call_id: str
    name: str
    args: Json  # Complete arguments; while the model is still writing them, the text so far
    state: ToolState
    result: Json = None
    is_error: bool = False
    output: str = ""  # Output streamed while the tool ran, kept beside the result because clients have seen it
    duration_ms: int | None = None
    provider: Json = None
    may_have_run: bool = False
    """An earlier start has an unknown outcome, and the call is asked about again. Settled messages say so in
    `state`."""
    args_text: str | None = None  # `args` as the model wrote them, if that is not their compact JSON
    begins_step: bool | None = None


MissingFile = Literal["not_in_export", "not_imported"]
"""Why an imported file has no content: the export only names it, or its type or size is refused."""


@dataclass(frozen=True, slots=True)
class FilePart:
    file_id: FileId
    name: str
    media_type: str
    size: int
    call_id: str | None = None  # The newest call with this id before the part returned the file
    missing: MissingFile | None = None


@dataclass(frozen=True, slots=True)
class RememberedPart:
    items: tuple[Mapping[str, Json], ...]
    note: str | None = None  # Why recall returned less than it could, if something failed


PlanStatus = Literal["pending", "in_progress", "completed"]


@dataclass(frozen=True, slots=True)
class PlanEntry:
    content: str
    status: PlanStatus
    priority: str | None = None


@dataclass(frozen=True, slots=True)
class PlanPart:
    """What an agent intends to do, as a checklist. A message has one, which `plan.updated` replaces where it is."""

    entries: tuple[PlanEntry, ...]


@dataclass(frozen=True, slots=True)
class SteeredPart:
    """What the user added while the run was active, where the model read it: between two of its steps."""

    id: MessageId  # Of the queued message that it was until then
    text: str


Part = TextPart | ReasoningPart | ToolPart | FilePart | RememberedPart | PlanPart | SteeredPart


_TYPES: Final[Mapping[str, type[Any]]] = {
    "text": TextPart,
    "reasoning": ReasoningPart,
    "tool": ToolPart,
    "file": FilePart,
    "remembered": RememberedPart,
    "plan": PlanPart,
    "steered": SteeredPart,
}
_NAMES: Final = {kind: name for name, kind in _TYPES.items()}
_ALWAYS: Final = frozenset({"result", "is_error"})  # Optional fields that are written even with their default value
_FIELDS: Final = {
    kind: tuple((field.name, MISSING if field.name in _ALWAYS else field.default) for field in fields(kind))
    for kind in _NAMES
}


def to_json(part: Part) -> dict[str, Json]:
    kind = type(part)
    data: dict[str, Json] = {"type": _NAMES[kind]}
    for name, default in _FIELDS[kind]:
        value = getattr(part, name)
        if default is MISSING or value != default:
            data[name] = list(value) if isinstance(part, RememberedPart) and name == "items" else value
    if isinstance(part, PlanPart):
        data["entries"] = entries_to_json(part.entries)
    return data


def from_json(data: Mapping[str, Json]) -> Part | None:
    """The part, or None for a type that this version does not know."""
    kind = _TYPES.get(data.get("type", ""))
    if kind is None:
        return None
    if kind is TextPart:
        return TextPart(data["text"], data.get("begins_step"))
    values = {**data}
    del values["type"]
    if kind is RememberedPart:
        values["items"] = tuple(data["items"])
    elif kind is PlanPart:
        values["entries"] = entries_from_json(data["entries"])
    part: Part = construct(kind, values)
    return part


def entries_to_json(entries: Sequence[PlanEntry]) -> list[dict[str, Json]]:
    return [{name: value for name, value in asdict(entry).items() if value is not None} for entry in entries]


def entries_from_json(items: Sequence[Mapping[str, Json]]) -> tuple[PlanEntry, ...]:
    return tuple([construct(PlanEntry, item) for item in items])


def construct(kind: type[Any], values: Mapping[str, Json]) -> Any:
    """The value with these fields; fields of a newer version are ignored."""
    try:
        return kind(**values)
    except TypeError:
        return kind(**{field.name: values[field.name] for field in fields(kind) if field.name in values})


def all_to_json(parts: Sequence[Part]) -> list[dict[str, Json]]:
    return [to_json(part) for part in parts]


def json_size(parts: Sequence[Part]) -> int:
    """How many bytes the parts have as JSON."""
    return value_size(all_to_json(parts))


def value_size(value: Json) -> int:
    """How many bytes a value has as JSON."""
    return _utf8_size(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def approximate_size(parts: Sequence[Part]) -> int:
    """About `json_size`, without encoding the texts: those of an answer may be long, and nothing else could run
    meanwhile, in whatever thread."""
    size = max(2, len(parts) + 1)  # Brackets and commas
    for data in all_to_json(parts):
        texts = {name: text for name, text in data.items() if isinstance(text, str)}
        size += value_size(data | dict.fromkeys(texts, "")) + sum(map(_utf8_size, texts.values()))
    return size


def _utf8_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def all_from_json(items: Sequence[Mapping[str, Json]]) -> tuple[Part, ...]:
    return tuple([part for item in items if (part := from_json(item)) is not None])


def plain_text(parts: Sequence[Part]) -> str:
    """The text of a message for search and titles, without reasoning and tools."""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart | SteeredPart))
