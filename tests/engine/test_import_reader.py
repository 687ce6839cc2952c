"""Foreign and damaged exports: every error names its line."""

import json
from dataclasses import fields
from typing import Any

import pytest

from holdfast.core import parts
from holdfast.core.errors import InvalidInputError
from holdfast.core.session_limits import MAX_SUMMARIES, MAX_SUMMARY
from holdfast.engine import export_lines
from tests.importers.outlines import ReadSection, read_sections

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
SUMMARY: dict[str, Any] = {
    "type": "compaction",
    "message_id": "msg_1",
    "summary": "They said hello.",
    "created_at": "2026-01-31T12:00:00Z",
}
END: dict[str, Any] = {"type": "end", "messages": 1, "compactions": 0, "files": 0}


def read_lines(*items: dict[str, Any] | bytes) -> list[ReadSection]:
    return list(read_sections(item if isinstance(item, bytes) else json.dumps(item).encode() for item in items))


def read(*items: dict[str, Any] | bytes) -> ReadSection:
    [section] = read_lines(*items)
    return section


def test_a_section_is_read_as_it_was_written() -> None:
    """Times, parts and the head come back as values."""
    section = read(SESSION, MESSAGE, END)
    assert section.session.created_at == 1769860800.5
    assert section.messages[0].id == section.session.head


@pytest.mark.parametrize(
    ("where", "items"),
    [
        (
            "line 1: this is not a Holdfast export (it is not valid JSON at byte 1: the line ends inside an object",
            [b"{"],
        ),
        ("line 1: this is not a Holdfast export (it is not a JSON object", [b'[{"title": "A chat", "mapping": {}}]']),
        ("line 1: this is not a Holdfast export (type: is missing", [b'{"title": "A chat", "mapping": {}}']),
        ("line 1: this is not a Holdfast export (it is not valid JSON at byte 10: expected value", [b'{"type": NaN}']),
        (
            "line 1: this is not a Holdfast export (it is not valid JSON at byte 202: it is nested too deeply",
            [b"[" * 100_000],
        ),
        ("line 1: this is not a Holdfast export (type: is 'message'; expected session", [MESSAGE]),
        ("line 1: this is not a Holdfast export (format: expected", [{**SESSION, "format": "other"}]),
        ("line 1: is not valid JSON", [json.dumps(SESSION).encode()[:-1]]),
        ("line 2: is not valid JSON at byte 1: the line ends inside an object", [SESSION, b"{"]),
        ("line 1: version: is 2", [{**SESSION, "version": 2}]),
        ("line 1: tags.0: must be a string", [{**SESSION, "tags": [1]}]),
        ("line 1: settings: must be an object", [{**SESSION, "settings": "x"}]),
        ("line 1: created_at: expected a time", [{**SESSION, "created_at": "2026-01-31T12:00:00"}]),
        ("line 2: role: must be ", [SESSION, {**MESSAGE, "role": "system"}]),
        ("line 2: status: must be 'complete'", [SESSION, {**MESSAGE, "status": "streaming"}]),
        ("line 2: parent_id: 'msg_0' is not an earlier message", [SESSION, {**MESSAGE, "parent_id": "msg_0"}]),
        ("line 2: parts.0.text: must be", [SESSION, {**MESSAGE, "parts": [{"type": "text", "text": 5}]}]),
        ("line 2: parts.0.type: 'film' is unknown", [SESSION, {**MESSAGE, "parts": [{"type": "film"}]}]),
        ("line 2: parts.0: must be an object", [SESSION, {**MESSAGE, "parts": [5]}]),
        ("line 2: usage.input_tokens: must be", [SESSION, {**MESSAGE, "usage": {"input_tokens": -1}}]),
        ("line 3: id: 'msg_1' appears twice", [SESSION, MESSAGE, MESSAGE]),
        ("line 3: messages: expected 2, found 1", [SESSION, MESSAGE, {**END, "messages": 2}]),
        ("line 3: head: 'msg_2' is not a message", [{**SESSION, "head": "msg_2"}, MESSAGE, END]),
        ("line 2: the file ends in the middle of a session", [SESSION, MESSAGE]),
        ("line 3: type: is 'content'", [SESSION, MESSAGE, {"type": "content", "data": ""}]),
        ("line 1", [{**SESSION, "updated_at": "9999-12-31T23:59:59.999999Z"}]),
        ("line 1", [{**SESSION, "created_at": "0001-01-01T00:00:00+23:59"}]),
        ("line 1", [{"type": []}]),
        ("line 2", [SESSION, {**MESSAGE, "parts": [0] * 100_000}]),
        ("line 4: message_id: 'msg_1' has more than one summary", [SESSION, MESSAGE, SUMMARY, SUMMARY]),
        ("line 3: summary: must have at most", [SESSION, MESSAGE, {**SUMMARY, "summary": "s" * (MAX_SUMMARY + 1)}]),
        ("line 2: parts: must have at most 10000", [SESSION, {**MESSAGE, "parts": MESSAGE["parts"] * 10_001}]),
    ],
)
def test_an_error_names_its_line(where: str, items: list[dict[str, Any] | bytes]) -> None:
    """The error says which line, which field, and what was expected."""
    with pytest.raises(InvalidInputError) as caught:
        read(*items)
    assert str(caught.value).startswith(where)


