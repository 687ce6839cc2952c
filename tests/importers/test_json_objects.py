"""Objects of JSON files: what an error says about a file that is damaged or not JSON."""

import io
import json

import pytest

from holdfast.core.errors import InvalidInputError
from holdfast.importers import json_objects
from holdfast.importers.json_objects import read_document, read_objects


def problem_of(data: bytes | str) -> str:
    content = data.encode() if isinstance(data, str) else data
    with pytest.raises(InvalidInputError) as caught:
        list(read_objects(io.BytesIO(content), "chats.json"))
    return str(caught.value)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("", "line 1, column 1: expected a JSON object or list, but the file is empty"),
        (" \n ", "line 2, column 2: expected a JSON object or list, but the file is empty"),
        ("<html>", "line 1, column 1: expected a JSON object or list, found '<'"),
        ("[1]", "line 1, column 2: expected a JSON object, found '1'"),
        ("[{},\n 5]", "line 2, column 2: expected a JSON object, found '5'"),
        ("[{}\n {}]", "line 2, column 2: expected ',' or ']' after an item of the list, found '{'"),
        ("[{}] x", "line 1, column 6: expected the end of the file after the list, found 'x'"),
        ('[{}, {"a": ]', "line 1, column 12: expected a value, found ']'"),
        ('{"a": 1,\n"é": 2 "c"}', "line 2, column 8: expected ',' or the end of the object or list, found '\"'"),
        ('{"a" 1}', "line 1, column 6: expected ':' after a name, found '1'"),
        ("{a: 1}", "line 1, column 2: expected a name in double quotes, found 'a'"),
        ('{"a": "\\x"}', "line 1, column 8: expected a valid escape sequence, found '\\\\'"),
        ('{"a": "\n"}', "line 1, column 8: expected an escape sequence, found '\\n'"),
        ('{"n": 1,\n "a": NaN}', "line 2, column 7: expected a number that JSON allows, found 'NaN'"),
        (b'\xef\xbb\xbf[{"a": "\xff"}]', "byte offset 11: expected UTF-8 text, found the byte 0xff"),
        (b'{"a": "\xc3', "byte offset 7: expected the rest of a UTF-8 character, but the file ends here; "),
    ],
)
def test_an_error_says_where_and_what_was_expected(data: bytes | str, problem: str) -> None:
    """File, line and column (or byte), and the expected token, in one sentence."""
    assert problem_of(data).startswith(f"chats.json, {problem}")


WHOLE = '[\n{"a": "text", "b": [1, true]},\n{"c": -1.5e3}\n]\n'


@pytest.mark.parametrize("length", range(1, len(WHOLE) - 2))
def test_a_file_that_is_cut_off_is_called_incomplete(length: int) -> None:
    """Wherever it ends, the error points at the end of the file."""
    text = WHOLE[:length]
    line, column = text.count("\n") + 1, length - (text.rfind("\n") + 1) + 1
    end = "but the file ends here; it is incomplete, so download or copy it again"
    found = problem_of(text)
    assert found.startswith(f"chats.json, line {line}, column {column}: expected ")
    assert found.endswith(end)


@pytest.mark.parametrize("opening", ["[" * 50_000, '{"a":' * 5_000 + '"text', '{"a":' * 5_000 + "\n"])
def test_a_nested_document_that_is_damaged(opening: str) -> None:
    """The parser for deep nesting reports places as well."""
    with pytest.raises(InvalidInputError, match=r"^chats\.json, line \d, column \d+: "):
        read_document(io.BytesIO(opening.encode()), "chats.json")


def test_an_error_before_the_end_is_not_taken_for_a_large_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """A typo in a large file is reported at its place, without reading on."""
    monkeypatch.setattr(json_objects, "_CHUNK", 1024)
    stream = io.BytesIO(b'{"a": 1 "b": "' + b"x" * 100_000 + b'"}')
    with pytest.raises(InvalidInputError, match="line 1, column 9: expected ','"):
        list(read_objects(stream, "chats.json"))
    assert stream.tell() < 10_000


def test_chunks_may_end_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read in pieces is the same as what is read at once."""
    items = [{"a": "é\\\n\t😀", "b": [True, None, -1.5e-3, 10**20]}, {"c": {"d": "x" * 50}}] * 3
    data = json.dumps(items, ensure_ascii=False, indent=1).encode()
    for size in range(1, 60):
        monkeypatch.setattr(json_objects, "_CHUNK", size)
        assert [item for _, item in read_objects(io.BytesIO(data), "chats.json")] == items
