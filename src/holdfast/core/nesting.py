"""How deeply JSON from outside may be nested, and how large it may be."""

import re
from typing import Final

from holdfast.core.parts import Json

MAX_DEPTH: Final = 100  # Of schemas and arguments: parsers give up at a depth of 200
_STRING: Final = re.compile(rb'"[^"\\\x00-\x1f]*+(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*+)*+(?:"|\\?\x00\Z)?')
"""A string, or its beginning at the end of a chunk. A control character ends it, because no string may contain one; so
a lone quotation mark in an event stream hides nothing of the next line."""
_NO_VALUE: Final = b" \t\r\n\0"


class JsonCounter:
    """Counts the values of JSON that arrives in chunks: the time to parse it goes with their number, while long strings
    are fast."""

    __slots__ = ("_open", "strings", "structure")

    def __init__(self) -> None:
        self.strings = 0
        self.structure = 0  # Bytes outside of strings but whitespace, each of which may be a value
        self._open = b""  # What stands for a string that the last chunk began

    def add(self, chunk: bytes) -> None:
        data = self._open + chunk
        outside = _STRING.split(data + b"\0")
        self.strings += len(outside) - 1 - bool(self._open)
        self.structure += len(b"".join(outside).translate(None, _NO_VALUE))
        self._open = b""
        if not outside[-1]:
            backslashes = len(data) - len(data.rstrip(b"\\"))
            self._open = b'"\\' if backslashes % 2 else b'"'


def is_too_deep(value: Json) -> bool:
    """Whether objects and lists are nested more than `MAX_DEPTH` deep. Goes level by level, so no depth is too much."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        lists = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        if not lists:
            return False
        level = [item for items in lists for item in items]
    return True


def is_too_large(value: Json, limit: int) -> bool:
    """Whether the value is nested too deeply, or longer than `limit` characters at least. Stops at the limit, so it is
    fast for every value, unlike writing it as text."""
    level, size = [value], 0
    for _ in range(MAX_DEPTH + 1):
        nested: list[Json] = []
        for each in level:
            size += len(each) if isinstance(each, str) else 1
            if isinstance(each, dict):
                size += sum(map(len, each)) + len(each)
                nested += each.values()
            elif isinstance(each, list):
                size += len(each)
                nested += each
            if size > limit:
                return True
        if not nested:
            return False
        level = nested
    return True
