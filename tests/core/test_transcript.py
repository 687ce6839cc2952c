"""The fold: what a reader sees is what the journal says, over more or less of it."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import events as ev
from holdfast.core.errors import BrokenSequence
from holdfast.core.ids import ApprovalId, FileId, MessageId, RunId, SessionId
from holdfast.core.parts import (
    File,
    Part,
    Reasoning,
    Remembered,
    Text,
    Tool,
    ToolState,
    all_from_json,
    all_to_json,
)
from holdfast.core.transcript import EMPTY, Transcript, fold, has_output
from tests.core.values import PROPERTY
from tests.strategies import endings, events, journals, numbered

STARTED = ev.RunStarted(RunId("r"), SessionId("s"), MessageId("m"), MessageId("u"), None, "chat")
CANCELLED = ev.RunEnded("cancelled", reason="user")
ASKED = ev.ApprovalRequested(ApprovalId("apr_1"), "c", "rm", {"path": "x"}, "It deletes.")


def folded(*events: ev.Event) -> Transcript:
    return fold(numbered(events))


def parts(*events: ev.Event) -> tuple[Part, ...]:
    return folded(*events).parts


# ---- the partial is kept (C) ----


def test_cancelled_reasoning_is_kept() -> None:
    """C1: cancel after reasoning alone leaves a message that carries it."""
    transcript = folded(STARTED, ev.StepStarted(0), ev.ReasoningDelta("Let me "), ev.ReasoningDelta("see"), CANCELLED)
    assert transcript.parts == (Reasoning("Let me see"),)
    assert (transcript.status, transcript.reason) == ("cancelled", "user")


def test_cancelled_reasoning_and_text_are_kept() -> None:
    """C2: both the reasoning and the text so far are in the message."""
    assert parts(STARTED, ev.ReasoningDelta("hm"), ev.TextDelta("The an"), ev.TextDelta("swer"), CANCELLED) == (
        Reasoning("hm"),
        Text("The answer"),
    )


def test_cancelled_tools_are_kept_finished_or_not() -> None:
    """C3: every call keeps its name, arguments, result if there is one, and whether it finished."""
    assert parts(
        STARTED,
        ev.ToolStarted("a", "ls", {"path": "."}),
        ev.ToolFinished("a", ["x"], duration_ms=4),
        ev.ToolStarted("b", "cat", {"path": "x"}),
        ev.ToolFinished("b", "no such file", is_error=True, duration_ms=5),
        ev.ToolStarted("c", "make", {}),
        ev.ToolDelta("c", output_delta="cc main.c\n"),
        ev.ToolDelta("d", "rm", '{"pa'),
        CANCELLED,
    ) == (
        Tool("a", "ls", {"path": "."}, "done", ["x"], duration_ms=4),
        Tool("b", "cat", {"path": "x"}, "done", "no such file", is_error=True, duration_ms=5),
        Tool("c", "make", {}, "unknown", output="cc main.c\n"),
        Tool("d", "rm", '{"pa', "not_run"),
    )


def test_tools_and_text_stay_in_order() -> None:
    """C4: text, reasoning and tools are kept in the order in which they happened."""
    kept = parts(
        STARTED,
        ev.TextDelta("First I look."),
        ev.ToolStarted("a", "ls", {}),
        ev.ToolFinished("a", []),
        ev.StepStarted(1),
        ev.ReasoningDelta("Nothing."),
        ev.TextDelta("Then I "),
        ev.TextDelta("write."),
        ev.ToolStarted("b", "write", {}),
        ev.TextDelta("Meanwhile"),
        CANCELLED,
    )
    assert kept == (
        Text("First I look."),
        Tool("a", "ls", {}, "done", []),
        Reasoning("Nothing."),
        Text("Then I write."),
        Tool("b", "write", {}, "unknown"),
        Text("Meanwhile"),
    )


@pytest.mark.parametrize("before", [(), (STARTED,), (STARTED, ev.StepStarted(0), ev.Usage(10, 0))])
def test_nothing_streamed_leaves_no_parts(before: tuple[ev.Event, ...]) -> None:
    """C5: a run that is cancelled before it said anything has no parts, only its status."""
    transcript = folded(*before, CANCELLED)
    assert transcript.parts == ()
    assert transcript.status == "cancelled"


@pytest.mark.parametrize("empty", [ev.TextDelta(""), ev.ReasoningDelta("")], ids=["text", "reasoning"])
def test_deltas_without_text_are_nothing(empty: ev.Event) -> None:
    """C5: a delta that says nothing, as some providers send first, leaves no part and splits none."""
    assert parts(STARTED, empty, CANCELLED) == ()
    assert parts(ev.TextDelta("a"), empty, ev.TextDelta("b")) == (Text("ab"),)
    assert parts(ev.ReasoningDelta("a"), empty, ev.ReasoningDelta("b")) == (Reasoning("ab"),)


TOLD: dict[ToolState, tuple[ev.Event, ...]] = {
    "pending": (ev.ToolDelta("c", "rm", '{"path"'),),
    "waiting": (ASKED,),
    "running": (ev.ToolStarted("c", "rm", {"path": "x"}),),
    "done": (ev.ToolStarted("c", "rm", {"path": "x"}), ev.ToolFinished("c", "gone")),
    "denied": (ASKED, ev.ApprovalResolved(ApprovalId("apr_1"), "deny")),
    "unknown": (ev.ToolStarted("c", "rm", {"path": "x"}), ev.RunResumed(2)),
    "not_run": (ev.ToolDelta("c", "rm", '{"path"'), ev.RunResumed(2)),
}
ENDED: dict[ToolState, ToolState] = {
    "pending": "not_run",
    "waiting": "not_run",
    "running": "unknown",
    "done": "done",
    "denied": "denied",
    "unknown": "unknown",
    "not_run": "not_run",
}
RESUMED: dict[ToolState, ToolState] = {**ENDED, "waiting": "waiting"}


def the_tool(transcript: Transcript) -> Tool:
    (part,) = transcript.parts
    assert isinstance(part, Tool)
    return part


@pytest.mark.parametrize("state", TOLD)
def test_the_journal_shows_a_tool_in_each_state(state: ToolState) -> None:
    """C3: the events of a call say which state it is in, and one call is one part."""
    tool = the_tool(folded(*TOLD[state]))
    assert (tool.call_id, tool.name, tool.state) == ("c", "rm", state)


@pytest.mark.parametrize("status", ["complete", "cancelled", "failed", "interrupted"])
@pytest.mark.parametrize("state", TOLD)
def test_the_end_settles_open_tools(state: ToolState, status: ev.Ending) -> None:
    """C3: the end turns running tools into unknown, pending and waiting ones into not_run, and keeps the others."""
    open_tool = the_tool(folded(*TOLD[state]))
    tool = the_tool(folded(*TOLD[state], ev.RunEnded(status)))
    assert tool.state == ENDED[state]
    assert (tool.name, tool.args, tool.result) == (open_tool.name, open_tool.args, open_tool.result)


@pytest.mark.parametrize("state", TOLD)
def test_a_resumed_run_has_no_running_tools(state: ToolState) -> None:
    """X5: after a crash a started tool's outcome is unknown; a question that waits goes on waiting."""
    assert the_tool(folded(*TOLD[state], ev.RunResumed(3))).state == RESUMED[state]


