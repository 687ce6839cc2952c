"""Events and their encoding."""

import json
from typing import NoReturn, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.core import events as ev
from holdfast.core.ids import ApprovalId, MessageId, RunId, SessionId
from holdfast.core.parts import Json, PlanEntry, TextPart
from holdfast.core.transcript import Transcript, fold
from tests.core.values import PROPERTY
from tests.strategies import ODD, events, events_by_type, numbered, texts, unknown_types

STARTED = ev.RunStarted(RunId("r"), SessionId("s"), MessageId("m"), MessageId("u"), "gpt", "chat")

# DESIGN §6, one line a type (and one for each of its optional forms).
WIRE: list[tuple[ev.Event, str, dict[str, Json]]] = [
    (
        STARTED,
        "run.started",
        {"run_id": "r", "session_id": "s", "message_id": "m", "user_message_id": "u", "model": "gpt", "agent": "chat"},
    ),
    (ev.RunResumed(3), "run.resumed", {"epoch": 3}),
    (
        ev.MessageSeeded(RunId("r"), (TextPart("a"),)),
        "message.seeded",
        {"from_run": "r", "parts": [{"type": "text", "text": "a"}]},
    ),
    (ev.StepStarted(0), "step.started", {"index": 0}),
    (ev.StepStarted(0, "m"), "step.started", {"index": 0, "model": "m"}),
    (
        ev.StepRetrying(2, 4, 500, "Busy."),
        "step.retrying",
        {"attempt": 2, "attempts": 4, "delay_ms": 500, "message": "Busy."},
    ),
    (ev.TextDelta("a"), "text.delta", {"text": "a"}),
    (ev.ReasoningDelta("a"), "reasoning.delta", {"text": "a"}),
    (ev.ReasoningDelta("", {"sig": 1}), "reasoning.delta", {"text": "", "provider": {"sig": 1}}),
    (ev.ToolDelta("c", "ls", "{"), "tool.delta", {"call_id": "c", "name": "ls", "args_delta": "{"}),
    (ev.ToolDelta("c", args_delta=""), "tool.delta", {"call_id": "c", "args_delta": ""}),
    (ev.ToolDelta("c", output_delta="x"), "tool.delta", {"call_id": "c", "output_delta": "x"}),
    (ev.ToolStarted("c", "ls", None), "tool.started", {"call_id": "c", "name": "ls", "args": None}),
    (
        ev.ToolStarted("c", "ls", {"a": 1}, {"sig": 1}),
        "tool.started",
        {"call_id": "c", "name": "ls", "args": {"a": 1}, "provider": {"sig": 1}},
    ),
    (
        ev.ToolFinished("c", None),
        "tool.finished",
        {"call_id": "c", "result": None, "is_error": False, "duration_ms": None},
    ),
    (
        ev.ToolFinished("c", [1], True, 5),
        "tool.finished",
        {"call_id": "c", "result": [1], "is_error": True, "duration_ms": 5},
    ),
    (
        ev.ApprovalRequested(ApprovalId("a"), "c", "rm", {"f": 1}, "It deletes."),
        "approval.requested",
        {"approval_id": "a", "call_id": "c", "name": "rm", "args": {"f": 1}, "reason": "It deletes."},
    ),
    (
        ev.ApprovalRequested(ApprovalId("a"), "c", "rm", {}, "", {"signed": "x"}),
        "approval.requested",
        {"approval_id": "a", "call_id": "c", "name": "rm", "args": {}, "reason": "", "provider": {"signed": "x"}},
    ),
    (ev.ApprovalResolved(ApprovalId("a"), "once"), "approval.resolved", {"approval_id": "a", "decision": "once"}),
    (
        ev.InputRequested(ApprovalId("a"), "c", "harbour", "form", "Who?", {"type": "object"}, 600.0),
        "input.requested",
        {
            "request_id": "a",
            "call_id": "c",
            "server": "harbour",
            "kind": "form",
            "message": "Who?",
            "schema": {"type": "object"},
            "expires_in": 600.0,
        },
    ),
    (ev.InputResolved(ApprovalId("a"), "accept"), "input.resolved", {"request_id": "a", "action": "accept"}),
    (ev.MemoryRecalled(({"text": "t", "source": "s"},)), "memory.recalled", {"items": [{"text": "t", "source": "s"}]}),
    (ev.MessageSteered(MessageId("m"), "t"), "message.steered", {"id": "m", "text": "t"}),
    (
        ev.PlanUpdated((PlanEntry("read", "completed", "high"), PlanEntry("write", "pending"))),
        "plan.updated",
        {
            "entries": [
                {"content": "read", "status": "completed", "priority": "high"},
                {"content": "write", "status": "pending"},
            ]
        },
    ),
    (ev.Usage(1, 2), "usage", {"input_tokens": 1, "output_tokens": 2}),
    (ev.Usage(1, 2, 0.0), "usage", {"input_tokens": 1, "output_tokens": 2, "cost": 0.0}),
    (ev.RunEnded("complete", finish_reason="stop"), "run.complete", {"finish_reason": "stop"}),
    (ev.RunEnded("cancelled", reason="user"), "run.cancelled", {"reason": "user"}),
    (
        ev.RunEnded("failed", error=ev.Failure("provider", "Try again.")),
        "run.failed",
        {"error": {"code": "provider", "message": "Try again."}},
    ),
    (ev.RunEnded("interrupted"), "run.interrupted", {}),
    (ev.UnknownEvent("plan.drawn", {"x": 1}), "plan.drawn", {"x": 1}),
]

