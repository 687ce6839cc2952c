"""Small files of very many values: they are counted before they are parsed, because each takes fifty bytes and more."""

import io
import itertools
import json
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from holdfast.core.errors import InvalidInputError
from holdfast.importers import json_objects
from holdfast.importers.json_objects import parse_json, read_document, read_objects
from holdfast.importers.scratch import Scratch

CHUNK = 16 * 1024
LIMIT = 100_000


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fortieth of the real limits, so that exceeding them takes no time."""
    monkeypatch.setattr(json_objects, "_CHUNK", CHUNK)
    monkeypatch.setattr(json_objects, "MAX_STRUCTURE", LIMIT)
    monkeypatch.setattr(json_objects, "MAX_STRINGS", LIMIT // 4)
    monkeypatch.setattr(json_objects, "MAX_STORED", LIMIT // 10)


def read(text: str, scratch: Scratch | None = None) -> list[dict[str, Any]]:
    with closing(scratch or Scratch()) as kept:
        return [item for _, item in read_objects(io.BytesIO(text.encode()), "chats.json", kept)]


def peak_of(work: Callable[[], object]) -> int:
    """The most memory that it takes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


LISTS = "[" + "[]," * 500_000 + "0]"
STRINGS = "[" + ",".join(f'"{n}"' for n in range(LIMIT)) + "]"
HALF = "[" + "[]," * (LIMIT // 6) + "0]"


@pytest.mark.parametrize(
    "text",
    [
        f'{{"title": {LISTS}}}',
        f'{{"mapping": {{"a": {LISTS}}}}}',
        f'{{"chat_messages": [{LISTS}]}}',
        f'{{"title": "{"x" * 1_000_000}", "mapping": {{"a": {LISTS}}}}}',
        f'{{"title": {"[" * 2000}{LISTS}',
        f'{{"title": {STRINGS}}}',
        f'{{"a": {HALF}, "b": {HALF}, "c": {HALF}}}',
        "{" + ",".join(f'"{n}": 0' for n in range(LIMIT)) + "}",
        f'[{{"segments": [{", ".join(f"""{{"id": {HALF}}}""" for _ in range(3))}]}}]',
    ],
    ids=["field", "node", "message", "after a large field", "nested", "strings", "fields", "names", "segments"],
)
def test_too_many_values_are_refused_before_they_are_parsed(text: str) -> None:
    """In a message, and in all other fields of a conversation together. Parsed, they would take fifty megabytes."""

    def refuse() -> None:
        with pytest.raises(InvalidInputError, match="has too many values"):
            read(text)

    assert peak_of(refuse) < 8 * LIMIT * 8 + 3 * len(text)


def test_a_document_is_counted_too() -> None:
    """Such as the list of projects."""
    with pytest.raises(InvalidInputError, match="has too many values"):
        read_document(io.BytesIO(LISTS.encode()), "projects.json")


@pytest.mark.parametrize(
    "messages", ["[" + "0," * LIMIT + "0]", "{" + ",".join(f'"{n}":0' for n in range(LIMIT)) + "}"]
)
def test_the_messages_of_a_chat_are_counted(messages: str) -> None:
    """Each takes memory although it is on the disk."""
    with pytest.raises(InvalidInputError, match=f"has more than {LIMIT // 10} messages"):
        read(f'{{"messages": {messages}}}')


def test_each_conversation_is_counted_by_itself() -> None:
    """Long texts do not count, and what comes after one that is larger than a chunk is read as before."""
    long = json.dumps('x, "[{' * 20_000)
    chat = {
        "title": json.loads(HALF),
        "text": json.loads(long),
        "messages": [json.loads(long), {"a": json.loads(HALF)}],
    }
    text = f"[{', '.join([json.dumps(chat)] * 5)}]"
    for item in read_objects(io.BytesIO(text.encode()), "chats.json"):
        assert {**item[1], "messages": list(item[1]["messages"])} == chat
    assert len(read(text)) == 5


def test_no_chunk_is_read_beyond_a_large_value() -> None:
    """What follows a value would otherwise be parsed before it is counted."""
    text = f'{{"text": "{"x" * 40 * CHUNK}", "mapping": {{"a": {LISTS}}}}}'
    stream = io.BytesIO(text.encode())
    with pytest.raises(InvalidInputError, match="has too many values"):
        list(read_objects(stream, "chats.json"))
    assert stream.tell() < 40 * CHUNK + 2 * LIMIT


@pytest.mark.parametrize("opening", ["", "[" * 2000])
def test_a_long_string_takes_its_own_memory_only(opening: str) -> None:
    """Also one of escape sequences, and below the depth where the parser of the standard library gives up."""
    value = opening + '"' + "\\n" * 1_000_000 + '"' + "]" * len(opening)
    assert peak_of(lambda: read(f'{{"messages": [{value}]}}')) < 10 * len(value)


def test_a_text_is_limited_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """An emoji makes each character of its text take four bytes."""
    monkeypatch.setattr(json_objects, "MAX_MEMORY", 1_000_000)
    plain, wide = "x" * 400_000, "x" * 400_000 + "\N{WATER WAVE}"
    assert read(f'[{{"a": "{plain}"}}, {{"a": "{plain}"}}]') == [{"a": plain}] * 2
    with pytest.raises(InvalidInputError, match="has a part that takes more than 1000000 bytes of memory"):
        read(f'[{{"a": "{plain}"}}, {{"a": "{wide}"}}]')


def test_a_message_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is parsed by one call, for which nothing else runs: a conversation can be larger than a message."""
    monkeypatch.setattr(json_objects, "MAX_VALUE", 4 * CHUNK)
    message = f'{{"a": "{"x" * 3 * CHUNK}"}}'
    assert len(read(f'[{{"messages": [{message}, {message}, {message}]}}]')[0]["messages"]) == 3
    stream = io.BytesIO(f'{{"messages": [{{"a": "{"x" * 100 * CHUNK}"}}]}}'.encode())
    with pytest.raises(InvalidInputError, match="has a part of more than"):
        list(read_objects(stream, "chats.json"))
    assert stream.tell() < 10 * CHUNK
    assert json_objects.MAX_MEMORY <= 64 * 1024 * 1024


def test_a_number_ends() -> None:
    """Digits without an end are refused, and are not read again for each chunk."""
    stream = io.BytesIO(b'{"a": 0.' + b"0" * 100 * CHUNK)
    with pytest.raises(InvalidInputError, match="has a number of more than 10000 characters"):
        list(read_objects(stream, "chats.json"))
    assert stream.tell() < 4 * CHUNK
    with pytest.raises(InvalidInputError, match=r"has a number of more than \d+ digits$"):
        read(f'{{"a": {"1" * 5000}}}')


class StopError(Exception): ...


@pytest.mark.parametrize(
    "text",
    [
        f'{{"messages": [{", ".join(["0"] * 5000)}]}}',
        f"[{', '.join(['{}'] * 5000)}]",
        f'{{"a": {"[" * 2000}{"0," * 20_000}0{"]" * 2000}}}',
    ],
    ids=["messages", "conversations", "nested"],
)
def test_reading_stops_between_chunks(text: str) -> None:
    """A chunk can have half a million values, and parsing in Python takes seconds."""
    calls = itertools.count()

    def check() -> None:
        if next(calls) == 10:
            raise StopError

    with pytest.raises(StopError):
        read(text, Scratch(check=check))


def test_json_inside_of_a_string_is_counted() -> None:
    """As the arguments of tools are written. A text that is long for its strings is none of it."""
    with pytest.raises(ValueError, match="has too many values"):
        parse_json(LISTS)
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * 50_000)
    assert parse_json(json.dumps({"text": "[]" * LIMIT})) == {"text": "[]" * LIMIT}
