"""Finds numbers that JSON cannot carry. Parsers make `1e999` infinite; written back, it is not valid JSON."""

from math import isfinite

from holdfast.core.parts import Json


def find_non_finite(value: Json, path: tuple[str | int, ...] = ()) -> tuple[str | int, ...] | None:
    """The path to an infinite number or NaN in a parsed value; None if there is none."""
    if isinstance(value, float):
        return None if isfinite(value) else path
    if isinstance(value, dict):
        found = (find_non_finite(item, (*path, key)) for key, item in value.items())
    elif isinstance(value, list):
        found = (find_non_finite(item, (*path, n)) for n, item in enumerate(value))
    else:
        return None
    return next((path for path in found if path is not None), None)
