"""Reads the objects of a JSON list, of JSON lines or of a single document one at a time. An object is a conversation,
whose messages are kept in a scratch file, so that memory is bounded by the largest message and not by the file. Values
are counted before they are parsed, because a megabyte can have many that take fifty. Errors name the file, the line and
the column, and what was expected there."""

import codecs
import json
import re
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from json import JSONDecodeError
from typing import Any, BinaryIO, Final, NoReturn

from holdfast.core.errors import InvalidInputError
from holdfast.core.json_limits import JsonCounter, has_too_many_values
from holdfast.core.size_text import size_text
from holdfast.importers.scratch import Scratch

MAX_OBJECT: Final = 128 * 1024 * 1024  # Characters of one conversation, files inside it included
MAX_VALUE: Final = 32 * 1024 * 1024
"""Characters of a message, files inside it included. It is parsed by one call, for which nothing else of the process
runs: some 80 ms."""
MAX_MEMORY: Final = 64 * 1024 * 1024  # Bytes of a message as text, of which there are up to three copies at a time
MAX_DEPTH: Final = 20_000  # Levels of nesting: an export that nests replies has two for each message
MAX_STRUCTURE: Final = 4 * 1024 * 1024
"""Characters outside of strings, of a message and of all other fields of a conversation: they take up to 200 MB. A
conversation that nests replies is a single value and has about 150 for each message."""
MAX_STRINGS: Final = 1_000_000  # Of the same
MAX_STORED: Final = 1_000_000  # Messages of a conversation, or nodes of its tree
_MAX_NUMBER: Final = 10_000  # Characters
_CHUNK: Final = 1024 * 1024
_CHECKED: Final = 1000  # Tokens between checks whether the import is to stop
_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_TOKEN: Final = re.compile(
    r'[ \t\r\n]*+([\[\]{},:"]|[^\s\[\]{},:"]++)'
)  # A quotation mark is the beginning of a string
_STRING_OR_WORD: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\s\[\]{},:"]++', re.DOTALL)
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_TOO_MANY: Final = "has too many values"
_WORDS: Final = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_CUT_TOKEN: Final = re.compile(r"\\?u[0-9a-fA-F]{0,4}|\.|[eE][+-]?")  # An escape sequence or a number
_LONGEST_CUT_TOKEN: Final = 10
_INCOMPLETE: Final = "the file ends here; it is incomplete, so download or copy it again"
_UNTERMINATED: Final = "Unterminated string starting at"
_EXPECTED: Final = {
    "Expecting value": "a value",
    "Expecting property name enclosed in double quotes": "a name in double quotes",
    "Expecting ':' delimiter": "':' after a name",
    "Expecting ',' delimiter": "',' or the end of the object or list",
    "Illegal trailing comma before end of object": "no comma before the end of the object",
    "Illegal trailing comma before end of array": "no comma before the end of the list",
    "Invalid control character at": "an escape sequence",
    "Invalid \\escape: ": "a valid escape sequence",
    "Invalid \\escape": "a valid escape sequence",
    "Invalid \\uXXXX escape": "four hexadecimal digits after \\u",
    _UNTERMINATED: "the end of a string",
}
"""What was expected, by the message of the standard library's parser."""
_EACH: Final = "[]"  # In a path: the items of a list
_STORED: Final = frozenset(
    {
        ("mapping",),
        ("chat_messages",),
        ("messages",),
        ("messagesTree",),
        ("segments", _EACH, "messages"),
        ("history", "messages"),
        ("chat", "history", "messages"),
        ("chat", "messages"),
        ("context_messages",),
        ("tool_calls",),
    }
)
"""Where an object can have its messages, or a copy of them: the lists and objects that are kept in the scratch file."""
_OPENED: Final = frozenset(path[:n] for path in _STORED for n in range(len(path)))  # What they are inside of

Json = Any
_Path = tuple[str, ...]