BY_TYPE = events_by_type()


def refuse_constant(name: str) -> NoReturn:
    raise AssertionError(f"{name} is not JSON")


def body(entry: ev.Entry) -> Json:
    """The frame's data as a strict parser reads it."""
    line = entry.frame.split(b"\n")[2].removeprefix(b"data: ")
    return json.loads(line.decode("utf-8", "strict"), parse_constant=refuse_constant)


# ---- encoding ----


@pytest.mark.parametrize(("event", "name", "data"), WIRE)
def test_events_are_written_as_documented(event: ev.Event, name: str, data: dict[str, Json]) -> None:
    """Type and data of each event are those of DESIGN §6, and reading them gives the event."""
    assert ev.encode(event) == (name, data)
    assert ev.decode(name, data) == event
    written = ev.entry(7, event)
    assert (written.type, body(written)) == (name, data)


def test_the_strategies_and_the_wire_table_cover_the_union() -> None:
    """A new member of the union is generated and documented, or this fails."""
    union = set(get_args(ev.Event))
    assert set(BY_TYPE) == union
    assert {type(event) for event, _, _ in WIRE} == union


@pytest.mark.parametrize("kind", BY_TYPE, ids=lambda kind: kind.__name__)
@settings(PROPERTY, max_examples=15)
@given(st.data())
def test_an_event_survives_its_frame(kind: type[ev.Event], data: st.DataObject) -> None:
    """Every event of every type comes back from its frame as it was, odd characters included."""
    event = data.draw(BY_TYPE[kind])
    assert ev.entry(1, event).event() == event


@PROPERTY
@given(st.integers(1, 10**12), events(texts(lone_surrogates=True)))
@example(1, ev.TextDelta("a\nb\r\nc\rd\n\n\0"))
@example(2, ev.TextDelta("\ud83d"))
@example(3, ev.ReasoningDelta("\n\ndata: {}\n\nid: 9\n"))
@example(4, ev.ToolDelta("call_0", "\u2028\u2029\x85", "event: x"))
def test_a_frame_is_three_single_lines(seq: int, event: ev.Event) -> None:
    """L5: a frame is `id`, `event`, `data` and an empty line in valid UTF-8, whatever the text holds."""
    frame = ev.entry(seq, event).frame
    name = ev.encode(event)[0]
    head = f"id: {seq}\nevent: {name}\ndata: ".encode()
    assert frame.startswith(head)
    assert frame.endswith(b"\n\n")
    data = frame[len(head) : -2]
    assert b"\n" not in data
    assert b"\r" not in data
    json.loads(data.decode("utf-8", "strict"))


