"""Forms that a tool's server asks a person to fill in: the flat subset of JSON Schema that MCP allows. Pure. Who shows
a form, and how it is answered: `tools.mcp.server_requests`, `agents.acp.elicitation`.

Patterns are not among the keywords, so no text can make a check slow.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.core.finite_numbers import is_finite
from holdfast.core.parts import Json

MAX_FIELDS: Final = 30
_MAX_SCHEMA: Final = 20_000  # Characters
_MAX_TEXT: Final = 20_000  # Of one answer
_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "array": list,
}


def form_problem(schema: Json) -> str | None:
    """Why the schema is no form that can be shown; None if it is one."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        return "it must be an object with properties"
    fields = schema["properties"]
    if len(fields) > MAX_FIELDS or len(json.dumps(schema)) > _MAX_SCHEMA:
        return f"it is too large: at most {MAX_FIELDS} fields in {_MAX_SCHEMA} characters are shown"
    required = schema.get("required", [])
    if not isinstance(required, list) or any(not isinstance(name, str) or name not in fields for name in required):
        return "it requires a field that it does not have"
    for name, field in fields.items():
        if not isinstance(field, dict) or str(field.get("type")) not in _TYPES:
            return f"the field {name!r} is not a string, number, integer, boolean or list of choices"
        if field["type"] == "array" and choices(field.get("items")) is None:
            return f"the field {name!r} is a list of something else than choices"
    return None


def choices(field: Json) -> Sequence[str] | None:
    """The values to choose from; None if there are none."""
    if not isinstance(field, dict):
        return None
    if isinstance(field.get("enum"), list):
        return [str(value) for value in field["enum"]]
    options = field.get("oneOf") or field.get("anyOf")
    if isinstance(options, list) and all(isinstance(option, dict) and "const" in option for option in options):
        return [str(option["const"]) for option in options]
    return None


def answer_problem(schema: Mapping[str, Any], answer: Mapping[str, Json]) -> tuple[str, str] | None:
    """The first field whose value does not fit, and why; None if all fit. `schema` is a form."""
    fields: Mapping[str, Mapping[str, Any]] = schema["properties"]
    for name in schema.get("required", []):
        if answer.get(name) is None:
            return name, "is required"
    for name, value in answer.items():
        if name not in fields:
            return name, "is not a field of the form"
        problem = None if value is None else _value_problem(fields[name], value)
        if problem is not None:
            return name, problem
    return None


def _value_problem(field: Mapping[str, Any], value: Any) -> str | None:
    kind = field["type"]
    fits = isinstance(value, _TYPES[kind])  # a boolean is an integer to Python
    if not fits or (isinstance(value, bool) and kind != "boolean"):
        return f"must be of the type {kind}"
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return _text_problem(field, value)
    if isinstance(value, list):
        allowed = choices(field.get("items")) or ()
        if len(value) > len(allowed) or any(item not in allowed for item in value):
            return "must be a list of the given choices"
        return _size_problem(len(value), field.get("minItems"), field.get("maxItems"), "choices")
    if not is_finite(value):
        return "must be a finite number"
    return _size_problem(value, field.get("minimum"), field.get("maximum"), "")


def _text_problem(field: Mapping[str, Any], value: str) -> str | None:
    allowed = choices(field)
    if allowed is not None and value not in allowed:
        return "must be one of the given choices"
    if len(value) > _MAX_TEXT:
        return f"must have at most {_MAX_TEXT} characters"
    return _size_problem(len(value), field.get("minLength"), field.get("maxLength"), "characters")


def _size_problem(size: float, least: Json, most: Json, unit: str) -> str | None:
    if isinstance(least, int | float) and size < least:
        return f"must be at least {_number(least)} {unit}".rstrip()
    if isinstance(most, int | float) and size > most:
        return f"must be at most {_number(most)} {unit}".rstrip()
    return None


def _number(value: float) -> str:
    return f"{value:g}" if is_finite(value) else "a number that is too large"