# ---- the end ----


@pytest.mark.parametrize(
    "end",
    [
        ev.RunEnded("complete", finish_reason="stop"),
        ev.RunEnded("cancelled", reason="disconnected"),
        ev.RunEnded("failed", reason="limit", error=ev.Failure("limit", "Too long.")),
        ev.RunEnded("interrupted", reason="process-gone"),
    ],
)
def test_the_terminal_event_gives_the_status(end: ev.RunEnded) -> None:
    """E1: status, reason, finish reason and error are those of the terminal event; the partial is kept."""
    before = folded(STARTED, ev.TextDelta("So"))
    assert (before.status, before.ended) == ("streaming", False)
    assert fold(numbered([end], after=2), before) == Transcript(
        parts=(Text("So"),),
        status=end.status,
        reason=end.reason,
        finish_reason=end.finish_reason,
        error=end.error,
        last_seq=3,
    )


def test_nothing_folds_to_nothing() -> None:
    """Folding no events changes nothing, also on a transcript that has ended."""
    assert fold([]) == EMPTY == Transcript()
    ended = folded(STARTED, ev.TextDelta("a"), ev.RunEnded("failed", "r", "f", ev.Failure("c", "m")))
    assert ended.ended
    assert fold([], ended) == ended


@PROPERTY
@given(journals(ended=True), events())
def test_nothing_follows_the_terminal_event(journal: list[ev.Entry], late: ev.Event) -> None:
    """C6: an event after the terminal one, of whatever type, is a broken journal."""
    late_entry = ev.entry(len(journal) + 1, late)
    with pytest.raises(BrokenSequence):
        fold([*journal, late_entry])
    with pytest.raises(BrokenSequence):
        fold([late_entry], fold(journal))


