"""Finds numbers that JSON cannot represent, and replaces them. Parsers make `1e999` infinite; written back, it is not
valid JSON. Other parsers make an integer beyond any float infinite as well, so it counts as such a number."""

import sys
from typing import Final

from holdfast.core.parts import Json

_LARGEST: Final = sys.float_info.max


def is_finite(number: float) -> bool:
    return -_LARGEST <= number <= _LARGEST  # no conversion, which fails for a large integer


def find_non_finite(value: Json, path: tuple[str | int, ...] = ()) -> tuple[str | int, ...] | None:
    """The path to an infinite number or NaN in a parsed value; None if there is none."""
    if isinstance(value, int | float):
        return None if is_finite(value) else path
    if isinstance(value, dict):
        found = (find_non_finite(item, (*path, key)) for key, item in value.items())
    elif isinstance(value, list):
        found = (find_non_finite(item, (*path, n)) for n, item in enumerate(value))
    else:
        return None
    return next((path for path in found if path is not None), None)


def without_non_finite(value: Json) -> Json:
    """The value with null in the place of infinite numbers and NaN."""
    match value:
        case float() if not is_finite(value):
            return None
        case dict():
            return {key: without_non_finite(item) for key, item in value.items()}
        case list() | tuple():
            return [without_non_finite(item) for item in value]
        case _:
            return value