def test_a_frame_to_the_byte() -> None:
    """L5: the frame of a text delta is exactly these bytes."""
    frame = ev.entry(12, ev.TextDelta('"é\n\u2028\0😀')).frame
    assert frame == 'id: 12\nevent: text.delta\ndata: {"text":"\\"é\\n\u2028\\u0000😀"}\n\n'.encode()


@PROPERTY
@given(texts(lone_surrogates=True))
def test_lone_surrogates_become_question_marks(text: str) -> None:
    """C8: UTF-8 cannot carry half a pair; everything else of the text is kept as it was."""
    kept = "".join("?" if "\ud800" <= character <= "\udfff" else character for character in text)
    assert ev.entry(1, ev.TextDelta(text)).event() == ev.TextDelta(kept)
    assert ev.entry(1, ev.ReasoningDelta(text)).event() == ev.ReasoningDelta(kept)


@pytest.mark.parametrize("character", ODD)
def test_odd_characters_are_kept(character: str) -> None:
    """C8: characters that parsers trip over come back unchanged, from text and from a tool's arguments."""
    text = f"a{character}b"
    assert ev.entry(1, ev.TextDelta(text)).event() == ev.TextDelta(text)
    started = ev.ToolStarted("c", text, {text: [text]})
    assert ev.entry(1, started).event() == started


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN"])
def test_numbers_that_json_cannot_write_become_null(number: str) -> None:
    """L5: arguments a model wrote as `1e999`, which Python reads as infinity, still make a frame browsers can parse."""
    args = json.loads(f'{{"n": {number}, "deep": [{{"n": {number}}}], "kept": 1.5}}')
    clean = {"n": None, "deep": [{"n": None}], "kept": 1.5}
    started, finished = ev.entry(1, ev.ToolStarted("c", "sleep", args)), ev.entry(2, ev.ToolFinished("c", args))
    assert (body(started)["args"], body(finished)["result"]) == (clean, clean)
    assert started.event() == ev.ToolStarted("c", "sleep", clean)


@pytest.mark.parametrize("result", [{1, 2}, b"bytes", object(), {("a", "b"): 1}], ids=lambda it: type(it).__name__)
def test_what_is_no_json_is_refused(result: Json) -> None:
    """E1: a tool's result that JSON cannot express raises where it is encoded and is not written half."""
    with pytest.raises(TypeError):
        ev.entry(1, ev.ToolFinished("c", result))


@PROPERTY
@given(st.integers(1, 10**12), texts(lone_surrogates=True))
def test_the_short_way_for_text_writes_the_same_frame(seq: int, text: str) -> None:
    """C8: text takes a way of its own to the same bytes that any JSON encoder would write."""
    data = json.dumps({"text": text}, ensure_ascii=False, separators=(",", ":"))
    assert ev.text_entry(seq, text) == ev.entry(seq, ev.TextDelta(text))
    assert ev.text_entry(seq, text).frame == f"id: {seq}\nevent: text.delta\ndata: {data}\n\n".encode(errors="replace")


@PROPERTY
@given(st.integers(1, 10**12), events(texts()), st.integers(0, 10**13))
@example(1, ev.TextDelta('","at":1}'), 7)
@example(1, ev.UnknownEvent("plan.drawn", {"at": 1}), 7)
def test_a_time_is_one_more_field_and_changes_nothing_else(seq: int, event: ev.Event, at: int) -> None:
    """L5: an event that is told its time is the same event with `at` in its data, by the short way too."""
    timed = ev.entry(seq, event, at)
    assert body(timed) == {**body(ev.entry(seq, event)), "at": at}
    quoted = ev.quoted_text(timed.frame)
    assert (quoted is None) == (not isinstance(event, ev.TextDelta))
    if quoted is not None:
        assert ev.TextDelta(ev.unquoted([quoted])) == event
    if not isinstance(event, ev.UnknownEvent):
        assert timed.event() == event


# ---- entries ----


@PROPERTY
@given(events())
def test_an_entry_knows_its_type_and_whether_it_ends(event: ev.Event) -> None:
    """The type is read from the frame, and the four endings alone are terminal."""
    written = ev.entry(5, event)
    assert written.seq == 5
    assert written.type == ev.encode(event)[0]
    assert written.ends is isinstance(event, ev.RunEnded)


