"""What is made of a session's messages, whatever the gateway lists."""

import time
from typing import Any

import pytest

from holdfast.agents.gateway.session_messages import conversation, rest_of_answer, unseen, user_texts
from holdfast.core import events as ev
from holdfast.core.parts import Part, TextPart, ToolPart
from tests.gateway.scripted_gateway import call_row, row

GARBAGE: list[Any] = [None, 7, "text", [], {}, {"role": ["user"]}, {"role": "user", "content": 7}, {"role": "tool"}]
WRONG_IDS: list[Any] = [[], {}, None, 7]
GARBAGE += [{"role": "tool", "tool_call_id": wrong, "content": "x"} for wrong in WRONG_IDS]


def test_garbage_is_left_out() -> None:
    """L6: rows that are no messages change nothing."""
    calls = [None, {"function": 7}, {"function": {"name": 7}}, {"id": [], "function": {"name": "f", "arguments": "{"}}]
    rows = [*GARBAGE, row("user", "Hello"), *GARBAGE[:5], row("assistant", None, tool_calls=calls)]
    assert conversation(rows) == [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "[f({) → no result]"},
    ]
    assert conversation(GARBAGE) == []
    assert rest_of_answer(GARBAGE, (), "run_1", 0) == []
    assert user_texts(rows) == {"", "Hello"}


def test_a_long_conversation_keeps_its_end() -> None:
    """L6: what is sent of it is bounded, and begins with a user's message."""
    rows = [row("user" if n % 2 == 0 else "assistant", f"{n} " + "x" * 150_000) for n in range(20)]
    found = conversation(rows)
    assert [item["content"].partition(" ")[0] for item in found] == ["14", "15", "16", "17", "18", "19"]


@pytest.mark.parametrize("roles", [["assistant"], ["user"], ["user", "assistant"]])
def test_of_a_very_long_message_the_end_is_kept(roles: list[str]) -> None:
    """X5: one message that is larger than the limit does not take the whole conversation with it."""
    rows = [row(role, "long " * 300_000 + role if role in roles else role) for role in ("user", "assistant")]
    found = conversation([row("user", "first"), row("assistant", "before"), *rows])
    assert [item["role"] for item in found[-2:]] == ["user", "assistant"]
    assert [item["content"].rpartition(" ")[2] for item in found[-2:]] == ["user", "assistant"]
    assert sum(len(item["content"]) for item in found) <= 1_000_000


def test_content_in_parts_is_text() -> None:
    """Images of a message are left out, its texts are kept."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    assert conversation([row("user", [{"type": "text", "text": "See"}, image, {"type": "text", "text": "this."}])]) == [
        {"role": "user", "content": "See\nthis."}
    ]


@pytest.mark.parametrize(
    ("text", "seen", "rest"),
    [
        ("Half an answer.", "Half an ", "answer."),
        ("Half an answer.", "\n\nHalf an ", "answer."),
        ("Half", "Half  ", ""),
        ("answer.", "Half an ", "answer."),
        ("aaa", "aa", "a"),
        ("text", "", "text"),
        ("", "seen", ""),
        ("Another one.", "Half an ", "Another one."),
    ],
)
def test_what_was_seen_is_not_repeated(text: str, seen: str, rest: str) -> None:
    """X1: what was shown is left out of the beginning, and nothing else is."""
    assert unseen(text, seen) == rest


def test_the_rest_begins_after_the_last_announced_call() -> None:
    """X5: calls are matched by name and order; one that was denied keeps its end, and of another run's nothing is
    changed."""
    shown: list[Part] = [
        ToolPart("run_0-1", "terminal", {}, "unknown"),
        ToolPart("run_1-1", "terminal", {}, "denied"),
        TextPart("Then "),
        ToolPart("run_1-2", "terminal", {}, "unknown"),
    ]
    rows = [
        row("user", "Do"),
        call_row("a", "rm x"),
        row("tool", "BLOCKED", tool_call_id="a"),
        call_row("b", "ls", "Then"),
        row("tool", "x", tool_call_id="b"),
        row("assistant", "Done."),
    ]
    assert rest_of_answer(rows, shown, "run_1", 0) == [
        ev.ToolFinished("run_1-2", "x", False, 0),
        ev.TextDelta("Done."),
    ]


def test_text_of_earlier_runs_is_not_that_of_this_one() -> None:
    """X1: continued twice, the answer's text is one part; only what this run has shown is left out."""
    rows = [row("user", "Go on"), row("assistant", "answer.")]
    shown = [TextPart("Half an ans")]
    assert rest_of_answer(rows, shown, "run_2", len("Half an ")) == [ev.TextDelta("wer.")]


def test_what_is_told_twice_has_ids_of_its_own() -> None:
    """X1: the rest that was told is a part of the answer; what is told after another interruption is another call."""
    rows = [row("user", "Do"), call_row("a", "ls"), row("tool", "x", tool_call_id="a")]
    (first, _) = rest_of_answer(rows, (), "run_1", 0)
    assert isinstance(first, ev.ToolStarted)
    told = ToolPart(first.call_id, first.name, first.args, "done", "x")
    (second, _) = rest_of_answer([*rows, call_row("b", "rm y"), row("tool", "", tool_call_id="b")], [told], "run_1", 0)
    assert isinstance(second, ev.ToolStarted)
    assert second.call_id != first.call_id


def test_arguments_that_are_too_long_are_not_parsed() -> None:
    """L6: a text may have any number of values."""
    function = {"name": "f", "arguments": "[" + "[]," * 40_000 + "1]"}
    rows = [row("user", "Do"), row("assistant", "", tool_calls=[{"id": "a", "function": function}])]
    (told,) = rest_of_answer(rows, (), "run_1", 0)
    assert isinstance(told, ev.ToolStarted)
    assert told.args == {"note": "The arguments are too long to be shown."}


def test_many_calls_are_matched_in_linear_time() -> None:
    """L6: how many calls there are is up to the gateway, on both sides."""
    rows = [row("user", "Do"), *(call_row(str(n), "ls") for n in range(10_000))]
    shown = [ToolPart(f"run_1-{n}", "another", {}, "unknown") for n in range(10_000)]
    began = time.process_time()
    assert len(rest_of_answer(rows, shown, "run_1", 0)) == 10_000
    assert time.process_time() - began < 2.0
