"""The first events of a continuing run."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.events import MessageSeeded, entry
from holdfast.core.ids import RunId
from holdfast.core.parts import Part, ReasoningPart, TextPart, ToolPart
from holdfast.core.seed_events import seed_events
from holdfast.core.transcript import fold
from tests import strategies

R0 = RunId("r0")


@given(st.lists(strategies.parts(states=strategies.SETTLED_STATES), max_size=6), st.integers(1, 60))
def test_the_pieces_fold_to_what_was_left(parts: list[Part], most: int) -> None:
    """X5: however small the pieces are, a continuing run begins with exactly the parts of the earlier one."""
    found = seed_events(R0, parts, most)
    folded = fold([entry(seq, event) for seq, event in enumerate(found, 1)])
    assert folded.parts == tuple(parts)
    assert folded.thinking_since is None
    assert isinstance(found[0], MessageSeeded)


def test_a_short_one_is_one_event() -> None:
    """X5: what fits is one event, as the API says."""
    parts = (ReasoningPart("hm", {"signature": "s"}, 12), ToolPart("c", "ls", {}, "done", "x"), TextPart("so"))
    assert seed_events(R0, parts) == [MessageSeeded(R0, parts)]
    assert seed_events(R0, ()) == [MessageSeeded(R0, ())]


def test_no_event_is_longer_than_it_may_be() -> None:
    """X5: many parts, and parts that are long themselves, are spread over events of a bounded length."""
    tools = [ToolPart(f"t{n}", "read", {}, "done", "x" * 50_000) for n in range(40)]
    parts: list[Part] = [ReasoningPart("h" * 400_000, {"s": 1}), *tools, TextPart("\x00" * 400_000)]
    assert max(len(entry(1, event).frame) for event in seed_events(R0, parts)) < 1 << 20
