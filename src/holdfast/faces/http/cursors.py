"""Places in a list, opaque to clients."""

import base64
import binascii
import json
from typing import Any

from holdfast.core.errors import Invalid

MAX_SEQ = 2**53


def write(*place: float | str) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def read(text: str, *shape: type) -> list[Any]:
    """What `write` was given. Invalid: it is not one of ours, or of another list."""
    wrong = Invalid("cursor", "is not one that this list has given out; leave it away to start from the beginning")
    try:
        place = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise wrong from None
    if not isinstance(place, list) or len(place) != len(shape):
        raise wrong
    for item, kind in zip(place, shape, strict=True):
        wanted = (int, float) if kind is float else (kind,)
        if not isinstance(item, wanted) or isinstance(item, bool):
            raise wrong
        if isinstance(item, int | float) and not abs(item) < MAX_SEQ:
            raise wrong
    return place
