"""The parts of an edited answer."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from holdfast.agents.chat.model_messages import answer
from holdfast.core.edited_answers import with_text
from holdfast.core.ids import FileId
from holdfast.core.parts import FilePart, Part, ReasoningPart, TextPart, ToolPart
from holdfast.core.steps import step_starts
from holdfast.ports.model import AssistantMessage, ToolCall
from tests import strategies


def call(call_id: str) -> ToolPart:
    return ToolPart(call_id, "look", {}, "done", result=1)


def steps(parts: tuple[Part, ...]) -> list[list[str]]:
    """The ids of the calls of each step."""
    starts = [*step_starts(parts), len(parts)]
    slices = [parts[a:b] for a, b in pairwise(starts)]
    found = [[part.call_id for part in some if isinstance(part, ToolPart)] for some in slices]
    return [ids for ids in found if ids]


def test_calls_stay_in_their_steps() -> None:
    """Also where only a text told the steps apart; the new text follows them."""
    file = FilePart(FileId("file_1"), "a.png", "image/png", 1, call_id="b")
    parts = (ReasoningPart("hm"), TextPart("I look."), call("a"), TextPart("Again."), call("b"), call("c"), file)
    edited = with_text((*parts, TextPart("Done.")), "New.")
    assert steps(edited) == [["a"], ["b", "c"]]
    assert edited[-1] == TextPart("New.")
    assert [type(part) for part in edited] == [ToolPart, ToolPart, ToolPart, FilePart, TextPart]
    messages = [item for item in answer(edited) if isinstance(item, AssistantMessage)]
    calls = [[part.call_id for part in item.parts if isinstance(part, ToolCall)] for item in messages]
    assert calls == [["a"], ["b", "c"], []]


@given(st.lists(strategies.parts()).map(tuple), strategies.texts(min_size=1))
def test_everything_but_text_and_reasoning_is_kept(parts: tuple[Part, ...], text: str) -> None:
    """Whatever an answer consists of: the same calls in the same steps, and one text at the end."""
    edited = with_text(parts, text)
    assert steps(edited) == steps(parts)
    assert [part for part in edited if isinstance(part, TextPart | ReasoningPart)] == [TextPart(text)]
    kept = [part for part in parts if not isinstance(part, TextPart | ReasoningPart | ToolPart)]
    assert [part for part in edited[:-1] if not isinstance(part, ToolPart)] == kept
