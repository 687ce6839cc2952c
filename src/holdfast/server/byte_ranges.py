"""Range and conditional requests: which bytes of a file a client wants, and whether it has them. Pure."""

import re
from typing import Final

_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_ETAG: Final = re.compile(r'(W/)?("[^"]*")')


class UnsatisfiableRangeError(Exception):
    """The file has none of the bytes that are wanted."""


def read_range(header: str | None, size: int) -> tuple[int, int] | None:
    """From the first byte to before the last; None for the whole file, also if the header is not understood or has
    several ranges, which RFC 9110 allows to ignore."""
    found = _RANGE.fullmatch((header or "").strip())
    if found is None or not any(found.groups()):
        return None
    if not found[1]:  # the last bytes
        start, end = max(size - int(found[2]), 0), size
    else:
        start, end = int(found[1]), int(found[2]) + 1 if found[2] else size
        if found[2] and end <= start:
            return None
    if start >= size:
        raise UnsatisfiableRangeError
    return start, min(end, size)


def has_etag(if_none_match: str | None, etag: str) -> bool:
    """Whether the client has the file with this ETag already. Proxies that compress make ETags weak (`W/`), which does
    not matter here (RFC 9110, section 13.1.2)."""
    named = (if_none_match or "").strip()
    return named == "*" or any(found == etag for _, found in _ETAG.findall(named))


def matches_etag(if_match: str, etag: str) -> bool:
    """Whether a change of the version with this ETag is asked for. A weak ETag matches none (section 13.1.1)."""
    named = if_match.strip()
    return named == "*" or ("", etag) in _ETAG.findall(named)
