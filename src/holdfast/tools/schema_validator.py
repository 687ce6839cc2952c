"""Validates JSON values against schemas that are not trusted. Every step is counted, so no schema takes long, and
recursion ends at a fixed depth. Patterns, formats and other keywords that are not listed here are not applied: they are
the tool's own to enforce, and patterns can take exponential time. References to other documents are not followed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from holdfast.core.parts import Json

_MAX_CHECKS: Final = 50_000  # About 0.1 s
_MAX_DEPTH: Final = 200  # Schemas below each other, references included


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_IS_TYPE: Final[Mapping[str, Callable[[Json], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": lambda value: _is_number(value) and value == value // 1,
}
_BOUNDS: Final[Mapping[str, tuple[Callable[[Any, Any], bool], str]]] = {
    "minimum": (lambda value, bound: value >= bound, "is less than the minimum of"),
    "maximum": (lambda value, bound: value <= bound, "is greater than the maximum of"),
    "exclusiveMinimum": (lambda value, bound: value > bound, "is less than or equal to the minimum of"),
    "exclusiveMaximum": (lambda value, bound: value < bound, "is greater than or equal to the maximum of"),
}
_LENGTHS: Final[Mapping[type, tuple[str, str]]] = {
    str: ("minLength", "maxLength"),
    list: ("minItems", "maxItems"),
    dict: ("minProperties", "maxProperties"),
}


class InvalidSchemaError(Exception):
    """The schema contradicts the standard, or refers to what is not there."""


class SchemaTooComplexError(Exception):
    """Applying the schema to the value takes more steps or depth than allowed."""


@dataclass(frozen=True, slots=True)
class SchemaViolation:
    path: tuple[str | int, ...]
    message: str


@dataclass(slots=True)
class SchemaValidator:
    root: Json
    checks_left: int = field(default=_MAX_CHECKS)

    def find_violation(self, value: Json) -> SchemaViolation | None:
        """The first violation; None if there is none. Raises InvalidSchemaError and SchemaTooComplexError."""
        try:
            return self._check(self.root, value, (), 0)
        except (TypeError, AttributeError, RecursionError) as error:
            raise InvalidSchemaError(str(error)) from error

    def _check(self, schema: Json, value: Json, path: tuple[str | int, ...], depth: int) -> SchemaViolation | None:
        self._spend(1)
        if depth > _MAX_DEPTH:
            raise SchemaTooComplexError
        if isinstance(schema, bool):
            return None if schema else SchemaViolation(path, f"{_show(value)} is not allowed")
        if not isinstance(schema, dict):
            raise InvalidSchemaError(f"a schema is {_show(schema)}")
        own = self._own_problem(schema, value)
        if own is not None:
            return SchemaViolation(path, own)
        below: Iterable[tuple[str | int, Json, Json]] = ()
        if isinstance(value, dict):
            below = self._members(schema, value)
        elif isinstance(value, list):
            below = self._items(schema, value)
        for step, inner, item in below:
            found = self._check(inner, item, (*path, step), depth + 1)
            if found is not None:
                return found
        return self._combined(schema, value, path, depth)

    def _own_problem(self, schema: dict[str, Json], value: Json) -> str | None:
        """The problems that the keywords without subschemas find."""
        if "type" in schema:
            types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            if not any(name in _IS_TYPE and _IS_TYPE[name](value) for name in types):
                return f"{_show(value)} is not of type {', '.join(repr(name) for name in types)}"
        if "enum" in schema:
            self._spend(len(schema["enum"]))
            if not any(_equal(value, each) for each in schema["enum"]):
                return f"{_show(value)} is not one of {str(schema['enum'])[:300]}"
        if "const" in schema and not _equal(value, schema["const"]):
            return f"{str(schema['const'])[:300]!r} was expected"
        if _is_number(value):
            for name, (holds, words) in _BOUNDS.items():
                if _is_number(bound := schema.get(name)) and not holds(value, bound):
                    return f"{value} {words} {bound}"
        if type(value) in _LENGTHS:
            shortest, longest = _LENGTHS[type(value)]
            if len(value) < schema.get(shortest, 0):
                return f"{_show(value)} is too short"
            if len(value) > schema.get(longest, len(value)):
                return f"{_show(value)} is too long"
        return self._members_problem(schema, value) if isinstance(value, dict) else None

    def _members_problem(self, schema: dict[str, Json], value: dict[str, Json]) -> str | None:
        required: Sequence[str] = schema.get("required", ())
        self._spend(len(required))
        for name in required:
            if name not in value:
                return f"{str(name)[:100]!r} is a required property"
        if schema.get("additionalProperties") is False and "patternProperties" not in schema:
            self._spend(len(value))
            known = schema.get("properties", {})
            for name in value:
                if name not in known:
                    return f"Additional properties are not allowed ({name[:100]!r} was unexpected)"
        return None

    def _members(self, schema: dict[str, Json], value: dict[str, Json]) -> Iterator[tuple[str, Json, Json]]:
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties", True) if "patternProperties" not in schema else True
        for name, item in value.items():
            if name in properties:
                yield name, properties[name], item
            elif others is not True:
                yield name, others, item

    def _items(self, schema: dict[str, Json], value: list[Json]) -> Iterator[tuple[int, Json, Json]]:
        items = schema.get("items", True)
        first = items if isinstance(items, list) else schema.get("prefixItems", ())  # a list until draft 2019-09
        for at, item in enumerate(value):
            if at < len(first):
                yield at, first[at], item
            elif items is not True and not isinstance(items, list):
                yield at, items, item

    def _combined(
        self, schema: dict[str, Json], value: Json, path: tuple[str | int, ...], depth: int
    ) -> SchemaViolation | None:
        """The problems that the keywords with schemas for the same value find."""
        every = list(schema.get("allOf", ()))
        if "$ref" in schema:
            every.append(self._resolve(schema["$ref"]))
        for inner in every:
            found = self._check(inner, value, path, depth + 1)
            if found is not None:
                return found
        for name in ("anyOf", "oneOf"):
            if name in schema:
                results = [self._check(inner, value, path, depth + 1) for inner in schema[name]]
                failures = [result for result in results if result is not None]
                if len(failures) == len(results):
                    deepest = max(failures, key=lambda each: len(each.path), default=None)
                    return deepest or SchemaViolation(path, f"{_show(value)} is not allowed")
                if name == "oneOf" and len(results) - len(failures) > 1:
                    return SchemaViolation(path, f"{_show(value)} matches more than one of the alternatives")
        if "not" in schema and self._check(schema["not"], value, path, depth + 1) is None:
            return SchemaViolation(path, f"{_show(value)} is not allowed")
        return None

    def _resolve(self, reference: Json) -> Json:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise InvalidSchemaError("it refers to another document")
        if not reference.startswith(("#/", "##")) and reference != "#":
            return True  # a named anchor, which the tool resolves itself
        found = self.root
        for step in reference.split("/")[1:]:
            self._spend(1)
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isdecimal() and len(name) < 7 and int(name) < len(found):
                found = found[int(name)]
            else:
                raise InvalidSchemaError(f"{reference[:100]!r} refers to nothing")
        return found

    def _spend(self, checks: int) -> None:
        self.checks_left -= checks
        if self.checks_left < 0:
            raise SchemaTooComplexError


def _equal(one: Json, other: Json) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _show(value: Json) -> str:
    """A value in an error message, in constant time."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return repr(value[:100]) if isinstance(value, str) else str(value)[:100]
