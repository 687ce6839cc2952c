"""Exports that are not ours, or damaged: every fault is named with its line."""

import json
from typing import Any

import pytest

from holdfast.core.errors import Invalid
from holdfast.core.portable_reader import Finished, Reader

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


def read(*items: dict[str, Any] | bytes) -> Finished:
    reader = Reader()
    found = [reader.read(item if isinstance(item, bytes) else json.dumps(item).encode()) for item in items]
    reader.finish()
    assert isinstance(found[-1], Finished)
    return found[-1]


def test_a_section_is_read_as_it_was_written() -> None:
    """Times, parts and the head come back as values."""
    section = read(SESSION, MESSAGE, END).section
    assert section.session.created_at == 1769860800.5
    assert section.messages[0].id == section.session.head


@pytest.mark.parametrize(
    ("where", "items"),
    [
        ("line 1: is not JSON", [b"{"]),
        ("line 1: is not JSON", [b'{"type": NaN}']),
        ("line 1: is not a JSON object", [b"[]"]),
        ("line 1: is nested too deeply", [b"[" * 100_000]),
        ("line 1: type: is 'message'; expected session", [MESSAGE]),
        ("line 1: format: expected", [{**SESSION, "format": "other"}]),
        ("line 1: version: is 2", [{**SESSION, "version": 2}]),
        ("line 1: tags: is not a list of texts", [{**SESSION, "tags": [1]}]),
        ("line 1: settings: is neither", [{**SESSION, "settings": "x"}]),
        ("line 1: created_at: is not a time", [{**SESSION, "created_at": "2026-01-31T12:00:00"}]),
        ("line 2: role: is 'system'", [SESSION, {**MESSAGE, "role": "system"}]),
        ("line 2: status: is 'streaming'", [SESSION, {**MESSAGE, "status": "streaming"}]),
        ("line 2: parent_id: 'msg_0' is not a message above", [SESSION, {**MESSAGE, "parent_id": "msg_0"}]),
        ("line 2: parts.0.text: is not a text", [SESSION, {**MESSAGE, "parts": [{"type": "text", "text": 5}]}]),
        ("line 2: parts.0.type: 'film' is not known", [SESSION, {**MESSAGE, "parts": [{"type": "film"}]}]),
        ("line 2: parts.0: is not a JSON object", [SESSION, {**MESSAGE, "parts": [5]}]),
        ("line 2: input_tokens: is not a whole number", [SESSION, {**MESSAGE, "usage": {"input_tokens": -1}}]),
        ("line 3: id: 'msg_1' is there twice", [SESSION, MESSAGE, MESSAGE]),
        ("line 3: messages: there are 1 of them, not 2", [SESSION, MESSAGE, {**END, "messages": 2}]),
        ("line 3: head: 'msg_2' is not a message", [{**SESSION, "head": "msg_2"}, MESSAGE, END]),
        ("line 2: the file breaks off here", [SESSION, MESSAGE]),
        ("line 3: type: is 'content'", [SESSION, MESSAGE, {"type": "content", "data": ""}]),
    ],
)
def test_a_fault_is_named_with_its_line(where: str, items: list[dict[str, Any] | bytes]) -> None:
    """The error says which line, which field, and what was expected."""
    with pytest.raises(Invalid) as caught:
        read(*items)
    assert str(caught.value).startswith(where)
