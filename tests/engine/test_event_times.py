"""Timestamps of events: the timeline of a run."""

import json

from holdfast.core.events import Entry, Event, RunEnded, StepStarted, TextDelta, ToolDelta, ToolFinished, ToolStarted
from holdfast.core.ids import RunId
from holdfast.core.transcript import fold
from holdfast.engine.output_buffer import OutputBuffer


def times(*said: tuple[int, Event]) -> list[int | None]:
    """What each event's frame says of its time, if each is taken as soon as it is there."""
    buffer = OutputBuffer(RunId("run_1"), 1, 0, lambda _: None, room=1000, max_output=10**6)
    entries: list[Entry] = []
    for now, event in said:
        buffer.add(event)
        append = buffer.take(now)
        assert append is not None
        entries += append.entries
        buffer.done(append)
    plain = OutputBuffer(RunId("run_1"), 1, 0, lambda _: None, room=1000, max_output=10**6)
    for _, event in said:
        plain.add(event)
    whole = plain.take(0)
    assert whole is not None
    assert fold(entries).parts == fold(whole.entries).parts
    return [json.loads(item.frame.split(b"\ndata: ")[1]).get("at") for item in entries]


def test_every_event_that_is_no_delta_has_a_time() -> None:
    """L5: steps, tools and the end say when they were, so that spans can be drawn."""
    assert times(
        (10, StepStarted(0)),
        (20, ToolStarted("c", "ls", {})),
        (21, ToolFinished("c", "", duration_ms=1)),
        (21, StepStarted(1)),
        (22, RunEnded("complete")),
    ) == [10, 20, 21, 21, 22]


def test_of_neighboring_deltas_a_few_have_a_time() -> None:
    """L5: the first of a kind, and then one in a quarter of a second: what is between them needs no time of its own."""
    assert times(
        (10, StepStarted(0)),
        (40, TextDelta("a")),
        (41, TextDelta("b")),
        (289, TextDelta("c")),
        (290, TextDelta("d")),
        (300, ToolDelta("c", "ls")),
        (310, ToolDelta("c", None, "{}")),
        (311, TextDelta("e")),
    ) == [10, 40, None, None, 290, 300, None, 311]


def test_a_clock_that_was_set_back_does_not_end_the_times() -> None:
    """A clock may jump: the first event after that says what the clock says."""
    assert times((5000, TextDelta("a")), (1000, TextDelta("b")), (1001, TextDelta("c"))) == [5000, 1000, None]
