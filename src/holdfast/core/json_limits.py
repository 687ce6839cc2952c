"""How deeply JSON from models, tools and servers may be nested (`MAX_DEPTH`), how many values it may have where nothing
else runs while it is parsed (`MAX_STRUCTURE`), and whether it is too large for a limit of the caller. Sizes of
requests: `server.context.ServerLimits`; of fields of sessions: `core.session_limits`."""

import re
from typing import Final

from holdfast.core.parts import Json

MAX_DEPTH: Final = 100  # Of schemas and arguments: parsers give up at a depth of 200
MAX_STRUCTURE: Final = 128 * 1024
"""Bytes outside of strings of what is parsed and read on the event loop: so many values take some 20 ms."""
MAX_STRINGS: Final = 20_000  # Of the same
LARGE: Final = 64 * 1024
"""Bytes of JSON from which on its values are counted before it is parsed; of fewer bytes, no values take long."""
_STRING: Final = re.compile(rb'"[^"\\\x00-\x1f]*+(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*+)*+(?:"|\\?\x00\Z)?')
"""A string, or its beginning at the end of a chunk. A control character ends it, because no string may contain one; so
a lone quotation mark in an event stream hides nothing of the next line."""
_LENIENT_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""The same for `core.lenient_json`, to which control characters are part of a string."""
_NO_VALUE: Final = b" \t\r\n\0"
STEP: Final = 64 * 1024
"""Bytes that are looked at by a single call, during which nothing else of the process runs, in whatever thread."""
_BEFORE_VALUE: Final = b",[{"  # Before each value but the first


class JsonCounter:
    """Counts the values of JSON that arrives in chunks: the time to parse it goes with their number, while long strings
    are fast. `lenient`: for a value that may be parsed by `core.lenient_json`."""

    __slots__ = ("_open", "_string", "strings", "structure", "values")

    def __init__(self, *, lenient: bool = False) -> None:
        self._string = _LENIENT_STRING if lenient else _STRING
        self.strings = 0
        self.values = 0  # Texts, numbers, objects and so on, but no names of fields. An empty list counts as two
        self.structure = 0  # Bytes outside of strings but whitespace, each of which may be a value
        self._open = b""  # What stands for a string that the last chunk began

    def add(self, chunk: bytes) -> bytes:
        """Returns what of the chunk is outside of strings but whitespace."""
        data = self._open + chunk
        outside = self._string.split(data + b"\0")
        self.strings += len(outside) - 1 - bool(self._open)
        structure = b"".join(outside).translate(None, _NO_VALUE)
        self.structure += len(structure)
        self.values += len(structure) - len(structure.translate(None, _BEFORE_VALUE))
        self._open = b""
        if not outside[-1]:
            backslashes = len(data) - len(data.rstrip(b"\\"))
            self._open = b'"\\' if backslashes % 2 else b'"'
        return structure


def has_too_many_values(data: bytes, structure: int = MAX_STRUCTURE, strings: int = MAX_STRINGS) -> bool:
    """Whether JSON has more than `structure` bytes outside of strings, or more than `strings` strings. Stops at the
    limits, and lets other threads run in between."""
    counter = JsonCounter(lenient=True)
    for at in range(0, len(data), STEP) if len(data) > min(structure, strings) else ():
        counter.add(data[at : at + STEP])
        if counter.structure > structure or counter.strings > strings:
            return True
    return False


def has_more_values(data: bytes, limit: int) -> bool:
    counter = JsonCounter()
    for at in range(0, len(data), STEP):
        counter.add(data[at : at + STEP])
        if counter.values > limit:
            return True
    return False


def search_in_steps(pattern: re.Pattern[bytes], data: bytes, longest: int) -> bool:
    """Whether the pattern occurs in the data. `longest`: the bytes of its longest match."""
    return any(pattern.search(data, at, at + STEP + longest) for at in range(0, len(data), STEP))


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
