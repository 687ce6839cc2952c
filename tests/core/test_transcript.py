"""The fold of events into a message, over any prefix of the journal."""

import json
import time
from dataclasses import replace
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import events as ev
from holdfast.core.errors import BrokenSequenceError
from holdfast.core.ids import ApprovalId, FileId, MessageId, RunId, SessionId
from holdfast.core.parts import (
    FilePart,
    Part,
    PlanEntry,
    PlanPart,
    ReasoningPart,
    RememberedPart,
    TextPart,
    ToolPart,
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


# ---- what events say ----

FILE = FilePart(FileId("f"), "a.png", "image/png", 7)
LEFT = (ReasoningPart("hm"), ToolPart("c", "ls", {}, "done", "x"), FILE, TextPart("Once up"))
WRITTEN = (ev.ToolDelta("c", "ls"), ev.ToolDelta("c", None, '{"path"'), ev.ToolDelta("c", None, ': "."}'))
PRINTED = (
    ev.ToolStarted("c", "make", {}),
    ev.ToolDelta("c", output_delta="a\n"),
    ev.ToolDelta("c", output_delta="b\n"),
)
USED = (ev.ToolStarted("c", "ls", {"n": 1}), ev.ToolFinished("c", "one"), ev.StepStarted(1))
USED_AGAIN = (
    ToolPart("c", "ls", {"n": 1}, "done", "one"),
    ToolPart("c", "ls", {"n": 2}, "done", "two", output="x", begins_step=True),
)
SIGNED = {"signature": "1"}
FOLDS: dict[str, tuple[tuple[ev.Event, ...], tuple[Part, ...]]] = {
    "X5: text goes on in the part of the seed where it stopped": (
        (ev.MessageSeeded(RunId("r0"), LEFT), STARTED, ev.TextDelta("on a time")),
        (*LEFT[:3], TextPart("Once upon a time")),
    ),
    "X5: an empty seed is nothing": ((ev.MessageSeeded(RunId("r0"), ()), STARTED), ()),
    "X5: text goes on in the same part after a resume": (
        (STARTED, ev.TextDelta("Hello wor"), ev.RunResumed(2), ev.StepStarted(0), ev.TextDelta("ld")),
        (TextPart("Hello world"),),
    ),
    "C3: a call of which only the name has come": (WRITTEN[:1], (ToolPart("c", "ls", "", "pending"),)),
    "C3: arguments are text while the model writes them": (WRITTEN, (ToolPart("c", "ls", '{"path": "."}', "pending"),)),
    "C3: a started tool has its arguments parsed": (
        (*WRITTEN, ev.ToolStarted("c", "ls", {"path": "."}, {"sig": 1})),
        (ToolPart("c", "ls", {"path": "."}, "running", provider={"sig": 1}),),
    ),
    "X5: opaque data of a call outlives a question and a second start": (
        (
            ev.ToolStarted("c", "rm", {"path": "x"}, {"sig": 1}),
            ev.RunResumed(2),
            ASKED,
            ev.RunResumed(3),
            ev.ApprovalResolved(ApprovalId("apr_1"), "once"),
            ev.ToolStarted("c", "rm", {"path": "x"}),
        ),
        (ToolPart("c", "rm", {"path": "x"}, "running", provider={"sig": 1}),),
    ),
    "C3: a name may come late": (
        (ev.ToolDelta("c", args_delta="{"), ev.ToolDelta("c", "ls", "}")),
        (ToolPart("c", "ls", "{}", "pending"),),
    ),
    "C3: the start corrects a name": (
        (ev.ToolDelta("c", "l"), ev.ToolStarted("c", "ls", {})),
        (ToolPart("c", "ls", {}, "running"),),
    ),
    "C8: a running tool's output": (PRINTED, (ToolPart("c", "make", {}, "running", output="a\nb\n"),)),
    "C8: output is kept beside the result": (
        (*PRINTED, ev.ToolFinished("c", {"exit": 0}, duration_ms=9)),
        (ToolPart("c", "make", {}, "done", {"exit": 0}, output="a\nb\n", duration_ms=9),),
    ),
    "C3: calls side by side do not mix and stay in the order they began": (
        (
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
        ),
        (
            ToolPart("a", "ls", {"n": 1}, "done", "one", output="Aa"),
            ToolPart("b", "cat", {"n": 2}, "done", "two", output="B"),
            TextPart("meanwhile"),
        ),
    ),
    "C3: an id written again is another call": (
        (
            *USED,
            ev.ToolDelta("c", "ls", '{"n":2}'),
            ev.ToolStarted("c", "ls", {"n": 2}),
            ev.ToolDelta("c", output_delta="x"),
            ev.ToolFinished("c", "two"),
        ),
        USED_AGAIN,
    ),
    "C3: an id started again is another call": (
        (*USED, ev.ToolStarted("c", "ls", {"n": 2}), ev.ToolDelta("c", output_delta="x"), ev.ToolFinished("c", "two")),
        USED_AGAIN,
    ),
    "C3: what was denied stays denied when its id is used again": (
        (ASKED, ev.ApprovalResolved(ApprovalId("apr_1"), "deny"), ev.ToolStarted("c", "ls", {})),
        (ToolPart("c", "rm", {"path": "x"}, "denied"), ToolPart("c", "ls", {}, "running")),
    ),
    "X5: an allowed tool runs in its place": (
        (
            ASKED,
            ev.RunResumed(2),
            ev.ApprovalResolved(ApprovalId("apr_1"), "once"),
            ev.ToolStarted("c", "rm", {"path": "x"}),
            ev.ToolFinished("c", None),
        ),
        (ToolPart("c", "rm", {"path": "x"}, "done"),),
    ),
    "X5: a signature that comes last belongs to its reasoning": (
        (ev.ReasoningDelta("Let "), ev.ReasoningDelta("me"), ev.ReasoningDelta("", SIGNED)),
        (ReasoningPart("Let me", SIGNED),),
    ),
    "X5: a signature alone": ((ev.ReasoningDelta("", SIGNED),), (ReasoningPart("", SIGNED),)),
    "X5: a signature between texts": (
        (ev.TextDelta("a"), ev.ReasoningDelta("b", SIGNED), ev.TextDelta("c")),
        (TextPart("a"), ReasoningPart("b", SIGNED), TextPart("c")),
    ),
    "X5: two signed blocks in a row stay two": (
        (ev.ReasoningDelta("a", SIGNED), ev.ReasoningDelta("b", {"signature": "2"})),
        (ReasoningPart("a", SIGNED), ReasoningPart("b", {"signature": "2"})),
    ),
    "an unknown event of a later version does not split the text": (
        (ev.TextDelta("a"), ev.UnknownEvent("plan.drawn", {"x": 1}), ev.TextDelta("b")),
        (TextPart("ab"),),
    ),
}


@pytest.mark.parametrize(("events", "expected"), FOLDS.values(), ids=FOLDS)
def test_events_fold_to_parts(events: tuple[ev.Event, ...], expected: tuple[Part, ...]) -> None:
    """C3, C8, X5: what a journal says, part by part (cancelled runs: `tests/engine/test_cancel.py`)."""
    transcript = folded(*events)
    assert (transcript.parts, transcript.last_seq, transcript.status) == (expected, len(events), "streaming")


@pytest.mark.parametrize("empty", [ev.TextDelta(""), ev.ReasoningDelta("")], ids=["text", "reasoning"])
def test_deltas_without_text_are_nothing(empty: ev.Event) -> None:
    """C5: a delta that says nothing, as some providers send first, leaves no part and splits none."""
    assert parts(STARTED, empty, CANCELLED) == ()
    assert parts(ev.TextDelta("a"), empty, ev.TextDelta("b")) == (TextPart("ab"),)
    assert parts(ev.ReasoningDelta("a"), empty, ev.ReasoningDelta("b")) == (ReasoningPart("ab"),)


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


def the_tool(transcript: Transcript) -> ToolPart:
    (part,) = transcript.parts
    assert isinstance(part, ToolPart)
    return part


@pytest.mark.parametrize("state", TOLD)
def test_the_journal_shows_a_tool_in_each_state(state: ToolState) -> None:
    """C3, X5: the events of a call say which state it is in, and one call is one part. The end turns running tools into
    unknown, pending and waiting ones into not_run; a resume does too, but a question that waits goes on waiting."""
    tool = the_tool(folded(*TOLD[state]))
    assert (tool.call_id, tool.name, tool.state) == ("c", "rm", state)
    assert the_tool(folded(*TOLD[state], ev.RunResumed(3))).state == RESUMED[state]
    for status in get_args(ev.Ending):
        ended = folded(*TOLD[state], ev.RunEnded(status))
        assert replace(the_tool(ended), state=tool.state, may_have_run=tool.may_have_run) == tool
        assert (the_tool(ended).state, ended.approval) == (ENDED[state], None)


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
        parts=(TextPart("So"),),
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
    with pytest.raises(BrokenSequenceError):
        fold([*journal, late_entry])
    with pytest.raises(BrokenSequenceError):
        fold([late_entry], fold(journal))


@pytest.mark.parametrize("seqs", [(2,), (0,), (1, 1), (1, 3), (1, 2, 4), (1, 2, 1), (2, 1)])
def test_a_gap_is_refused(seqs: tuple[int, ...]) -> None:
    """L5: events fold only as 1, 2, 3 …, also onto a transcript; a gap, a repeat or a step back raises."""
    entries = [ev.entry(seq, ev.TextDelta("a")) for seq in seqs]
    with pytest.raises(BrokenSequenceError):
        fold(entries)
    with pytest.raises(BrokenSequenceError):
        fold(entries[-1:], fold(entries[:-1]))


# ---- continuing ----


def test_seeded_tools_are_taken_up_in_their_place() -> None:
    """X5: a finished call stays as it is; one whose outcome is unknown is asked about and finishes where it was."""
    left = (ToolPart("a", "ls", {}, "done", "x"), ToolPart("c", "rm", {"path": "x"}, "unknown"), TextPart("and"))
    events: list[ev.Event] = [ev.MessageSeeded(RunId("r0"), left), STARTED, ASKED]
    asked = parts(*events)
    assert (asked[0], asked[2]) == (left[0], left[2])
    assert isinstance(asked[1], ToolPart)
    assert (asked[1].call_id, asked[1].args, asked[1].state) == ("c", {"path": "x"}, "waiting")
    events += [ev.ApprovalResolved(ApprovalId("apr_1"), "once"), ev.ToolStarted("c", "rm", {"path": "x"})]
    assert parts(*events, ev.ToolFinished("c", "gone")) == (
        left[0],
        ToolPart("c", "rm", {"path": "x"}, "done", "gone"),
        left[2],
    )


NAMED_FIRST = (ev.ToolDelta("c", "write"), ev.ToolDelta("c", None, '{"path":'), ev.ToolDelta("c", None, '"new"}'))
NAMED_ALONG = (ev.ToolDelta("c", "write", '{"path":'), ev.ToolDelta("c", None, '"new"}'))
WRITING = pytest.mark.parametrize("written", [NAMED_FIRST, NAMED_ALONG], ids=["name first", "name along"])


@WRITING
@pytest.mark.parametrize(
    "before",
    [
        (ev.ToolDelta("c", "write", '{"pa'), ev.RunResumed(2)),
        (ev.MessageSeeded(RunId("r0"), (ToolPart("c", "write", '{"pa', "not_run"),)), STARTED),
        (ev.MessageSeeded(RunId("r0"), (ToolPart("c", "write", {"path": "old"}, "not_run"),)), STARTED),
    ],
    ids=["resumed", "seeded with half a call", "seeded with a whole call"],
)
def test_arguments_written_again_are_not_glued_to_the_earlier_ones(
    before: tuple[ev.Event, ...], written: tuple[ev.Event, ...]
) -> None:
    """C3: a call that the model writes anew under the same id shows the new arguments and is pending again."""
    assert parts(*before, *written)[-1] == ToolPart("c", "write", '{"path":"new"}', "pending")


UNKNOWN = ToolPart("c", "rm", {"path": "x"}, "unknown")
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
    assert parts(*before, *written) == (UNKNOWN, ToolPart("c", "write", '{"path":"new"}', "pending"))


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
    assert parts(*before, other) == (UNKNOWN, ToolPart("c", other.name, other.args, state))


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


# ---- approvals ----


@pytest.mark.parametrize(
    ("decision", "state"), [("once", "pending"), ("session", "pending"), ("always", "pending"), ("deny", "denied")]
)
def test_the_answer_frees_or_denies_the_tool(decision: ev.Decision, state: ToolState) -> None:
    """X5: allowed, the tool is about to run; denied, it never does; and the question is closed."""
    transcript = folded(ASKED, ev.RunResumed(2), ev.ApprovalResolved(ApprovalId("apr_1"), decision))
    assert transcript.parts == (ToolPart("c", "rm", {"path": "x"}, state),)
    assert transcript.approval is None


def test_a_question_is_open_until_it_is_answered() -> None:
    """A question is part of the transcript, with complete arguments; only an answer that names its id counts."""
    asked = folded(ev.ToolDelta("c", "rm", '{"path": "x"}'), ASKED)
    assert (asked.parts, asked.approval) == ((ToolPart("c", "rm", {"path": "x"}, "waiting"),), ASKED)
    stray = fold([ev.entry(3, ev.ApprovalResolved(ApprovalId("apr_9"), "deny"))], asked)
    assert (stray.parts, stray.approval) == (asked.parts, ASKED)
    assert parts(ev.ApprovalResolved(ApprovalId("apr_9"), "deny")) == ()


# ---- reasoning, memory, usage ----


def test_recalled_memory_is_a_part_but_no_output() -> None:
    """E4: what was remembered for the model is shown and does not count as an answer."""
    items = ({"text": "likes tea", "source": "ses_0"},)
    remembered = parts(STARTED, ev.MemoryRecalled(items))
    assert remembered == (RememberedPart(items),)
    assert not has_output(remembered)
    assert not has_output(())


@pytest.mark.parametrize(("decided", "state"), [(None, "unknown"), ("deny", "denied"), ("once", "unknown")])
def test_a_started_tool_that_is_asked_about_may_have_run(decided: ev.Decision | None, state: str) -> None:
    """X5: an agent asks about a tool that it announced as started, and the run ends: unless it was denied, nobody knows
    whether it ran."""
    told: list[ev.Event] = [
        STARTED,
        ev.ToolStarted("c", "rm", {}),
        ev.ApprovalRequested(ApprovalId("a"), "c", "rm", {}),
    ]
    told += [] if decided is None else [ev.ApprovalResolved(ApprovalId("a"), decided)]
    (tool,) = parts(*told, ev.RunEnded("interrupted"))
    assert isinstance(tool, ToolPart)
    assert (tool.state, tool.may_have_run) == (state, False)


def test_a_plan_is_updated_where_it_is() -> None:
    """C2: a plan is one part, and what follows it is another; a later plan replaces it in place, also one that an
    earlier run left."""
    first, second = PlanPart((PlanEntry("read", "pending"),)), PlanPart((PlanEntry("read", "completed"),))
    told = (ev.TextDelta("a"), ev.PlanUpdated(first.entries), ev.TextDelta("b"), ev.PlanUpdated(second.entries))
    assert parts(STARTED, *told, ev.TextDelta("c")) == (TextPart("a"), second, TextPart("bc"))
    seeded = ev.MessageSeeded(RunId("run_0"), (first, TextPart("a")))
    assert parts(seeded, STARTED, ev.PlanUpdated(second.entries)) == (second, TextPart("a"))


def test_many_updates_of_a_plan_before_many_parts_take_linear_time() -> None:
    """The plan is found once, not searched for at each update, which would take minutes here."""
    plans = [PlanPart((PlanEntry(str(number), "pending"),)) for number in range(20_000)]
    told = [
        event for plan in plans for event in (ev.PlanUpdated(plan.entries), ev.TextDelta("a"), ev.ReasoningDelta("b"))
    ]
    found = parts(STARTED, *told)
    assert (len(found), found[0]) == (1 + 2 * len(plans), plans[-1])


@pytest.mark.parametrize("part", [TextPart("a"), ReasoningPart("a"), PlanPart(()), ToolPart("c", "ls", {}, "not_run")])
def test_whatever_the_model_did_is_output(part: Part) -> None:
    """E4: text, reasoning, plans and tool calls each count as output."""
    assert has_output((RememberedPart(()), part))


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


def test_fifty_thousand_deltas_are_one_text() -> None:
    """C8: a long answer is folded byte for byte."""
    pieces = [f"t{n} " for n in range(50_000)]
    transcript = folded(*map(ev.TextDelta, pieces))
    assert transcript.parts == (TextPart("".join(pieces)),)
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
        case TextPart(text) | ReasoningPart(text):
            return text
        case ToolPart():
            return part.output
        case _:
            return ""


@PROPERTY
@given(journals())
def test_what_was_shown_stays_in_its_place(journal: list[ev.Entry]) -> None:
    """C8, X5: each later view has every part of an earlier one at the same place, with text and output going on, and a
    tool that was running or unknown once is never said not to have run."""
    views = [fold(journal[:at]) for at in range(len(journal) + 1)]
    started: set[int] = set()
    for earlier, later in pairwise(views):
        assert len(later.parts) >= len(earlier.parts)
        for place, (before, after) in enumerate(zip(earlier.parts, later.parts, strict=False)):
            assert type(before) is type(after)
            assert said(after).startswith(said(before))
            if isinstance(before, ToolPart) and isinstance(after, ToolPart):
                assert before.call_id == after.call_id
                if before.state in ("running", "unknown"):
                    started.add(place)
                assert not (place in started and after.state == "not_run")


@PROPERTY
@given(journals())
def test_an_ended_message_has_no_open_tool(journal: list[ev.Entry]) -> None:
    """C3, X2: once a run has ended, every tool is done, denied, unknown or not run, and no question is open; without a
    terminal event a transcript has not ended and gives no reason."""
    transcript = fold(journal)
    assert transcript.ended is journal[-1].ends
    if transcript.ended:
        states = {part.state for part in transcript.parts if isinstance(part, ToolPart)}
        assert states <= {"done", "denied", "unknown", "not_run"}
        assert transcript.approval is None
    else:
        assert transcript.status == "streaming"
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
    plain = [replace(part, duration_ms=None) if isinstance(part, ReasoningPart) else part for part in whole.parts]
    bare = [
        replace(part, duration_ms=None) if isinstance(part, ReasoningPart) else part
        for part in fold(numbered(told)).parts
    ]
    assert plain == bare


@pytest.mark.parametrize("in_steps", [False, True], ids=["at once", "step by step"])
def test_an_answer_of_many_calls_is_folded_in_time(in_steps: bool) -> None:
    """30,000 calls take a small part of the five seconds that settling has; a search per call would take minutes."""
    said: list[ev.Event] = []
    for n in range(30_000):
        said += [ev.StepStarted(n)] if in_steps else []
        said += [ev.ToolStarted(f"c{n}", "ls", {}), ev.ToolFinished(f"c{n}", "x")]
    said += [] if in_steps else [ev.ToolFinished(f"c{n}", "y") for n in range(30_000)]
    journal = list(numbered(said))
    began = time.process_time()
    found = fold(journal)
    assert time.process_time() - began < 5
    assert [part.result for part in found.parts if isinstance(part, ToolPart)] == ["x" if in_steps else "y"] * 30_000
