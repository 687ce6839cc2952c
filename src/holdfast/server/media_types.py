"""Detects the media type of a file from its first bytes; the declared type is only a hint."""

import codecs
from typing import Final

SNIFF: Final = 4096
"""Bytes that are needed to detect the type."""

_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_TEXTUAL: Final = frozenset(
    {"application/json", "application/xml", "application/yaml", "application/toml", "application/x-yaml"}
)


def detect_media_type(start: bytes, declared: str) -> str | None:
    """The type to store with the file; None for a type that models cannot read."""
    for magic, kind in _MAGIC:
        if start.startswith(magic):
            return kind
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    if not _is_text(start):
        return None
    declared = declared.partition(";")[0].strip().lower()
    # HTML is stored as plain text, so that no browser ever runs its scripts on our origin.
    plain = declared.startswith("text/") and declared != "text/html" and declared.isascii()
    safe = all(c.isalnum() or c in "/.+-" for c in declared)
    return declared if safe and (plain or declared in _TEXTUAL) else "text/plain"


def _is_text(start: bytes) -> bool:
    if b"\0" in start:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # incremental: the last character may be cut off
    except UnicodeDecodeError:
        return False
    return True
