"""Reading JSON that a client sent: what is not of the expected type is an error that names its place."""

from collections.abc import Collection
from typing import Any

from holdfast.core.parts import Json
from holdfast.faces.openai.errors import Wrong


def _kind(value: Json) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def wrong_type(param: str, wanted: str, found: Json) -> Wrong:
    return Wrong(
        param, f"Invalid type for '{param}': expected {wanted}, but got {_kind(found)} instead.", "invalid_type"
    )


def text(value: Json, param: str) -> str:
    if not isinstance(value, str):
        raise wrong_type(param, "a string", value)
    return value


def thing(value: Json, param: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong_type(param, "an object", value)
    return value


def things(value: Json, param: str) -> list[Any]:
    if not isinstance(value, list):
        raise wrong_type(param, "an array", value)
    return value


def optional_text(owner: dict[str, Any], name: str, param: str) -> str | None:
    found = owner.get(name)
    return None if found is None else text(found, f"{param}.{name}")


def one_of(value: Json, choices: Collection[str], param: str) -> str:
    found = text(value, param)
    if found not in choices:
        known = ", ".join(f"'{choice}'" for choice in choices)
        raise Wrong(param, f"Invalid value: '{found[:100]}'. Supported values for '{param}' are: {known}.")
    return found