def test_the_summaries_of_a_session_have_a_limit() -> None:
    """All of them are read with a page of messages."""
    count = MAX_SUMMARIES // MAX_SUMMARY
    messages = [{**MESSAGE, "id": f"msg_{n}"} for n in range(1, count + 2)]
    lines = [{**SUMMARY, "message_id": each["id"], "summary": "s" * MAX_SUMMARY} for each in messages]
    end = {**END, "messages": count, "compactions": count}
    assert len(read(SESSION, *messages[:count], *lines[:count], end).compactions) == count
    with pytest.raises(InvalidInputError, match="summary: the session has more than 4,194,304 characters"):
        read(SESSION, *messages, *lines)


def test_the_siblings_of_a_message_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages name all of them. A chain of messages may be longer."""
    monkeypatch.setattr(export_lines, "MAX_SIBLINGS", 3)
    roots = [{**MESSAGE, "id": f"msg_{n}"} for n in range(1, 5)]
    below = [MESSAGE, *({**each, "parent_id": "msg_1", "id": f"{each['id']}b"} for each in roots)]
    chain = [MESSAGE, *({**MESSAGE, "id": f"msg_{n}", "parent_id": f"msg_{n - 1}"} for n in range(2, 7))]
    assert len(read(SESSION, *below[:4], {**END, "messages": 4}).messages) == 4
    assert len(read(SESSION, *chain, {**END, "messages": 6}).messages) == 6
    whole = [SESSION, *roots[:3], {**END, "messages": 3}]
    assert len(read_lines(*whole, *whole)) == 2
    for lines, place in ((roots, "line 5: .* at the beginning"), (below, "line 6: .* below 'msg_1'")):
        with pytest.raises(InvalidInputError, match=place):
            read(SESSION, *lines)


def test_the_values_of_a_line_are_counted_before_they_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty lists take twenty times as much memory as their text. Long strings do not count."""
    monkeypatch.setattr(export_lines, "_MAX_VALUES", 1000)
    call = {"type": "tool", "call_id": "c", "name": "f", "args": {}, "state": "done"}
    read(SESSION, {**MESSAGE, "parts": [{**call, "result": "[]," * 50_000}]}, END)
    with pytest.raises(InvalidInputError, match="line 2: has more than 1,000 values"):
        read(SESSION, {**MESSAGE, "parts": [{**call, "result": [[]] * 50_000}]}, END)


_FULL: dict[str, dict[str, Any]] = {
    "text": {"text": "x", "begins_step": True},
    "reasoning": {"text": "x", "provider": {"signature": "s"}, "duration_ms": 5, "begins_step": True},
    "tool": {
        "call_id": "c",
        "name": "n",
        "args": {"a": 1},
        "state": "done",
        "result": {"b": [1]},
        "is_error": True,
        "output": "o",
        "duration_ms": 5,
        "provider": {"signature": "s"},
        "may_have_run": True,
        "args_text": "{}",
        "begins_step": True,
    },
    "file": {
        "file_id": "fil_1",
        "name": "n",
        "media_type": "text/plain",
        "size": 1,
        "call_id": "c",
        "missing": "not_imported",
    },
    "remembered": {"items": [{"text": "x"}], "note": "n"},
    "plan": {"entries": [{"content": "c", "status": "pending", "priority": "high"}]},
}
_ANY = {"args", "result", "provider"}  # JSON of tools and providers
FILE = {
    "type": "file",
    "id": "fil_1",
    "name": "n",
    "media_type": "text/plain",
    "size": 1,
    "sha256": "",
    "missing": True,
}


@pytest.mark.parametrize("kind", _FULL)
def test_every_field_of_a_part_comes_back(kind: str) -> None:
    """All fields that the code has are named here, and each is read as it was written."""
    part = {"type": kind, **_FULL[kind]}
    section = read(SESSION, {**MESSAGE, "parts": [part]}, FILE, {**END, "files": 1})
    [found] = section.messages[0].parts
    assert parts.to_json(found) == part
    assert {field.name for field in fields(found)} == _FULL[kind].keys()


@pytest.mark.parametrize(
    ("kind", "field"), [(kind, field) for kind, part in _FULL.items() for field in part if field not in _ANY]
)
def test_a_part_that_could_not_be_shown_is_not_imported(kind: str, field: str) -> None:
    """A field with a value of another type is named; stored, it would break every later answer with that message."""
    for wrong in ({"x": 1}, 1.5, "soon" if not isinstance(_FULL[kind][field], str) else 0):
        part = {"type": kind, **_FULL[kind], field: wrong}
        with pytest.raises(InvalidInputError, match=rf"line 2: parts\.0\.{field}"):
            read(SESSION, {**MESSAGE, "parts": [part]}, FILE, {**END, "files": 1})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("settings", {"a": "x" * 300_000}),
        ("settings", {str(n): 1 for n in range(200)}),
        ("system", "x" * (8 * 1024 * 1024 + 1)),
        ("agent", "x" * 501),
        ("model", "x" * 501),
        ("title", "x" * 501),
        ("id", "x" * 201),
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