@pytest.mark.parametrize("seqs", [(2,), (0,), (1, 1), (1, 3), (1, 2, 4), (1, 2, 1), (2, 1)])
def test_a_gap_is_refused(seqs: tuple[int, ...]) -> None:
    """L5: events fold only as 1, 2, 3 …; a gap, a repeat or a step back raises."""
    with pytest.raises(BrokenSequence):
        fold([ev.entry(seq, ev.TextDelta("a")) for seq in seqs])


def test_a_gap_after_a_folded_prefix_is_refused() -> None:
    """L5: what is folded onto a transcript has to follow its last seq."""
    prefix = folded(STARTED, ev.TextDelta("a"))
    for seq in (1, 2, 4):
        with pytest.raises(BrokenSequence):
            fold([ev.entry(seq, ev.TextDelta("b"))], prefix)
    assert prefix.parts == (Text("a"),)


# ---- continuing ----


def test_a_seeded_message_begins_with_what_was_left() -> None:
    """X5: the first event brings the earlier parts, and text goes on in the part where it stopped."""
    file = File(FileId("f"), "a.png", "image/png", 7)
    left = (Reasoning("hm"), Tool("c", "ls", {}, "done", "x"), file, Text("Once up"))
    assert parts(ev.MessageSeeded(RunId("r0"), left), STARTED, ev.TextDelta("on a time")) == (
        *left[:3],
        Text("Once upon a time"),
    )


def test_seeded_tools_are_taken_up_in_their_place() -> None:
    """X5: a finished call stays as it is; one whose outcome is unknown is asked about and finishes where it was."""
    left = (Tool("a", "ls", {}, "done", "x"), Tool("c", "rm", {"path": "x"}, "unknown"), Text("and"))
    events: list[ev.Event] = [ev.MessageSeeded(RunId("r0"), left), STARTED, ASKED]
    asked = parts(*events)
    assert (asked[0], asked[2]) == (left[0], left[2])
    assert isinstance(asked[1], Tool)
    assert (asked[1].call_id, asked[1].args, asked[1].state) == ("c", {"path": "x"}, "waiting")
    events += [ev.ApprovalResolved(ApprovalId("apr_1"), "once"), ev.ToolStarted("c", "rm", {"path": "x"})]
    assert parts(*events, ev.ToolFinished("c", "gone")) == (
        left[0],
        Tool("c", "rm", {"path": "x"}, "done", "gone"),
        left[2],
    )


def test_an_empty_seed_is_nothing() -> None:
    """X5: continuing a run that left nothing begins with no parts."""
    assert parts(ev.MessageSeeded(RunId("r0"), ()), STARTED) == ()


