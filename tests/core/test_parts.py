"""Message parts, their JSON form and their plain text."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis.strategies import lists

from holdfast.core.ids import FileId
from holdfast.core.parts import (
    FilePart,
    Json,
    Part,
    PlanEntry,
    PlanPart,
    ReasoningPart,
    RememberedPart,
    TextPart,
    ToolPart,
    all_from_json,
    all_to_json,
    approximate_size,
    from_json,
    json_size,
    plain_text,
    to_json,
)
from tests.core.values import PROPERTY
from tests.strategies import parts

TOOL: dict[str, Json] = {
    "type": "tool",
    "call_id": "c",
    "name": "ls",
    "args": {},
    "result": None,
    "is_error": False,
    "state": "done",
}


@PROPERTY
@given(parts())
def test_a_part_survives_its_json(part: Part) -> None:
    """Written as JSON text and read again, every part is the same."""
    assert from_json(json.loads(json.dumps(to_json(part)))) == part


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (TextPart("hi"), {"type": "text", "text": "hi"}),
        (ReasoningPart("hm"), {"type": "reasoning", "text": "hm"}),
        (ReasoningPart("hm", {"s": 1}), {"type": "reasoning", "text": "hm", "provider": {"s": 1}}),
        (ReasoningPart("hm", None, 7), {"type": "reasoning", "text": "hm", "duration_ms": 7}),
        (ToolPart("c", "ls", {"path": "."}, "pending"), {**TOOL, "args": {"path": "."}, "state": "pending"}),
        (
            ToolPart("c", "ls", {}, "done", ["a"], True, "a\n", 12, {"sig": "x"}),
            {**TOOL, "result": ["a"], "is_error": True, "output": "a\n", "duration_ms": 12, "provider": {"sig": "x"}},
        ),
        (
            ToolPart("c", "rm", {}, "waiting", may_have_run=True),
            {**TOOL, "name": "rm", "state": "waiting", "may_have_run": True},
        ),
        (
            FilePart(FileId("f"), "a.png", "image/png", 7),
            {"type": "file", "file_id": "f", "name": "a.png", "media_type": "image/png", "size": 7},
        ),
        (
            RememberedPart(({"text": "t", "source": "s"},)),
            {"type": "remembered", "items": [{"text": "t", "source": "s"}]},
        ),
        (
            PlanPart((PlanEntry("read", "in_progress"),)),
            {"type": "plan", "entries": [{"content": "read", "status": "in_progress"}]},
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
    assert all_from_json(items) == (TextPart("a"), TextPart("b"))
    assert all_to_json((TextPart("a"), TextPart("b"))) == [{"type": "text", "text": text} for text in "ab"]


def test_optional_fields_of_a_tool_may_be_absent() -> None:
    """A tool part without result, error, output, duration or provider data is one that has none."""
    data = {"type": "tool", "call_id": "c", "name": "ls", "args": {}, "state": "running"}
    assert from_json(data) == ToolPart("c", "ls", {}, "running")


def test_plain_text_is_what_was_said() -> None:
    """Search and titles see text parts alone."""
    tool = ToolPart("c", "ls", {}, "done", "result")
    remembered = RememberedPart(({"text": "no", "source": "no"},))
    assert plain_text((ReasoningPart("no"), TextPart("one"), tool, remembered, TextPart("two"))) == "one\ntwo"
    assert plain_text(()) == ""


@PROPERTY
@given(lists(parts(), max_size=3))
def test_the_approximate_size_is_about_the_size(found: list[Part]) -> None:
    """Only what JSON escapes is counted differently."""
    exact = json_size(found)
    escaped = sum(json.dumps(to_json(part), ensure_ascii=False).count("\\") for part in found)
    assert exact - 6 * escaped <= approximate_size(found) <= exact


def test_a_long_text_is_measured_without_a_copy() -> None:
    """Encoding an answer of many megabytes would hold up every other request, even in a thread."""
    long = "x" * 10_000_000
    answer = (TextPart(long), ReasoningPart(long), ToolPart("c", "ls", long, "done", long, output=long))
    tracemalloc.start()
    try:
        assert 50_000_000 < approximate_size(answer) < 50_001_000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
