"""The pure pieces of the loop: joining texts, estimating, fitting, composing."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agents.chat import tokens
from holdfast.agents.chat.calls import repeats, step_marks, unsettled
from holdfast.agents.chat.history import answer
from holdfast.agents.chat.joint import Joint
from holdfast.agents.chat.prompt import system_prompt
from holdfast.agents.chat.workspaces import workspace
from holdfast.agents.models.port import AssistantSaid, Media, Request, Said, ToolCall, ToolSaid, UserSaid
from holdfast.core.ids import SessionId
from holdfast.core.parts import Part, Reasoning, Remembered, Text, Tool, ToolState

# ---- the joint ----


def joined(partial: str, says: str, size: int = 1) -> str:
    joint = Joint(partial)
    pieces = [joint.take(says[at : at + size]) for at in range(0, len(says), size)]
    return partial + "".join(pieces) + joint.end()


@pytest.mark.parametrize(
    ("partial", "says", "whole"),
    [
        ("The quick brown", " fox", "The quick brown fox"),
        ("The quick brown", "brown fox", "The quick brown fox"),
        ("The quick bro", "brown fox", "The quick brown fox"),
        ("The quick brown", "The quick brown fox", "The quick brown fox"),
        ("Hel", "Hello", "Hello"),
        ("yel", "low", "yellow"),
        ("a very", " very good", "a very very good"),
        ("one two three four", " three four five", "one two three four five"),
        ("ends in quick brown fox", "quick brown", "ends in quick brown fox"),
        ("x = 1\n", "\ny = 2", "x = 1\n\ny = 2"),
        ("", "all", "all"),
        ("partial", "", "partial"),
        ("Das ist schön", "schön und gut", "Das ist schön und gut"),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_a_repeated_tail_is_left_out(partial: str, says: str, whole: str, size: int) -> None:
    """X5: the two halves are one text; letters that are equal by chance stay."""
    assert joined(partial, says, size) == whole


@given(st.text(max_size=60), st.text(max_size=60), st.integers(1, 20))
def test_how_a_text_is_cut_into_pieces_does_not_matter(partial: str, says: str, size: int) -> None:
    """X5: what is left out depends on the words and not on how they arrived."""
    assert joined(partial, says, size) == joined(partial, says, 1)


@given(st.text("ab ", min_size=1, max_size=40), st.text("ab ", max_size=40))
def test_only_a_prefix_is_ever_left_out(partial: str, says: str) -> None:
    """X5: whatever is decided, the rest of the new text is untouched."""
    whole = joined(partial, says)
    assert whole.startswith(partial)
    assert says.endswith(whole[len(partial) :])


# ---- calls ----


def test_what_is_left_to_do_is_complete_and_unanswered() -> None:
    """X5: of all states, only complete calls without an answer are left, and a started one is marked."""
    parts = (
        Tool("a", "t", {"x": 1}, "done"),
        Tool("b", "t", {}, "denied"),
        Tool("c", "t", '{"x": 1}', "not_run"),
        Tool("d", "t", '{"x": 1', "not_run"),
        Tool("e", "t", {}, "unknown"),
        Tool("f", "t", {}, "pending", may_have_run=True),
        Tool("g", "", {}, "pending"),
        Tool("h", "t", "[1]", "pending"),
    )
    assert [(call.call_id, call.args, call.unknown) for call in unsettled(parts)] == [
        ("c", {"x": 1}, False),
        ("e", {}, True),
        ("f", {}, True),
    ]


def test_equal_calls_in_a_row_are_counted() -> None:
    """E1: another call in between, or other arguments, begin the count anew."""
    same = [Tool(f"c{n}", "t", {"x": 1}, "done") for n in range(3)]
    now = Tool("now", "t", '{"x": 1}', "pending")
    assert repeats([*same, Text("hm"), now], "now", "t", {"x": 1}) == 3
    assert repeats([*same, Tool("o", "u", {"x": 1}, "done"), now], "now", "t", {"x": 1}) == 0
    assert repeats([same[0], Tool("o", "t", {"x": 2}, "done"), same[1], now], "now", "t", {"x": 1}) == 1


def test_steps_are_found_again_in_parts() -> None:
    """X5: words after settled tools begin a step; words after an open call belong to its step."""
    done, left = Tool("a", "t", {}, "done"), Tool("b", "t", {}, "not_run")
    assert step_marks([Text("x"), done, Text("y"), done, Text("z")]) == [0, 2, 4]
    assert step_marks([Text("x"), done, left, Text("y")]) == [0]
    assert step_marks([]) == []


def test_every_call_has_its_answer_after_it() -> None:
    """X5: whatever state a call was left in, the model is shown an answer, and half-written calls not at all."""
    parts: list[Part] = [Text("x")]
    states: tuple[ToolState, ...] = ("done", "denied", "unknown", "not_run", "pending", "running", "waiting")
    parts += [Tool(state, "t", {}, state, result="r") for state in states]
    parts += [Tool("half", "t", '{"x', "not_run"), Tool("bad", "t", "{", "done", result="no", is_error=True)]
    (said, *results) = answer(parts, [0])
    assert isinstance(said, AssistantSaid)
    calls = [part.call_id for part in said.parts if isinstance(part, ToolCall)]
    assert calls == [*states, "bad"]
    assert [each.call_id for each in results if isinstance(each, ToolSaid)] == calls
    assert [each.is_error for each in results if isinstance(each, ToolSaid)] == [False] + [True] * 7


def test_a_call_id_that_comes_again_begins_a_message() -> None:
    """X5: two calls of one id, as another agent may have left them, never stand in one message."""
    done = Tool("a", "t", {}, "done", result=1)
    said = answer([done, done], [0])
    assert [type(each) for each in said] == [AssistantSaid, ToolSaid, AssistantSaid, ToolSaid]


def test_thoughts_alone_are_no_message() -> None:
    """X5: a step that was cut off while thinking is not shown to the model."""
    assert answer([Reasoning("hm")], [0]) == []


# ---- tokens ----


def test_the_estimate_counts_everything() -> None:
    """O3: system prompt, words, files, calls, results and tool descriptions all take room."""
    assert tokens.of_text("a" * 400) == 100
    assert tokens.of_text("語" * 100) == 75
    request = Request("s" * 40, (UserSaid(("u" * 40, Media("i", "image/png", b"1"))), ToolSaid("c", "t", "r" * 40)))
    assert tokens.of_request(request) == 10 + 4 + 10 + 1500 + 4 + 10
    assert tokens.Meter(50, 200).fraction == 0.25
    assert tokens.Meter(50, None).fraction is None


def test_old_results_make_room_first() -> None:
    """O3: long results are left out from the oldest on, as few as needed, and the newest stay."""
    messages: list[Said] = [UserSaid(("q",)), *(ToolSaid(f"c{n}", "t", "x" * 4000) for n in range(5))]
    kept = tokens.fit(messages, 3200)
    assert [len(each.text) == 4000 for each in kept if isinstance(each, ToolSaid)] == [False, False, True, True, True]
    assert tokens.of_messages(kept) <= 3200
    assert tokens.fit(messages, 100_000) == messages
    assert [len(each.text) == 4000 for each in tokens.fit(messages, 0) if isinstance(each, ToolSaid)][-2:] == [
        True,
        True,
    ]


# ---- the prompt ----


def test_the_system_prompt_has_what_there_is() -> None:
    """O3: instructions, the person's own, what is remembered and the summary; nothing for what is missing."""
    parts = [Remembered(({"text": "likes tea", "source": "s"}, {"text": " "}))]
    prompt = system_prompt("Be brief.", "Speak French.", "They met.", parts, tools=True)
    assert prompt is not None
    assert [word in prompt for word in ("Be brief.", "Speak French.", "- likes tea", "They met.", "tools")] == [
        True
    ] * 5
    assert system_prompt("", None, None, [], tools=False) is None


@pytest.mark.parametrize("sid", ["../../etc", "a/b", "..", "", "ses_1\0", "."])
def test_a_session_stays_below_the_root(sid: str) -> None:
    """X5: an id that came from elsewhere cannot name another directory."""
    assert workspace(Path("/root"), SessionId(sid)).parent == Path("/root")
    assert ".." not in workspace(Path("/root"), SessionId(sid)).parts
    assert workspace(Path("/root"), SessionId("ses_1-a")) == Path("/root/ses_1-a")