def test_text_goes_on_after_a_resume() -> None:
    """X5: the answer goes on from where the journal ends, in the same part."""
    resumed = folded(STARTED, ev.TextDelta("Hello wor"), ev.RunResumed(2), ev.StepStarted(0), ev.TextDelta("ld"))
    assert resumed.parts == (Text("Hello world"),)
    assert resumed.status == "streaming"


NAMED_FIRST = (ev.ToolDelta("c", "write"), ev.ToolDelta("c", None, '{"path":'), ev.ToolDelta("c", None, '"new"}'))
NAMED_ALONG = (ev.ToolDelta("c", "write", '{"path":'), ev.ToolDelta("c", None, '"new"}'))
WRITING = pytest.mark.parametrize("written", [NAMED_FIRST, NAMED_ALONG], ids=["name first", "name along"])


@WRITING
@pytest.mark.parametrize(
    "before",
    [
        (ev.ToolDelta("c", "write", '{"pa'), ev.RunResumed(2)),
        (ev.MessageSeeded(RunId("r0"), (Tool("c", "write", '{"pa', "not_run"),)), STARTED),
        (ev.MessageSeeded(RunId("r0"), (Tool("c", "write", {"path": "old"}, "not_run"),)), STARTED),
    ],
    ids=["resumed", "seeded with half a call", "seeded with a whole call"],
)
def test_arguments_written_again_are_not_glued_to_the_earlier_ones(
    before: tuple[ev.Event, ...], written: tuple[ev.Event, ...]
) -> None:
    """C3: a call that the model writes anew under the same id shows the new arguments and is pending again."""
    assert parts(*before, *written)[-1] == Tool("c", "write", '{"path":"new"}', "pending")


UNKNOWN = Tool("c", "rm", {"path": "x"}, "unknown")
MAY_HAVE_RUN: dict[str, tuple[ev.Event, ...]] = {
    "resumed": (ev.ToolStarted("c", "rm", {"path": "x"}), ev.RunResumed(2)),
    "seeded": (ev.MessageSeeded(RunId("r0"), (UNKNOWN,)), STARTED),
}


@WRITING
@pytest.mark.parametrize("before", MAY_HAVE_RUN.values(), ids=MAY_HAVE_RUN)
def test_a_new_call_written_under_its_id_leaves_one_that_may_have_run_alone(
    before: tuple[ev.Event, ...], written: tuple[ev.Event, ...]
) -> None:
    """C3: a provider that counts its calls from zero again does not wipe out what may have had an effect."""
    assert parts(*before, *written) == (UNKNOWN, Tool("c", "write", '{"path":"new"}', "pending"))


@pytest.mark.parametrize(
    ("other", "state"),
    [
        (ev.ToolStarted("c", "ls", {"path": "x"}), "running"),
        (ev.ToolStarted("c", "rm", {"path": "y"}), "running"),
        (ev.ApprovalRequested(ApprovalId("apr_1"), "c", "rm", {"path": "y"}), "waiting"),
    ],
    ids=["another tool", "other arguments", "a question about other arguments"],
)
@pytest.mark.parametrize("before", MAY_HAVE_RUN.values(), ids=MAY_HAVE_RUN)
def test_a_different_call_under_its_id_leaves_one_that_may_have_run_alone(
    before: tuple[ev.Event, ...], other: ev.ToolStarted | ev.ApprovalRequested, state: ToolState
) -> None:
    """C3: only the same tool with the same arguments is the earlier call taken up again."""
    assert parts(*before, other) == (UNKNOWN, Tool("c", other.name, other.args, state))


ALLOWED = (ASKED, ev.RunResumed(3), ev.ApprovalResolved(ApprovalId("apr_1"), "once"))


@pytest.mark.parametrize(
    "asked",
    [(ASKED,), (ASKED, ev.RunResumed(3)), ALLOWED, (*ALLOWED, ev.RunResumed(4))],
    ids=["asked", "asked and resumed", "allowed", "allowed and resumed"],
)
@pytest.mark.parametrize("before", MAY_HAVE_RUN.values(), ids=MAY_HAVE_RUN)
def test_a_tool_that_may_have_run_never_ends_as_not_run(
    before: tuple[ev.Event, ...], asked: tuple[ev.Event, ...]
) -> None:
    """X5: asking whether to repeat a call does not undo its first start; else the next continue would not ask."""
    assert the_tool(folded(*before, *asked, CANCELLED)).state == "unknown"


