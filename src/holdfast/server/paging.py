"""Cursors of paged lists: opaque text for clients, a position in the list for the server."""

import base64
import binascii
import json
from typing import Any, Final

from holdfast.core.errors import InvalidInputError

_LARGEST: Final = 2**53


def write_cursor(*position: float | str) -> str:
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def read_cursor(text: str, *types: type) -> list[Any]:
    """The position given to `write_cursor`. Raises InvalidInputError for text that is not a cursor of this list."""
    invalid = InvalidInputError("cursor", "is not a cursor of this list; omit it to start from the beginning")
    try:
        position = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise invalid from None
    if not isinstance(position, list) or len(position) != len(types):
        raise invalid
    for item, kind in zip(position, types, strict=True):
        accepted = (int, float) if kind is float else (kind,)
        if not isinstance(item, accepted) or isinstance(item, bool):
            raise invalid
        if isinstance(item, int | float) and not abs(item) < _LARGEST:
            raise invalid
    return position
