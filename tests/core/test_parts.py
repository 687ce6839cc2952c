"""What messages are made of, as JSON and as words."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.ids import FileId
from holdfast.core.parts import (
    File,
    Json,
    Part,
    Reasoning,
    Remembered,
    Text,
    Tool,
    all_from_json,
    all_to_json,
    from_json,
    plain_text,
    to_json,
)
from tests.core.values import PROPERTY
from tests.strategies import parts


@PROPERTY
@given(parts())
def test_a_part_survives_its_json(part: Part) -> None:
    """Written as JSON text and read again, every part is the same."""
    assert from_json(json.loads(json.dumps(to_json(part)))) == part


@PROPERTY
@given(st.lists(parts(), max_size=4))
def test_parts_survive_their_json_in_order(listed: list[Part]) -> None:
    """A message's parts come back complete and in order."""
    assert all_from_json(json.loads(json.dumps(all_to_json(listed)))) == tuple(listed)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (Text("hi"), {"type": "text", "text": "hi"}),
        (Reasoning("hm"), {"type": "reasoning", "text": "hm"}),
        (Reasoning("hm", {"s": 1}), {"type": "reasoning", "text": "hm", "provider": {"s": 1}}),
        (Reasoning("hm", None, 7), {"type": "reasoning", "text": "hm", "duration_ms": 7}),
        (
            Tool("c", "ls", {"path": "."}, "pending"),
            {
                "type": "tool",
                "call_id": "c",
                "name": "ls",
                "args": {"path": "."},
                "result": None,
                "is_error": False,
                "state": "pending",
            },
        ),
        (
            Tool("c", "ls", {}, "done", ["a"], True, "a\n", 12, {"sig": "x"}),
            {
                "type": "tool",
                "call_id": "c",
                "name": "ls",
                "args": {},
                "result": ["a"],
                "is_error": True,
                "state": "done",
                "output": "a\n",
                "duration_ms": 12,
                "provider": {"sig": "x"},
            },
        ),
        (
            Tool("c", "rm", {}, "waiting", may_have_run=True),
            {
                "type": "tool",
                "call_id": "c",
                "name": "rm",
                "args": {},
                "result": None,
                "is_error": False,
                "state": "waiting",
                "may_have_run": True,
            },
        ),
        (
            File(FileId("f"), "a.png", "image/png", 7),
            {"type": "file", "file_id": "f", "name": "a.png", "media_type": "image/png", "size": 7},
        ),
        (
            Remembered(({"text": "t", "source": "s"},)),
            {"type": "remembered", "items": [{"text": "t", "source": "s"}]},
        ),
    ],
)
def test_parts_are_written_as_documented(part: Part, expected: dict[str, Json]) -> None:
    """The JSON of each part is what DESIGN §6 says, plus the fields that are only there when they say something."""
    assert to_json(part) == expected
    assert from_json(expected) == part


def test_what_a_later_version_wrote_is_left_out() -> None:
    """Parts of an unknown type are skipped, unknown fields are ignored and the others keep their order."""
    items: list[dict[str, Json]] = [
        {"type": "text", "text": "a", "colour": "red"},
        {"type": "hologram", "data": 1},
        {"no": "type"},
        {"type": "text", "text": "b"},
    ]
    assert all_from_json(items) == (Text("a"), Text("b"))


def test_optional_fields_of_a_tool_may_be_absent() -> None:
    """A tool part without result, error, output, duration or provider data is one that has none."""
    data = {"type": "tool", "call_id": "c", "name": "ls", "args": {}, "state": "running"}
    assert from_json(data) == Tool("c", "ls", {}, "running")


def test_plain_text_is_what_was_said() -> None:
    """Search and titles see text parts alone."""
    tool = Tool("c", "ls", {}, "done", "result")
    remembered = Remembered(({"text": "no", "source": "no"},))
    assert plain_text((Reasoning("no"), Text("one"), tool, remembered, Text("two"))) == "one\ntwo"
    assert plain_text(()) == ""