# ---- tools ----


def test_arguments_grow_until_they_are_complete() -> None:
    """C3: while the model writes a call its arguments are text; the started tool has them parsed."""
    written: list[ev.Event] = [
        ev.ToolDelta("c", "ls"),
        ev.ToolDelta("c", None, '{"path"'),
        ev.ToolDelta("c", None, ': "."}'),
    ]
    assert parts(*written[:1]) == (Tool("c", "ls", "", "pending"),)
    assert parts(*written) == (Tool("c", "ls", '{"path": "."}', "pending"),)
    assert parts(*written, ev.ToolStarted("c", "ls", {"path": "."}, {"sig": 1})) == (
        Tool("c", "ls", {"path": "."}, "running", provider={"sig": 1}),
    )


def test_opaque_data_of_a_call_outlives_a_question_and_a_second_start() -> None:
    """X5: what the provider wants back with a call is kept when the call is asked about and started again."""
    first = ev.ToolStarted("c", "rm", {"path": "x"}, {"sig": 1})
    again = (ASKED, ev.RunResumed(3), ev.ApprovalResolved(ApprovalId("apr_1"), "once"))
    second = ev.ToolStarted("c", "rm", {"path": "x"})
    assert parts(first, ev.RunResumed(2), *again, second) == (
        Tool("c", "rm", {"path": "x"}, "running", provider={"sig": 1}),
    )


def test_a_name_may_come_late_or_be_corrected() -> None:
    """C3: the newest name that a delta or the start gives is the call's name."""
    assert parts(ev.ToolDelta("c", args_delta="{"), ev.ToolDelta("c", "ls", "}")) == (Tool("c", "ls", "{}", "pending"),)
    assert parts(ev.ToolDelta("c", "l"), ev.ToolStarted("c", "ls", {})) == (Tool("c", "ls", {}, "running"),)


def test_output_is_kept_beside_the_result() -> None:
    """C8: what a running tool printed was shown, so it stays when the result is there."""
    told: list[ev.Event] = [
        ev.ToolStarted("c", "make", {}),
        ev.ToolDelta("c", output_delta="cc a.c\n"),
        ev.ToolDelta("c", output_delta="cc b.c\n"),
    ]
    assert parts(*told) == (Tool("c", "make", {}, "running", output="cc a.c\ncc b.c\n"),)
    assert parts(*told, ev.ToolFinished("c", {"exit": 0}, duration_ms=9)) == (
        Tool("c", "make", {}, "done", {"exit": 0}, output="cc a.c\ncc b.c\n", duration_ms=9),
    )


def test_calls_side_by_side_do_not_mix() -> None:
    """C3: deltas, output and results of several calls reach their own, which stay in the order they began."""
    assert parts(
        ev.ToolDelta("a", "ls", "{"),
        ev.ToolDelta("b", "cat", "{"),
        ev.ToolDelta("a", None, "}"),
        ev.ToolStarted("b", "cat", {"n": 2}),
        ev.ToolStarted("a", "ls", {"n": 1}),
        ev.ToolDelta("a", output_delta="A"),
        ev.ToolDelta("b", output_delta="B"),
        ev.TextDelta("meanwhile"),
        ev.ToolDelta("a", output_delta="a"),
        ev.ToolFinished("b", "two"),
        ev.ToolFinished("a", "one"),
    ) == (
        Tool("a", "ls", {"n": 1}, "done", "one", output="Aa"),
        Tool("b", "cat", {"n": 2}, "done", "two", output="B"),
        Text("meanwhile"),
    )


