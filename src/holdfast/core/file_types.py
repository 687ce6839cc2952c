"""Media types of files that somebody else wrote, by their first bytes, and which of them a browser may display
(`INLINE`). Pure. Which uploads are accepted: `server.uploads`.

The name of a file only distinguishes kinds of text: a wrong name shows text in the wrong way and does no other harm.
"""

import codecs
from typing import Final

from holdfast.core.image_types import IMAGE_TYPES, image_type

SNIFF: Final = 8192  # Bytes that are needed
BINARY: Final = "application/octet-stream"
ARTIFACTS: Final = frozenset({"text/html", "image/svg+xml"})
"""Kinds of text that browsers run."""

_MAGIC: Final = (
    (b"%PDF-", "application/pdf"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"BM", "image/bmp"),
    (b"\0\0\x01\0", "image/x-icon"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)
_TEXTS: Final = {
    "csv": "text/csv",
    "htm": "text/html",
    "html": "text/html",
    "json": "application/json",
    "markdown": "text/markdown",
    "md": "text/markdown",
    "svg": "image/svg+xml",
    "tsv": "text/tab-separated-values",
}
INLINE: Final = IMAGE_TYPES | {
    "application/pdf",
    "audio/flac",
    "audio/mp4",
    "audio/mpeg",
    "audio/ogg",
    "audio/wav",
    "image/avif",
    "image/bmp",
    "image/x-icon",
    "video/mp4",
    "video/webm",
}
"""Types that browsers may display by themselves: none of them can run anything on our origin."""


def detect_file_type(start: bytes, name: str) -> tuple[str, bool]:
    """The media type, and whether it is text."""
    found = image_type(start) or _container(start) or next((kind for magic, kind in _MAGIC if _is(start, magic)), None)
    if found is not None:
        return found, False
    if text_encoding(start) is None:
        return BINARY, False
    return _TEXTS.get(name.rpartition(".")[2].lower(), "text/plain"), True


def text_encoding(start: bytes) -> str | None:
    """The encoding of a text; None for a binary file. `start` may end within a character."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if is_utf8_text(start):
        return "utf-8-sig"
    # Latin-1 text has few control characters; compressed data is full of them.
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in start)
    return None if b"\0" in start or controls * 50 > len(start) else "cp1252"


def is_utf8_text(start: bytes) -> bool:
    """What models read and searches match. `start` may end within a character."""
    if b"\0" in start:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return True


def _is(start: bytes, magic: bytes) -> bool:
    """`BM` alone may begin a text."""
    return start.startswith(magic) and (magic != b"BM" or b"\0" in start[:32])


def _container(start: bytes) -> str | None:
    """Of RIFF and ISO media files."""
    if start[:4] == b"RIFF" and start[8:12] == b"WAVE":
        return "audio/wav"
    if start[4:8] != b"ftyp":
        return None
    brand = start[8:12]
    if brand in (b"avif", b"avis"):
        return "image/avif"
    return "audio/mp4" if brand in (b"M4A ", b"M4B ") else "video/mp4"
