"""Base64url without padding, as keys of web push are written."""

import base64
import re
from typing import Final

_TEXT: Final = re.compile(r"[A-Za-z0-9_-]*={0,2}")


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode(text: str) -> bytes:
    """ValueError: it is not base64url."""
    if _TEXT.fullmatch(text) is None:
        raise ValueError("must be base64url")
    text = text.rstrip("=")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