@pytest.mark.parametrize(
    "again",
    [
        (ev.ToolDelta("c", "ls", '{"n":2}'), ev.ToolStarted("c", "ls", {"n": 2})),
        (ev.ToolStarted("c", "ls", {"n": 2}),),
    ],
    ids=["written", "started at once"],
)
def test_a_call_id_used_again_is_another_call(again: tuple[ev.Event, ...]) -> None:
    """C3: an id that a provider uses again in a later step begins a new part; the finished one is untouched."""
    first = (ev.ToolStarted("c", "ls", {"n": 1}), ev.ToolFinished("c", "one"), ev.StepStarted(1))
    assert parts(*first, *again, ev.ToolDelta("c", output_delta="x"), ev.ToolFinished("c", "two")) == (
        Tool("c", "ls", {"n": 1}, "done", "one"),
        Tool("c", "ls", {"n": 2}, "done", "two", output="x"),
    )


def test_a_denied_call_id_used_again_is_another_call() -> None:
    """C3: the model may ask for the same thing again; what was denied stays denied."""
    assert parts(*TOLD["denied"], ev.ToolStarted("c", "ls", {})) == (
        Tool("c", "rm", {"path": "x"}, "denied"),
        Tool("c", "ls", {}, "running"),
    )


# ---- approvals ----


def test_an_asked_tool_waits_and_the_question_is_open() -> None:
    """A question is part of the transcript, with complete arguments, until it is answered."""
    transcript = folded(ev.ToolDelta("c", "rm", '{"path": "x"}'), ASKED)
    assert transcript.parts == (Tool("c", "rm", {"path": "x"}, "waiting"),)
    assert transcript.approval == ASKED


@pytest.mark.parametrize(
    ("decision", "state"),
    [("once", "pending"), ("session", "pending"), ("always", "pending"), ("deny", "denied")],
)
def test_the_answer_frees_or_denies_the_tool(decision: ev.Decision, state: ToolState) -> None:
    """X5: allowed, the tool is about to run; denied, it never does; and the question is closed."""
    transcript = folded(ASKED, ev.RunResumed(2), ev.ApprovalResolved(ApprovalId("apr_1"), decision))
    assert transcript.parts == (Tool("c", "rm", {"path": "x"}, state),)
    assert transcript.approval is None


def test_an_allowed_tool_runs_in_its_place() -> None:
    """X5: after the answer the call goes on as the same part."""
    allowed = (ASKED, ev.RunResumed(2), ev.ApprovalResolved(ApprovalId("apr_1"), "once"))
    assert parts(*allowed, ev.ToolStarted("c", "rm", {"path": "x"}), ev.ToolFinished("c", None)) == (
        Tool("c", "rm", {"path": "x"}, "done"),
    )


def test_the_answer_to_another_question_changes_nothing() -> None:
    """An answer counts for the question whose id it names and for no other."""
    asked = folded(ASKED)
    stray = fold([ev.entry(2, ev.ApprovalResolved(ApprovalId("apr_9"), "deny"))], asked)
    assert (stray.parts, stray.approval) == (asked.parts, ASKED)
    assert parts(ev.ApprovalResolved(ApprovalId("apr_9"), "deny")) == ()


def test_the_end_closes_the_question() -> None:
    """A run that ended asks nothing any more, and what it asked for did not run."""
    transcript = folded(ASKED, CANCELLED)
    assert transcript.approval is None
    assert the_tool(transcript).state == "not_run"


# ---- reasoning, memory, usage ----


def test_opaque_reasoning_data_is_kept_with_its_reasoning() -> None:
    """X5: the provider's signature ends up on the reasoning it belongs to, also if it comes alone."""
    signature = {"signature": "abc"}
    assert parts(ev.ReasoningDelta("Let "), ev.ReasoningDelta("me"), ev.ReasoningDelta("", signature)) == (
        Reasoning("Let me", signature),
    )
    assert parts(ev.ReasoningDelta("", signature)) == (Reasoning("", signature),)
    assert parts(ev.TextDelta("a"), ev.ReasoningDelta("b", signature), ev.TextDelta("c")) == (
        Text("a"),
        Reasoning("b", signature),
        Text("c"),
    )


