"""How values are stored in one column: as they are, or as JSON. What a column is read as whose JSON is damaged, or has
another shape than this version or an earlier one stored."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from holdfast.core.events import Failure, Usage
from holdfast.core.ids import MessageId
from holdfast.core.memory_ledger import TurnText
from holdfast.core.parts import (
    FilePart,
    Json,
    Part,
    PlanPart,
    ReasoningPart,
    RememberedPart,
    SteeredPart,
    TextPart,
    ToolPart,
    all_to_json,
    from_json,
)
from holdfast.core.personas import shown
from holdfast.core.run import Intent

UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What reading a damaged value raises."""
_DAMAGED_FAILURE: Final = Failure("storage", "The stored reason is damaged and could not be read.")
_DAMAGED_PART: Final = TextPart("[This part of the message is damaged and could not be read.]")


class Codec(NamedTuple):
    """How the value of a field is stored in its column. `encode` is None for a value that is stored as it is. NULL is
    None without `decode`."""

    encode: Callable[[Any], Any] | None
    decode: Callable[[Any], Any]
    """Raises one of `UNREADABLE`."""
    if_damaged: Any = None


_dump = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_load = json.JSONDecoder(parse_constant=lambda _: None).decode
"""NaN and infinite numbers, which versions before 0.2 stored, become null: no response could contain them."""


def encode(value: Json) -> str:
    """Empty values are encoded without `json`: most values are empty, and `json` takes as long as SQLite's lookup."""
    if not value and (value is None or isinstance(value, tuple | list)):
        return "null" if value is None else "[]"
    return _dump(value)


def decode(text: str) -> Any:
    if text == "null":
        return None
    if text == "[]":
        return []
    value = _load(text)
    if "\\ud" in text:  # perhaps a lone surrogate
        value = _load(_dump(value).encode("utf-8", "replace").decode())
    return value


def _optional(to_json: Callable[[Any], Json], from_json: Callable[[Any], Any], if_damaged: Any = None) -> Codec:
    """JSON in a column that is NULL for None."""
    return Codec(
        lambda value: None if value is None else encode(to_json(value)),
        lambda text: from_json(decode(text)),
        if_damaged,
    )


SHOWN_PERSONA: Final = _optional(lambda value: value, shown)


def _texts(text: str) -> tuple[str, ...]:
    value = decode(text)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise TypeError("it is no list of texts")
    return tuple(value)


def _from_failure(failure: Failure | None) -> Json:
    return None if failure is None else {"code": failure.code, "message": failure.message}


def _to_failure(data: Json) -> Failure | None:
    if data is None:
        return None
    code, message = data["code"], data["message"]
    if not isinstance(code, str) or not isinstance(message, str):
        raise TypeError("it is no failure")
    return Failure(code, message)


def _from_usage(usage: Usage) -> list[Json]:
    """Leaves out the last fields if they are unset, because earlier versions do not have them."""
    values = [usage.input_tokens, usage.output_tokens, usage.cost, usage.cached_tokens, usage.reasoning_tokens]
    return values if any(value is not None for value in values[3:]) else values[:3]


def _to_usage(data: Json) -> Usage:
    if not isinstance(data, list) or not all(value is None or type(value) in (int, float) for value in data):
        raise TypeError("it is no list of numbers")
    return Usage(*data)


def _to_intent(data: Json) -> Intent:
    if data["status"] not in ("cancelled", "failed"):
        raise ValueError("it is no intent")
    return Intent(data["status"], data["reason"], _to_failure(data["error"]))


def _to_parts(items: Json) -> tuple[Part, ...]:
    """With a note in the place of each part that is damaged."""
    if not isinstance(items, list):
        raise TypeError("it is no list of parts")
    parts: list[Part] = []
    for item in items:
        try:
            part = from_json(item)
        except UNREADABLE:
            parts.append(_DAMAGED_PART)
        else:
            if part is not None:
                parts.append(part if _is_whole(part) else _DAMAGED_PART)
    return tuple(parts)


def _is_whole(part: Any) -> bool:
    """Whether the values that are always there have their types."""
    match part:
        case TextPart(str()) | ReasoningPart(str()) | SteeredPart(str(), str()) | ToolPart(str(), str(), _, str()):
            return True
        case FilePart(str(), str(), str(), int()):
            return True
        case RememberedPart(items):
            return all(isinstance(item, Mapping) for item in items)
        case PlanPart(entries):
            return all({type(entry.content), type(entry.status)} == {str} for entry in entries)
        case _:
            return False


def _to_turn_text(data: Sequence[Json]) -> TurnText:
    user, assistant = data
    return TurnText(_to_parts(user), _to_parts(assistant))


EMPTY_FOR_NONE: Final = Codec(lambda value: value or "", lambda value: value or None)
_TUPLE: Final = Codec(encode, _texts, ())

CODECS: Final[Mapping[Any, Codec]] = {
    Json: Codec(encode, decode),
    bool: Codec(None, bool),  # SQLite has integers
    tuple[str, ...]: _TUPLE,
    tuple[MessageId, ...]: _TUPLE,
    tuple[Part, ...]: Codec(
        lambda parts: encode(all_to_json(parts)), lambda text: _to_parts(decode(text)), (_DAMAGED_PART,)
    ),
    Failure: _optional(_from_failure, _to_failure, _DAMAGED_FAILURE),
    Usage: _optional(_from_usage, _to_usage),
    Intent: _optional(
        lambda intent: {"status": intent.status, "reason": intent.reason, "error": _from_failure(intent.error)},
        _to_intent,
        Intent("failed", error=_DAMAGED_FAILURE),
    ),
    TurnText: _optional(
        lambda text: [all_to_json(text.user), all_to_json(text.assistant)], _to_turn_text, TurnText((), ())
    ),
}
"""By the type of a field: how it is stored, if not as it is."""
