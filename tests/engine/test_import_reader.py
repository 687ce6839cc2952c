"""Foreign and damaged exports: every error names its line."""

import json
from typing import Any

import pytest

from holdfast.core.errors import InvalidInputError
from holdfast.core.export_format import ExportedSession
from holdfast.engine.export_lines import ImportReader

SESSION: dict[str, Any] = {
    "type": "session",
    "format": "holdfast-session",
    "version": 1,
    "id": "ses_1",
    "title": "T",
    "titled_by": "person",
    "agent": "chat",
    "model": None,
    "system": None,
    "settings": None,
    "pinned": False,
    "archived": False,
    "tags": [],
    "project": None,
    "head": "msg_1",
    "redo": [],
    "created_at": "2026-01-31T12:00:00.5Z",
    "updated_at": "2026-01-31T12:00:00.5Z",
}
MESSAGE: dict[str, Any] = {
    "type": "message",
    "id": "msg_1",
    "parent_id": None,
    "role": "user",
    "status": "complete",
    "parts": [{"type": "text", "text": "hello"}],
    "reason": None,
    "error": None,
    "recovery": None,
    "model": None,
    "usage": None,
    "created_at": "2026-01-31T12:00:00Z",
}
END: dict[str, Any] = {"type": "end", "messages": 1, "compactions": 0, "files": 0}


def read(*items: dict[str, Any] | bytes) -> ExportedSession:
    reader = ImportReader()
    found = [reader.read(item if isinstance(item, bytes) else json.dumps(item).encode()) for item in items]
    reader.finish()
    assert isinstance(found[-1], ExportedSession)
    return found[-1]


def test_a_section_is_read_as_it_was_written() -> None:
    """Times, parts and the head come back as values."""
    section = read(SESSION, MESSAGE, END)
    assert section.session.created_at == 1769860800.5
    assert section.messages[0].id == section.session.head


