"""Names of files as text that always leads back to them. Pure.

A name on disk is bytes: it may be no valid UTF-8 and may contain line breaks. In a *path* of the API, a byte that is
not part of valid UTF-8, a control character and `%` itself are written as `%` and two hexadecimal digits; everything
else is written as it is. So the path of nearly every file is its plain path, each file has exactly one, and text that
is no such path is refused rather than guessed at.
"""

import re
from typing import Final

from holdfast.core.errors import InvalidInputError

MAX_PATH: Final = 4096  # Characters of a path
MAX_DEPTH: Final = 64  # Names in a path
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})|%")
_UNSAFE_IN_ARCHIVE: Final = re.compile(
    r'[\x00-\x1f\x7f-\x9f"*:<>?\\|\udc80-\udcff]'
    r"|%(?=[0-9A-Fa-f]{2})"  # or it would be read as an escaped character
    r"|[. ]\Z"  # which Windows drops
)
_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|(?:com|lpt)[0-9¹²³]) *(?:\.|\Z)", re.IGNORECASE)
"""A name that means a device to Windows, whatever its extension."""


def escape_name(name: bytes) -> str:
    """The name as it is written in a path."""
    text = name.decode("utf-8", "surrogateescape")
    if text.isprintable() and "%" not in text:  # nearly all
        return text
    return "".join(_escape(c) if c == "%" or _is_control(c) else c for c in text)


def escape_path(names: tuple[bytes, ...]) -> str:
    return "/".join(map(escape_name, names))


def display_name(name: bytes) -> str:
    """The name for people: valid text, but not a way back to the file."""
    return name.decode("utf-8", "replace")


def archive_name(name: bytes) -> str:
    """The name inside an archive. What another system would read as a separator, a drive or a device is escaped.
    Different names stay different."""
    text = name.decode("utf-8", "surrogateescape")
    escaped = _UNSAFE_IN_ARCHIVE.sub(lambda found: _escape(found.group()), text)
    return _escape(escaped[0]) + escaped[1:] if _DEVICE.match(text) else escaped


def parse_path(path: str) -> tuple[bytes, ...]:
    """The names of a path; none for the directory itself. Raises InvalidInputError for a path that leads out, before
    anything is opened."""
    if len(path) > MAX_PATH:
        raise InvalidInputError("path", f"must have at most {MAX_PATH} characters")
    if path.startswith("/"):
        raise InvalidInputError("path", "must be relative to the workspace, such as src/main.py")
    names = tuple(_parse_name(part) for part in path.split("/") if part not in ("", "."))
    if len(names) > MAX_DEPTH:
        raise InvalidInputError("path", f"must have at most {MAX_DEPTH} names")
    return names


def _parse_name(text: str) -> bytes:
    try:
        name = b"".join(_pieces(text))
    except UnicodeEncodeError:
        raise InvalidInputError("path", "contains a lone surrogate, which is no character") from None
    if name == b"..":
        raise InvalidInputError("path", "must not contain '..': only files inside the workspace can be opened")
    if b"/" in name or b"\0" in name or name in (b"", b"."):
        raise InvalidInputError("path", f"{text!r} is not the name of a file")
    return name


def _pieces(text: str) -> list[bytes]:
    pieces, at = [], 0
    for found in _ESCAPE.finditer(text):
        if found[1] is None:
            raise InvalidInputError("path", "write % as %25: it begins the code of a byte, such as %0A")
        pieces += [text[at : found.start()].encode(), bytes.fromhex(found[1])]
        at = found.end()
    return [*pieces, text[at:].encode()]


def _is_control(c: str) -> bool:
    return c < " " or "\x7f" <= c <= "\x9f" or "\udc80" <= c <= "\udcff"


def _escape(c: str) -> str:
    return "".join([f"%{byte:02X}" for byte in c.encode("utf-8", "surrogateescape")])
