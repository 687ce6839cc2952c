"""The output buffer: which deltas share an event, and how long one becomes."""

import pytest

from holdfast.core import events as ev
from holdfast.core.ids import RunId
from holdfast.core.transcript import fold
from holdfast.engine.output_buffer import OutputBuffer


def taken(*deltas: ev.Event) -> list[ev.Event]:
    """The events that the writer takes after these were added; they fold to the same transcript."""
    buffer = OutputBuffer(RunId("run_1"), 1, 0, lambda _: None, room=1000, max_output=10**8)
    for delta in deltas:
        buffer.add(delta)
    append = buffer.take(0)
    assert append is not None
    apart = [ev.entry(n, delta) for n, delta in enumerate(deltas, 1)]
    assert fold(append.entries).parts == fold(apart).parts
    return [entry.event() for entry in append.entries]


def test_calls_that_are_written_at_once_share_an_event_each() -> None:
    """A model server that alternates between a hundred calls with every token costs a hundred events a commit."""
    named: list[ev.Event] = [ev.ToolDelta(f"call_{n}", "add", "") for n in range(100)]
    pieces = [ev.ToolDelta(f"call_{n}", None, "1,") for _ in range(300) for n in range(100)]
    assert len(taken(*named, *pieces)) == 100


def test_what_follows_other_output_stays_behind_it() -> None:
    """Arguments do not move before text that came earlier."""
    first, second = ev.ToolDelta("a", "add", "{"), ev.ToolDelta("a", None, "}")
    assert taken(first, ev.TextDelta("Then"), second) == [first, ev.TextDelta("Then"), second]


@pytest.mark.parametrize(
    "delta",
    [
        ev.TextDelta("x" * 1_500_000),
        ev.ReasoningDelta("x" * 1_500_000, {"signature": "s"}),
        ev.ToolDelta("a", "add", "x" * 1_500_000),
        ev.ToolDelta("a", output_delta="x" * 1_500_000),
    ],
)
def test_a_long_delta_becomes_several_events(delta: ev.Event) -> None:
    """A piece of more than a megabyte is no reason to fail a run."""
    named = [ev.ToolStarted("a", "add", {})] if isinstance(delta, ev.ToolDelta) and delta.name is None else []
    events = taken(*named, delta)
    assert len(events) > 10
    assert all(len(ev.entry(1, event).frame) < 200_000 for event in events)