def test_text_that_looks_like_a_frame_does_not_fool_an_entry() -> None:
    """A delta that quotes another frame is still the delta it is."""
    written = ev.entry(1, ev.TextDelta("event: run.complete\ndata: {}\n\n"))
    assert written.type == "text.delta"
    assert not written.ends
    assert ev.quoted_text(ev.entry(1, ev.ReasoningDelta('event: text.delta\ndata: {"text":"')).frame) is None


@given(st.lists(texts(), max_size=5))
def test_texts_read_together_are_the_texts_read_one_by_one(said: list[str]) -> None:
    """Neighboring deltas are decoded at once, and say what each of them says."""
    frames = [ev.entry(seq, ev.TextDelta(text)).frame for seq, text in enumerate(said, 1)]
    assert ev.unquoted([ev.quoted_text(frame) or b"" for frame in frames]) == "".join(said)


def test_halves_of_a_character_in_two_deltas_stay_apart() -> None:
    """A frame that escapes half of a character reads the same alone and among its neighbors."""
    halves = [rb"a\ud83d", rb"\ude00b"]
    assert ev.unquoted(halves) == "".join(ev.unquoted([half]) for half in halves)


@pytest.mark.parametrize("data", ['{"text":"a","added":1}', '{"added":"x","text":"a"}', '{ "text" : "\\u0061" }'])
def test_text_that_another_version_wrote_is_read_as_text(data: str) -> None:
    """C8: a text delta with further fields, other spacing or escapes folds to the same text."""
    foreign = ev.Entry(1, f"id: 1\nevent: text.delta\ndata: {data}\n\n".encode())
    assert foreign.event() == ev.TextDelta("a")
    assert fold([foreign]).parts == (TextPart("a"),)


# ---- what other versions wrote ----


@PROPERTY
@given(unknown_types(), st.dictionaries(texts(), texts(), max_size=2))
def test_an_unknown_type_is_kept_as_it_is(name: str, data: dict[str, str]) -> None:
    """An event of a later version is read as Unknown with its type and data, and written again the same."""
    found = ev.decode(name, data)
    assert found == ev.UnknownEvent(name, data)
    assert ev.encode(found) == (name, data)


@pytest.mark.parametrize(("event", "name", "data"), [row for row in WIRE if row[1] != "plan.drawn"])
def test_unknown_fields_are_ignored(event: ev.Event, name: str, data: dict[str, Json]) -> None:
    """A field that a later version added changes nothing for this one."""
    assert ev.decode(name, {**data, "added_later": {"x": 1}}) == event


@pytest.mark.parametrize(
    ("name", "data", "event"),
    [
        ("tool.finished", {"call_id": "c", "result": 1}, ev.ToolFinished("c", 1)),
        (
            "approval.requested",
            {"approval_id": "a", "call_id": "c", "name": "n", "args": None},
            ev.ApprovalRequested(ApprovalId("a"), "c", "n", None),
        ),
        ("tool.delta", {"call_id": "c"}, ev.ToolDelta("c")),
        ("run.failed", {"error": None}, ev.RunEnded("failed")),
    ],
)
def test_optional_fields_may_be_absent(name: str, data: dict[str, Json], event: ev.Event) -> None:
    """What is left out is read as its default."""
    assert ev.decode(name, data) == event


# ---- merge ----

P: Json = {"signature": "s"}

MERGED: list[tuple[ev.Event, ev.Event, ev.Event]] = [
    (ev.TextDelta("a"), ev.TextDelta("b"), ev.TextDelta("ab")),
    (ev.ReasoningDelta("a"), ev.ReasoningDelta("b"), ev.ReasoningDelta("ab")),
    (ev.ReasoningDelta("a"), ev.ReasoningDelta("b", P), ev.ReasoningDelta("ab", P)),
    (ev.ToolDelta("c", "ls", "a"), ev.ToolDelta("c", None, "b"), ev.ToolDelta("c", "ls", "ab")),
    (ev.ToolDelta("c", None, "a"), ev.ToolDelta("c", None, "b"), ev.ToolDelta("c", None, "ab")),
    (ev.ToolDelta("c", output_delta="a"), ev.ToolDelta("c", output_delta="b"), ev.ToolDelta("c", output_delta="ab")),
]

