"""What a file is, by its first bytes. A browser or a client may say what it likes."""

import codecs
from typing import Final

SNIFF: Final = 4096
"""Bytes that are looked at."""

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


def media_type(start: bytes, declared: str) -> str | None:
    """The type under which the file is kept; None: it is of no kind that a model is given."""
    for magic, kind in _MAGIC:
        if start.startswith(magic):
            return kind
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    if not _is_text(start):
        return None
    declared = declared.partition(";")[0].strip().lower()
    # A page is kept as the text that it is: nothing of ours should ever run a stranger's script.
    plain = declared.startswith("text/") and declared != "text/html" and declared.isascii()
    safe = all(c.isalnum() or c in "/.+-" for c in declared)
    return declared if safe and (plain or declared in _TEXTUAL) else "text/plain"


def _is_text(start: bytes) -> bool:
    if b"\0" in start:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # a character may be cut off at the end
    except UnicodeDecodeError:
        return False
    return True