def test_opaque_data_of_one_reasoning_block_is_not_overwritten_by_the_next() -> None:
    """X5: two blocks in a row each keep the data without which the provider refuses to go on."""
    one, two = {"signature": "1"}, {"signature": "2"}
    assert parts(ev.ReasoningDelta("a", one), ev.ReasoningDelta("b", two)) == (
        Reasoning("a", one),
        Reasoning("b", two),
    )


def test_recalled_memory_is_a_part_but_no_output() -> None:
    """E4: what was remembered for the model is shown and does not count as an answer."""
    items = ({"text": "likes tea", "source": "ses_0"},)
    remembered = parts(STARTED, ev.MemoryRecalled(items))
    assert remembered == (Remembered(items),)
    assert not has_output(remembered)
    assert not has_output(())


@pytest.mark.parametrize("part", [Text("a"), Reasoning("a"), Tool("c", "ls", {}, "not_run")])
def test_whatever_the_model_did_is_output(part: Part) -> None:
    """E4: text, reasoning and tool calls each count as output."""
    assert has_output((Remembered(()), part))


@pytest.mark.parametrize(
    ("counted", "total"),
    [
        ([], None),
        ([ev.Usage(1, 2)], ev.Usage(1, 2)),
        ([ev.Usage(1, 2, 0.5)], ev.Usage(1, 2, 0.5)),
        ([ev.Usage(1, 2), ev.Usage(10, 20), ev.Usage(100, 200)], ev.Usage(111, 222)),
        ([ev.Usage(1, 2, 0.25), ev.Usage(10, 20, 0.5)], ev.Usage(11, 22, 0.75)),
        ([ev.Usage(1, 2), ev.Usage(10, 20, 0.5)], ev.Usage(11, 22, 0.5)),
        ([ev.Usage(1, 2, 0.5), ev.Usage(10, 20)], ev.Usage(11, 22, 0.5)),
        ([ev.Usage(1, 2, 0.0), ev.Usage(1, 2)], ev.Usage(2, 4, 0.0)),
    ],
)
def test_usage_is_summed_over_the_steps(counted: list[ev.Event], total: ev.Usage | None) -> None:
    """Tokens and known costs of all steps add up, over a resume too; no cost is not a cost of zero."""
    assert folded(*counted).usage == total
    assert folded(*counted[:1], ev.RunResumed(2), *counted[1:]).usage == total


def test_events_of_a_later_version_show_nothing() -> None:
    """An unknown event is counted and folds to nothing; it does not split the text around it."""
    transcript = folded(ev.TextDelta("a"), ev.Unknown("plan.drawn", {"x": 1}), ev.TextDelta("b"))
    assert (transcript.parts, transcript.last_seq) == ((Text("ab"),), 3)


def test_fifty_thousand_deltas_are_one_text() -> None:
    """C8: a long answer is folded byte for byte."""
    pieces = [f"t{n} " for n in range(50_000)]
    transcript = folded(*map(ev.TextDelta, pieces))
    assert transcript.parts == (Text("".join(pieces)),)
    assert transcript.last_seq == 50_000


# ---- any prefix, then the rest ----


def assert_every_split_is_the_whole(journal: list[ev.Entry]) -> None:
    whole = fold(journal)
    assert whole.last_seq == len(journal)
    for at in range(len(journal) + 1):
        assert fold(journal[at:], fold(journal[:at])) == whole


@PROPERTY
@given(st.lists(events(terminal=False), max_size=10), st.none() | endings())
def test_any_events_fold_the_same_in_two_halves(told: list[ev.Event], end: ev.RunEnded | None) -> None:
    """X4: a prefix and then the rest is the whole, at every split of any events, plausible or not."""
    assert_every_split_is_the_whole(numbered(told if end is None else [*told, end]))


