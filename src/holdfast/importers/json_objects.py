"""Reads the objects of a JSON list, of JSON lines or of a single document one at a time, so that memory is bounded by
the largest object and not by the file. Errors name the file, the line and the column, and what was expected there."""

import codecs
import json
import re
from collections.abc import Iterator
from json import JSONDecodeError
from typing import Any, BinaryIO, Final, NoReturn

from holdfast.core.errors import InvalidInputError

MAX_OBJECT: Final = 128 * 1024 * 1024  # Characters of one conversation, files inside it included
MAX_DEPTH: Final = 20_000  # Levels of nesting: an export that nests replies has two for each message
_CHUNK: Final = 1024 * 1024
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_TOKEN: Final = re.compile(r'[ \t\r\n]*("(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+)', re.DOTALL)
_WORDS: Final = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_CUT_TOKEN: Final = re.compile(r"\\?u[0-9a-fA-F]{0,4}|\.|[eE][+-]?")  # An escape sequence or a number
_LONGEST_CUT_TOKEN: Final = 10
_INCOMPLETE: Final = "the file ends here; it is incomplete, so download or copy it again"
_UNTERMINATED: Final = "Unterminated string starting at"
_EXPECTED: Final = {
    "Expecting value": "a value",
    "Expecting property name enclosed in double quotes": "a name in double quotes",
    "Expecting ':' delimiter": ": after a name",
    "Expecting ',' delimiter": ", or the end of the object or list",
    "Illegal trailing comma before end of object": "no comma before the end of the object",
    "Illegal trailing comma before end of array": "no comma before the end of the list",
    "Invalid control character at": "an escape sequence",
    "Invalid \\escape: ": "a valid escape sequence",
    "Invalid \\escape": "a valid escape sequence",
    "Invalid \\uXXXX escape": "four hexadecimal digits after \\u",
    _UNTERMINATED: "the end of a string",
}
"""What was expected, by the message of the standard library's parser."""

Json = Any


def read_objects(stream: BinaryIO, name: str) -> Iterator[tuple[str, dict[str, Json]]]:
    """Yields each object with its place, such as `conversations.json, item 3 (line 120)`. Raises InvalidInputError."""
    text = _Text(stream, name)
    is_list = text.take("[")
    count = 0
    while not text.is_at_end():
        if is_list and text.take("]"):
            if not text.is_at_end():
                text.fail("the end of the file after the list")
            return
        if is_list and count and not text.take(","):
            text.fail(", or ] after an item of the list")
        if not text.is_next("{"):
            text.fail("a JSON object" if is_list or count else "a JSON object or list")
        count += 1
        place = f"{name}, item {count} (line {text.line})" if is_list or count > 1 else name
        value = text.decode(place)
        yield place, value
    if is_list:
        text.fail(", or ] after an item of the list" if count else "a JSON object or ]")
    if not count:
        text.fail("a JSON object or list", "the file is empty")


def read_document(stream: BinaryIO, name: str) -> Json:
    """The value of a small document."""
    return _Text(stream, name).decode(name)


