"""Fields of JSON that comes from outside: each of the type it should have, or `Invalid` with its name."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from holdfast.core.errors import Invalid

L = TypeVar("L", bound=str)

_LARGEST = 2**53


def table(value: Any, where: str = "") -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Invalid(where, "is not a JSON object")
    return value


def present(data: Mapping[str, Any], name: str) -> Any:
    if name not in data:
        raise Invalid(name, "is missing")
    return data[name]


def text(data: Mapping[str, Any], name: str) -> str:
    value = present(data, name)
    if not isinstance(value, str):
        raise Invalid(name, "is not a text")
    return value


def text_or_none(data: Mapping[str, Any], name: str) -> str | None:
    return None if present(data, name) is None else text(data, name)


def one_of(data: Mapping[str, Any], name: str, choices: Sequence[L]) -> L:
    value = present(data, name)
    for choice in choices:
        if value == choice:
            return choice
    raise Invalid(name, f"is {value!r}; expected one of {', '.join(choices)}")


def switch(data: Mapping[str, Any], name: str) -> bool:
    value = present(data, name)
    if not isinstance(value, bool):
        raise Invalid(name, "is neither true nor false")
    return value


def whole(data: Mapping[str, Any], name: str) -> int:
    value = present(data, name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise Invalid(name, "is not a whole number from 0 on")
    return value


def number_or_none(data: Mapping[str, Any], name: str) -> float | None:
    value = present(data, name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not -_LARGEST <= value <= _LARGEST:
        raise Invalid(name, "is not a number")
    return float(value)


def items(data: Mapping[str, Any], name: str) -> list[Any]:
    value = present(data, name)
    if not isinstance(value, list):
        raise Invalid(name, "is not a list")
    return value


def texts(data: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = items(data, name)
    if not all(isinstance(item, str) for item in found):
        raise Invalid(name, "is not a list of texts")
    return tuple(found)


def moment(data: Mapping[str, Any], name: str) -> float:
    try:
        at = datetime.fromisoformat(text(data, name))
        if at.tzinfo is None:
            raise ValueError
        return at.timestamp()
    except (ValueError, OverflowError):
        raise Invalid(name, "is not a time such as 2026-01-31T12:00:00Z") from None