NOT_MERGED: list[tuple[ev.Event, ev.Event]] = [
    (ev.TextDelta("a"), ev.ReasoningDelta("b")),
    (ev.ReasoningDelta("a"), ev.TextDelta("b")),
    (ev.ReasoningDelta("a", P), ev.ReasoningDelta("b", {"signature": "t"})),
    (ev.ToolDelta("c", "ls", "a"), ev.ToolDelta("d", None, "b")),
    (ev.ToolDelta("c", output_delta="a"), ev.ToolDelta("d", output_delta="b")),
    (ev.ToolDelta("c", None, "a"), ev.ToolDelta("c", output_delta="b")),
    (ev.TextDelta("a"), ev.StepStarted(1)),
    (ev.ToolFinished("c", 1), ev.ToolFinished("c", 1)),
    (ev.RunEnded("complete"), ev.RunEnded("complete")),
]


@pytest.mark.parametrize(("first", "second", "both"), MERGED)
def test_neighboring_deltas_of_a_kind_become_one(first: ev.Event, second: ev.Event, both: ev.Event) -> None:
    """P2: while an append is under way, deltas of the same kind grow into one event."""
    assert ev.merge(first, second) == both


@pytest.mark.parametrize(("first", "second"), NOT_MERGED)
def test_what_differs_stays_apart(first: ev.Event, second: ev.Event) -> None:
    """C4: events of different kinds, calls or signatures are never merged, so their order is kept."""
    assert ev.merge(first, second) is None


def saying(transcript: Transcript) -> tuple[Json, ...]:
    """All of the transcript but how many events it took."""
    return (transcript.parts, transcript.status, transcript.usage, transcript.approval, transcript.error)


PIECES = texts(max_size=4)
KINDS: list[st.SearchStrategy[ev.Event]] = [
    st.builds(ev.TextDelta, PIECES),
    st.builds(ev.ReasoningDelta, PIECES, st.sampled_from((None, None, P))),
    st.builds(ev.ToolDelta, st.just("call_0"), st.sampled_from((None, None, "ls")), PIECES),
    st.builds(ev.ToolDelta, st.just("call_1"), st.none(), PIECES),
    st.builds(ev.ToolDelta, st.just("call_0"), output_delta=PIECES),
]
NEIGHBORS = st.one_of([st.tuples(kind, kind) for kind in KINDS])
DELTAS = st.one_of(KINDS)
HISTORIES = st.lists(events(PIECES, terminal=False) | DELTAS, max_size=6)


@PROPERTY
@given(HISTORIES, NEIGHBORS)
def test_a_merged_event_says_what_both_said(before: list[ev.Event], pair: tuple[ev.Event, ev.Event]) -> None:
    """P2: after any history, folding the merged event gives what folding both gives."""
    both = ev.merge(*pair)
    if both is not None:
        apart, together = fold(numbered([*before, *pair])), fold(numbered([*before, both]))
        assert saying(apart) == saying(together)


@PROPERTY
@given(st.lists(DELTAS, max_size=12))
def test_merging_all_the_way_changes_nothing(listed: list[ev.Event]) -> None:
    """P2: a stream coalesced as far as it goes folds to the same parts as the single deltas."""
    merged: list[ev.Event] = []
    for event in listed:
        both = ev.merge(merged[-1], event) if merged else None
        merged = [*merged, event] if both is None else [*merged[:-1], both]
    assert saying(fold(numbered(merged))) == saying(fold(numbered(listed)))


@PROPERTY
@given(events(), events())
def test_only_deltas_are_merged(first: ev.Event, second: ev.Event) -> None:
    """Everything that is not a delta keeps its own place in the journal."""
    kinds = (ev.TextDelta, ev.ReasoningDelta, ev.ToolDelta)
    if ev.merge(first, second) is not None:
        assert isinstance(first, kinds)
        assert type(first) is type(second)