@PROPERTY
@given(journals())
def test_journals_fold_the_same_in_two_halves_and_one_by_one(journal: list[ev.Entry]) -> None:
    """X4: the live view, grown event by event, is the transcript that a fresh load folds."""
    assert_every_split_is_the_whole(journal)
    grown = EMPTY
    for item in journal:
        grown = fold([item], grown)
    assert grown == fold(journal)


@PROPERTY
@given(journals())
def test_an_open_message_loaded_as_json_goes_on_from_its_last_seq(journal: list[ev.Entry]) -> None:
    """U1: a client that loads the message and subscribes after its last seq ends up with what the journal says."""
    whole = fold(journal).parts
    for at in range(len(journal) + 1):
        shown = fold(journal[:at])
        loaded = replace(shown, parts=all_from_json(json.loads(json.dumps(all_to_json(shown.parts)))))
        assert fold(journal[at:], loaded).parts == whole


def said(part: Part) -> str:
    match part:
        case Text(text) | Reasoning(text):
            return text
        case Tool():
            return part.output
        case _:
            return ""


@PROPERTY
@given(journals())
def test_what_was_shown_stays_in_its_place(journal: list[ev.Entry]) -> None:
    """C8: each later view has every part of an earlier one at the same place, with text and output going on."""
    views = [fold(journal[:at]) for at in range(len(journal) + 1)]
    for earlier, later in pairwise(views):
        assert len(later.parts) >= len(earlier.parts)
        for before, after in zip(earlier.parts, later.parts, strict=False):
            assert type(before) is type(after)
            assert said(after).startswith(said(before))
            if isinstance(before, Tool) and isinstance(after, Tool):
                assert before.call_id == after.call_id


@PROPERTY
@given(journals())
def test_what_was_started_is_never_said_not_to_have_run(journal: list[ev.Entry]) -> None:
    """X5: whatever crashes and questions follow, a tool part that was running or unknown once is never not_run."""
    started: set[int] = set()
    for end in range(len(journal) + 1):
        for place, part in enumerate(fold(journal[:end]).parts):
            if isinstance(part, Tool) and part.state in ("running", "unknown"):
                started.add(place)
            assert not (place in started and isinstance(part, Tool) and part.state == "not_run")


@PROPERTY
@given(journals(ended=True))
def test_an_ended_message_has_no_open_tool(journal: list[ev.Entry]) -> None:
    """C3: once a run has ended, every tool is done, denied, unknown or not run, and no question is open."""
    transcript = fold(journal)
    states = {part.state for part in transcript.parts if isinstance(part, Tool)}
    assert states <= {"done", "denied", "unknown", "not_run"}
    assert transcript.ended
    assert transcript.approval is None


@PROPERTY
@given(journals(ended=False))
def test_an_open_journal_is_streaming(journal: list[ev.Entry]) -> None:
    """X2: without a terminal event a transcript has not ended and gives no reason."""
    transcript = fold(journal)
    assert (transcript.status, transcript.ended) == ("streaming", False)
    assert (transcript.reason, transcript.finish_reason, transcript.error) == (None, None, None)


# ---- times ----


@PROPERTY
@given(st.lists(events(), max_size=8), st.lists(st.none() | st.integers(0, 10**13), min_size=8, max_size=8))
def test_times_change_nothing_but_how_long_was_thought(told: list[ev.Event], times: list[int | None]) -> None:
    """X4: whatever the clock said, the parts are the same but for durations, at every split."""
    until = next((n for n, event in enumerate(told, 1) if isinstance(event, ev.RunEnded)), len(told))
    told = told[:until]
    timed = [ev.entry(seq, event, at) for seq, (event, at) in enumerate(zip(told, times, strict=False), 1)]
    whole = fold(timed)
    for split in range(len(timed) + 1):
        assert fold(timed[split:], fold(timed[:split])) == whole
    plain = [replace(part, duration_ms=None) if isinstance(part, Reasoning) else part for part in whole.parts]
    bare = [
        replace(part, duration_ms=None) if isinstance(part, Reasoning) else part for part in fold(numbered(told)).parts
    ]
    assert plain == bare