class _Text:
    """The decoded text of a file, of which only the part that is being parsed is held."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.line = 1
        self._column = 1
        self._stream = stream
        self._name = name
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._bytes = 0
        self._buffer = ""
        self._at = 0
        self._ended = False
        self._json = json.JSONDecoder(parse_constant=_refuse_constant)

    def fail(self, expected: str, end: str = _INCOMPLETE, found: str = "") -> NoReturn:
        """Raises an error for what is found here; `end` describes the end of the file."""
        found = found or self._buffer[self._at : self._at + 1]
        place = f"{self._name}, line {self.line}, column {self._column}"
        raise InvalidInputError(place, f"expected {expected}, " + (f"found {found!r}" if found else f"but {end}"))

    def is_at_end(self) -> bool:
        self._skip_space()
        return self._at == len(self._buffer)

    def is_next(self, character: str) -> bool:
        self._skip_space()
        return self._buffer.startswith(character, self._at)

    def take(self, character: str) -> bool:
        if not self.is_next(character):
            return False
        self._drop(self._at + 1)
        return True

    def decode(self, place: str) -> Json:
        """Parses the value that begins here. As its end is not known, parsing is repeated with twice the text until it
        succeeds: at most three times the work."""
        self._skip_space()
        while True:
            try:
                value, end = self._parse()
            except JSONDecodeError as error:
                held = len(self._buffer) - self._at
                is_cut = _is_cut(self._buffer, error)
                if self._ended or not is_cut:
                    self._drop(len(self._buffer) if is_cut else error.pos)
                    self.fail(_EXPECTED.get(error.msg, error.msg))
                if held > MAX_OBJECT:
                    raise InvalidInputError(place, f"is larger than {MAX_OBJECT} characters") from None
                self._read(max(held, _CHUNK))
            except _ConstantError as error:
                found = (match for match in _TOKEN.finditer(self._buffer, self._at) if match[1] == error.name)
                self._drop(next(found).start(1))
                self.fail("a number that JSON allows", found=error.name)
            except ValueError as error:
                raise InvalidInputError(place, f"has a number that cannot be read: {error}") from None
            else:
                self._drop(end)
                return value

    def _parse(self) -> tuple[Json, int]:
        try:
            return self._json.raw_decode(self._buffer, self._at)
        except RecursionError:
            return _parse_deep(self._buffer, self._at)

    def _skip_space(self) -> None:
        while True:
            match = _SPACE.match(self._buffer, self._at)
            assert match is not None
            if match.end() < len(self._buffer) or self._ended:
                self._drop(match.end())
                return
            self._drop(match.end())
            self._read(_CHUNK)

    def _drop(self, end: int) -> None:
        """Moves to `end`, and releases what lies before it once that is much."""
        lines = self._buffer.count("\n", self._at, end)
        self.line += lines
        self._column = end - self._buffer.rindex("\n", self._at, end) if lines else self._column + end - self._at
        self._at = end
        if self._at >= _CHUNK or self._at == len(self._buffer):
            self._buffer, self._at = self._buffer[self._at :], 0

    def _read(self, size: int) -> None:
        data = self._stream.read(size)
        self._bytes += len(data)
        try:
            self._buffer += self._decode.decode(data, final=not data)
        except UnicodeDecodeError as error:
            at = self._bytes - len(error.object) + error.start
            problem = f"expected UTF-8 text, found the byte {error.object[error.start]:#x}"
            if not data:
                problem = f"expected the rest of a UTF-8 character, but {_INCOMPLETE}"
            raise InvalidInputError(f"{self._name}, byte offset {at}", problem) from None
        self._ended = not data


def _is_cut(text: str, error: JSONDecodeError) -> bool:
    """Whether more text could make it valid."""
    rest = text[error.pos : error.pos + _LONGEST_CUT_TOKEN]
    if not rest or error.msg == _UNTERMINATED:
        return True
    is_token = any(word.startswith(rest) for word in _WORDS) or _CUT_TOKEN.fullmatch(rest) is not None
    return is_token and error.pos + len(rest) == len(text)


class _ConstantError(ValueError):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _refuse_constant(name: str) -> NoReturn:
    raise _ConstantError(name)


def _parse_deep(text: str, at: int) -> tuple[Json, int]:
    """Parses a value that is nested deeper than the standard library's parser can go, with a stack of its own. It is
    lenient about commas and colons: brackets and strings carry the structure."""
    open_values: list[Json] = []
    keys: list[str | None] = []  # For each open value, the key of an object that waits for its value
    while True:
        match = _TOKEN.match(text, at)
        if match is None:
            rest = text[at:].lstrip()
            raise JSONDecodeError(_UNTERMINATED if rest else "Expecting value", text, len(text) - len(rest))
        token, at = match[1], match.end()
        if token in ",:":
            continue
        if token in "[{":
            if len(open_values) >= MAX_DEPTH:
                raise JSONDecodeError(f"at most {MAX_DEPTH} levels of nesting", text, at - 1)
            open_values.append([] if token == "[" else {})
            keys.append(None)
            continue
        if token in "]}":
            if not keys or keys.pop() is not None or isinstance(open_values[-1], dict) is (token == "]"):
                raise JSONDecodeError("a matching bracket", text, at - 1)
            value = open_values.pop()
        else:
            value = _parse_scalar(text, match.start(1), token)
        if not open_values:
            return value, at
        above = open_values[-1]
        if isinstance(above, list):
            above.append(value)
        elif keys[-1] is not None:
            above[keys[-1]], keys[-1] = value, None
        elif isinstance(value, str):
            keys[-1] = value
        else:
            raise JSONDecodeError("Expecting property name enclosed in double quotes", text, match.start(1))


def _parse_scalar(text: str, at: int, token: str) -> Json:
    try:
        return json.loads(token, parse_constant=_refuse_constant)
    except JSONDecodeError as error:
        raise JSONDecodeError(error.msg, text, at + error.pos) from None