class StoredList:
    """A JSON list in a scratch file. An item is parsed whenever it is read."""

    def __init__(self, scratch: Scratch, places: Iterable[int] = ()) -> None:
        self._scratch = scratch
        self._places = array("Q", places)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, n: int) -> Json:
        return _read_stored(self._scratch, self._places[n])

    def __iter__(self) -> Iterator[Json]:
        return (_read_stored(self._scratch, place) for place in self._places)

    def add(self, text: str) -> None:
        self._places.append(self._scratch.add(text.encode()))

    def reordered(self, order: Iterable[int]) -> "StoredList":
        return StoredList(self._scratch, (self._places[n] for n in order))


class StoredObject(Mapping[str, Json]):
    """A JSON object in a scratch file. A value is parsed whenever it is read, except for the last one that was."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._places: dict[str, int] = {}
        self._last: tuple[str, Json] | None = None

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __getitem__(self, key: str) -> Json:
        if self._last is None or self._last[0] != key:
            self._last = key, _read_stored(self._scratch, self._places[key])
        return self._last[1]

    def add(self, key: str, text: str) -> None:
        self._places[key] = self._scratch.add(text.encode())


def _read_stored(scratch: Scratch, place: int) -> Json:
    """What `_Text` has parsed before."""
    text = scratch.read(place).decode()
    try:
        return json.loads(text)
    except (RecursionError, JSONDecodeError):  # the parser for deep nesting is lenient
        return _parse_deep(text, 0, scratch.check)[0]


def parse_json(text: str) -> Json:
    """The value of JSON text that is inside of a string. Raises ValueError, also if it has too many values."""
    is_long = len(text) > min(MAX_STRUCTURE, MAX_STRINGS)
    if is_long and has_too_many_values(text.encode("utf-8", "replace"), MAX_STRUCTURE, MAX_STRINGS):
        raise ValueError(_TOO_MANY)
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("is nested too deeply") from None


class ValueCounter(JsonCounter):
    """Counts the values of text, and finds where one ends that arrives in pieces."""

    __slots__ = ("_depth", "_has_ended")

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self._has_ended = False

    @property
    def is_too_large(self) -> bool:
        return self.structure > MAX_STRUCTURE or self.strings > MAX_STRINGS

    def add_text(self, text: str) -> None:
        for at in range(0, len(text), _CHUNK):
            self.add(text[at : at + _CHUNK].encode())

    def ends_in(self, text: str) -> bool:
        """Adds the text; returns whether the value, of which this is the next piece, ends in it."""
        outside = b"".join([self.add(text[at : at + _CHUNK].encode()) for at in range(0, len(text), _CHUNK)])
        if not outside or self._has_ended or self.is_too_large:
            return False
        brackets = outside.translate(None, _NO_BRACKETS)
        depth = self._depth
        for bracket in brackets:
            depth += 1 if bracket in b"[{" else -1
            if depth <= 0:
                break
        self._depth = depth
        self._has_ended = depth <= 0
        return self._has_ended


def read_objects(
    stream: BinaryIO, name: str, scratch: Scratch | None = None, *, keep: bool = False
) -> Iterator[tuple[str, dict[str, Json]]]:
    """Yields each object with its place, such as `conversations.json, item 3 (line 120)`. Its messages are a StoredList
    or a StoredObject, which can be read until the next object is asked for; with `keep`, until the scratch file is
    closed. Raises InvalidInputError."""
    scratch = scratch or Scratch()
    text = _Text(stream, name, scratch.check)
    is_list = text.take("[")
    count = 0
    while not text.is_at_end():
        scratch.check()
        if is_list and text.take("]"):
            if not text.is_at_end():
                text.fail("the end of the file after the list")
            return
        if is_list and count and not text.take(","):
            text.fail("',' or ']' after an item of the list")
        if not text.is_next("{"):
            text.fail("a JSON object" if is_list or count else "a JSON object or list")
        count += 1
        place = f"{name}, item {count} (line {text.line})" if is_list or count > 1 else name
        before = scratch.size
        yield place, text.decode_object(place, scratch)
        if not keep:
            scratch.truncate(before)
    if is_list:
        text.fail("',' or ']' after an item of the list" if count else "a JSON object or ']'")
    if not count:
        text.fail("a JSON object or list", "the file is empty")


def read_document(stream: BinaryIO, name: str) -> Json:
    """The value of a small document."""
    return _Text(stream, name, lambda: None).decode(name)


class _Text:
    """The decoded text of a file, of which only the part that is being parsed is held."""

    def __init__(self, stream: BinaryIO, name: str, check: Callable[[], object]) -> None:
        self.line = 1
        self._column = 1
        self._stream = stream
        self._name = name
        self._check = check
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._bytes = 0
        self._buffer = ""
        self._at = 0
        self._dropped = 0  # Characters before the buffer
        self._most = 0  # Characters at which the current object is too large
        self._held = ValueCounter()  # What is in memory of the current object
        self._stored = 0  # How many values of it are not
        self._ended = False

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

    def decode_object(self, place: str, scratch: Scratch) -> dict[str, Json]:
        """Parses the object that begins here."""
        self._most = self._dropped + self._at + MAX_OBJECT
        self._held, self._stored = ValueCounter(), 0
        found: dict[str, Json] = self._open_object(place, scratch, ())
        return found

    def _decode_at(self, place: str, scratch: Scratch, path: _Path) -> Json:
        """Parses the value that begins here; what can be large is stored or opened."""
        if path in _STORED and self.is_next("["):
            stored_list = StoredList(scratch)
            for _ in self._items("[", "]"):
                stored_list.add(self._take_stored(place))
            return stored_list
        if path in _STORED and self.is_next("{"):
            stored = StoredObject(scratch)
            for _ in self._items("{", "}"):
                stored.add(self._decode_name(place), self._take_stored(place))
            return stored
        if path in _OPENED and self.is_next("{"):
            return self._open_object(place, scratch, path)
        if (*path, _EACH) in _OPENED and self.is_next("["):
            return [self._decode_at(place, scratch, (*path, _EACH)) for _ in self._items("[", "]")]
        return self._hold(place, *self._take_value(place))

    def _take_stored(self, place: str) -> str:
        self._stored += 1
        if self._stored > MAX_STORED:
            raise InvalidInputError(place, f"has more than {MAX_STORED} messages")
        return self._take_value(place, as_text=True)[1]

    def _hold(self, place: str, value: Json, text: str) -> Json:
        self._held.add_text(text)
        if self._held.is_too_large:
            raise InvalidInputError(place, _TOO_MANY)
        return value

    def _open_object(self, place: str, scratch: Scratch, path: _Path) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for _ in self._items("{", "}"):
            name = self._decode_name(place)
            self._held.strings += 1
            found[name] = self._decode_at(place, scratch, (*path, name))
        return found

    def _items(self, start: str, end: str) -> Iterator[None]:
        """Goes to each item of the list or object that begins here."""
        self.take(start)
        if self.take(end):
            return
        while True:
            self._check()
            yield
            if self.take(end):
                return
            if not self.take(","):
                self.fail(_EXPECTED["Expecting ',' delimiter"])

    def _decode_name(self, place: str) -> str:
        if not self.is_next('"'):
            self.fail("a name in double quotes")
        name: str = self.decode(place)
        if not self.take(":"):
            self.fail(_EXPECTED["Expecting ':' delimiter"])
        return name

    def decode(self, place: str) -> Json:
        """Parses the value that begins here."""
        return self._take_value(place)[0]

    def _take_value(self, place: str, *, as_text: bool = False) -> tuple[Json, str]:
        """The value, or None, and its text. Parsing is repeated if it takes more than a chunk: at most four times the
        work."""
        self._skip_space()
        counter: ValueCounter | None = None
        while True:
            try:
                value, end = self._parse()
            except JSONDecodeError as error:
                is_cut = _is_cut(self._buffer, error)
                if self._ended or not is_cut:
                    self._drop(len(self._buffer) if is_cut else error.pos)
                    self.fail(_EXPECTED.get(error.msg, error.msg))
                if counter is None:
                    counter = ValueCounter()
                    counter.ends_in(self._buffer[self._at :])
                self._read_on(place, counter)
            except _ConstantError as error:
                words = _STRING_OR_WORD.finditer(self._buffer, self._at)
                self._drop(next(match.start() for match in words if match[0] == error.name))
                self.fail("a number that JSON allows", found=error.name)
            except ValueError:
                digits = sys.get_int_max_str_digits()
                raise InvalidInputError(place, f"has a number of more than {digits} digits") from None
            else:
                rest = self._buffer[end : end + _LONGEST_CUT_TOKEN]
                if isinstance(value, int | float) and (not rest or _CUT_TOKEN.fullmatch(rest)):  # a number goes on
                    if end - self._at > _MAX_NUMBER:
                        raise InvalidInputError(place, f"has a number of more than {_MAX_NUMBER} characters")
                    if not self._ended:
                        self._read(_CHUNK)
                        continue
                    end = len(self._buffer)
                    if rest:
                        self._drop(end)
                        self.fail("a value")
                if self._most and self._dropped + end > self._most:
                    raise InvalidInputError(place, f"is larger than {MAX_OBJECT} characters")
                value = None if as_text else value  # A text can be large
                text = self._buffer[self._at : end]
                self._drop(end)
                return value, text

    def _read_on(self, place: str, counter: ValueCounter) -> None:
        """Reads until the value may be complete, or twice as much of it is there. No chunk is read beyond its end, so
        the next value is not parsed before it is counted."""
        pieces = [self._buffer[self._at :]]
        size, width = len(pieces[0]), _width(pieces[0])
        most = 2 * size
        self._dropped += self._at
        self._buffer, self._at = "", 0
        has_ended = False
        while True:
            if counter.is_too_large:
                raise InvalidInputError(place, _TOO_MANY)
            if size * width > MAX_MEMORY:
                raise InvalidInputError(place, f"has a part that takes more than {size_text(MAX_MEMORY)} of memory")
            if has_ended or self._ended or (size >= most and len(pieces) > 1):
                break
            if size > MAX_VALUE:
                raise InvalidInputError(place, f"has a part of more than {MAX_VALUE} characters")
            self._read(_CHUNK)
            pieces.append(self._buffer)
            size += len(self._buffer)
            width = max(width, _width(self._buffer))
            has_ended = counter.ends_in(self._buffer)
            self._buffer = ""
        self._buffer = "".join(pieces)

    def _parse(self) -> tuple[Json, int]:
        try:
            return _STRICT.raw_decode(self._buffer, self._at)
        except RecursionError:
            return _parse_deep(self._buffer, self._at, self._check)

    def _skip_space(self) -> None:
        while True:
            end = _end_of_space(self._buffer, self._at)
            is_found = end < len(self._buffer)
            self._drop(end)
            if is_found or self._ended:
                return
            self._read(_CHUNK)

    def _drop(self, end: int) -> None:
        """Moves to `end`, and releases what lies before it once that is much."""
        lines = self._buffer.count("\n", self._at, end)
        self.line += lines
        self._column = end - self._buffer.rindex("\n", self._at, end) if lines else self._column + end - self._at
        self._at = end
        if self._at >= _CHUNK or self._at == len(self._buffer):
            self._dropped += self._at
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


def _width(text: str) -> int:
    """Bytes of memory of each character. All have that of the widest one: an emoji makes it four."""
    return 1 if text.isascii() else min(4, sys.getsizeof(text) // len(text))


def _end_of_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


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


_STRICT: Final = json.JSONDecoder(parse_constant=_refuse_constant)


def _parse_deep(text: str, at: int, check: Callable[[], object]) -> tuple[Json, int]:
    """Parses a value that is nested deeper than the standard library's parser can go, with a stack of its own. It is
    lenient about commas and colons: brackets and strings carry the structure."""
    open_values: list[Json] = []
    keys: list[str | None] = []  # For each open value, the key of an object that waits for its value
    until_check = _CHECKED
    while True:
        until_check -= 1
        if not until_check:
            check()
            until_check = _CHECKED
        match = _TOKEN.match(text, at)
        if match is None:
            raise JSONDecodeError("Expecting value", text, _end_of_space(text, at))
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
            value, at = _STRICT.raw_decode(text, match.start(1))
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