@pytest.mark.parametrize(
    ("where", "items"),
    [
        ("line 1: this is not a Holdfast export (is not valid JSON at byte 1: the line ends inside an object", [b"{"]),
        ("line 1: this is not a Holdfast export (is not a JSON object", [b'[{"title": "A chat", "mapping": {}}]']),
        ("line 1: this is not a Holdfast export (type: is None", [b'{"title": "A chat", "mapping": {}}']),
        ("line 1: this is not a Holdfast export (is not valid JSON at byte 10: expected value", [b'{"type": NaN}']),
        (
            "line 1: this is not a Holdfast export (is not valid JSON at byte 202: recursion limit exceeded",
            [b"[" * 100_000],
        ),
        ("line 1: this is not a Holdfast export (type: is 'message'; expected session", [MESSAGE]),
        ("line 1: this is not a Holdfast export (format: expected", [{**SESSION, "format": "other"}]),
        ("line 1: is not valid JSON", [json.dumps(SESSION).encode()[:-1]]),
        ("line 2: is not valid JSON at byte 1: the line ends inside an object", [SESSION, b"{"]),
        ("line 1: version: is 2", [{**SESSION, "version": 2}]),
        ("line 1: tags.0: Input should be a valid string", [{**SESSION, "tags": [1]}]),
        ("line 1: settings: Input should be a valid dictionary", [{**SESSION, "settings": "x"}]),
        ("line 1: created_at: expected a time", [{**SESSION, "created_at": "2026-01-31T12:00:00"}]),
        ("line 2: role: Input should be ", [SESSION, {**MESSAGE, "role": "system"}]),
        ("line 2: status: Input should be 'complete'", [SESSION, {**MESSAGE, "status": "streaming"}]),
        ("line 2: parent_id: 'msg_0' is not an earlier message", [SESSION, {**MESSAGE, "parent_id": "msg_0"}]),
        ("line 2: parts.0.text: Input should be", [SESSION, {**MESSAGE, "parts": [{"type": "text", "text": 5}]}]),
        ("line 2: parts.0.type: 'film' is unknown", [SESSION, {**MESSAGE, "parts": [{"type": "film"}]}]),
        ("line 2: parts.0: Input should be a valid dictionary", [SESSION, {**MESSAGE, "parts": [5]}]),
        ("line 2: usage.input_tokens: Input should be", [SESSION, {**MESSAGE, "usage": {"input_tokens": -1}}]),
        ("line 3: id: 'msg_1' appears twice", [SESSION, MESSAGE, MESSAGE]),
        ("line 3: messages: expected 2, found 1", [SESSION, MESSAGE, {**END, "messages": 2}]),
        ("line 3: head: 'msg_2' is not a message", [{**SESSION, "head": "msg_2"}, MESSAGE, END]),
        ("line 2: the file ends in the middle of a session", [SESSION, MESSAGE]),
        ("line 3: type: is 'content'", [SESSION, MESSAGE, {"type": "content", "data": ""}]),
        ("line 1", [{**SESSION, "updated_at": "9999-12-31T23:59:59.999999Z"}]),
        ("line 1", [{**SESSION, "created_at": "0001-01-01T00:00:00+23:59"}]),
        ("line 1", [{"type": []}]),
        ("line 2", [SESSION, {**MESSAGE, "parts": [0] * 100_000}]),
    ],
)
def test_an_error_names_its_line(where: str, items: list[dict[str, Any] | bytes]) -> None:
    """The error says which line, which field, and what was expected."""
    with pytest.raises(InvalidInputError) as caught:
        read(*items)
    assert str(caught.value).startswith(where)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("settings", {"a": "x" * 300_000}),
        ("settings", {str(n): 1 for n in range(200)}),
        ("system", "x" * (8 * 1024 * 1024 + 1)),
        ("agent", "x" * 501),
        ("model", "x" * 501),
        ("title", "x" * 501),
    ],
)
def test_a_session_has_no_more_than_the_api_stores(field: str, value: Any) -> None:
    """A field that no request could have stored is refused, so that lists of sessions stay small."""
    with pytest.raises(InvalidInputError, match=f"line 1: {field}"):
        read({**SESSION, field: value}, MESSAGE, END)


def test_descriptions_are_shortened() -> None:
    """Tags, projects, models and errors of earlier imports can be longer than today's limits; they are cut."""
    tags = ["", "A", "a", *(f"{n}" * 1000 for n in range(100))]
    error = {"code": "upstream", "message": "x" * 1_000_000}
    answer = {**MESSAGE, "model": "m" * 5000, "reason": "r" * 5000, "error": error}
    section = read({**SESSION, "tags": tags, "project": "p" * 100_000, "redo": ["msg_1"] * 20_000}, answer, END)
    session, [message] = section.session, section.messages
    assert (len(session.tags), session.tags[:2], max(map(len, session.tags))) == (50, ("A", "0" * 100), 100)
    assert (session.project, len(session.redo)) == ("p" * 200, 10_000)
    assert (message.model, message.reason) == ("m" * 1000, "r" * 1000)
    assert message.error is not None
    assert len(message.error.message) == 10_000


def test_the_largest_session_of_the_api_can_be_imported() -> None:
    """Settings at their limit, with what the server adds to them, are read."""
    settings = {
        **{str(n): "x" * 1200 for n in range(50)},
        "memory": "m" * 200,
        "cwd": "/" * 4000,
        "agent_options": {f"{n:0200}": "\x01" * 500 for n in range(20)},
        "origin": {"app": "holdfast", "id": "i" * 1000, "head": "msg_1"},
        "metadata": {f"{n:064}": "x" * 512 for n in range(16)},
    }
    fields = {"settings": settings, "system": "x" * 1_000_000, "tags": ["t" * 100], "project": "p" * 200}
    session = read({**SESSION, **fields}, MESSAGE, END).session
    assert (session.settings, session.system, session.tags) == (settings, "x" * 1_000_000, ("t" * 100,))
