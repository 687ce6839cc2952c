"""Reasoning that a model writes into its text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agents.chat.inline_reasoning import InlineReasoning
from holdfast.core.events import ReasoningDelta, TextDelta
from holdfast.core.parts import ReasoningPart, TextPart
from holdfast.ports.model import AssistantMessage
from tests.agents.models import Asks, ScriptedModel, Trace, answers, chatting
from tests.agents.test_replayed_steps import wire
from tests.harness import World


def read(text: str, size: int = 1) -> tuple[str, str, list[str] | None]:
    """The reasoning, the answer and the tags of a text that comes in pieces."""
    inline = InlineReasoning()
    deltas = [each for at in range(0, len(text), size) for each in inline.take(text[at : at + size])]
    deltas += inline.end()
    reasoning = [each for each in deltas if isinstance(each, ReasoningDelta)]
    tags = [each.provider["inline"] for each in reasoning if each.provider is not None]
    said = "".join(each.text for each in deltas if isinstance(each, TextDelta))
    return "".join(each.text for each in reasoning), said, tags[0] if tags else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>Hm.</think>\n\nYes.", ("Hm.", "Yes.", ["<think>", "</think>\n\n"])),
        ("\n<think>\nHm <b>.\n</think>Yes.", ("\nHm <b>.\n", "Yes.", ["\n<think>", "</think>"])),
        ("[THINK]Hm.[/THINK]Yes.", ("Hm.", "Yes.", ["[THINK]", "[/THINK]"])),
        ("<thought>Hm.</thought>", ("Hm.", "", ["<thought>", "</thought>"])),
        ("<think>cut o", ("cut o", "", None)),
        ("<think>cut off in </thi", ("cut off in </thi", "", None)),
        ("<thin air", ("", "<thin air", None)),
        ("Use <think> and </think>.", ("", "Use <think> and </think>.", None)),
        ("  Yes.", ("", "  Yes.", None)),
        ("<thi", ("", "<thi", None)),
        (" " * 200 + "<think>x</think>", ("", " " * 200 + "<think>x</think>", None)),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_tags_at_the_beginning_are_reasoning(text: str, expected: tuple[str, str, object], size: int) -> None:
    """What is between the tags is reasoning, wherever the pieces are cut; tags elsewhere are text."""
    if size == 1000 and text.startswith("   "):
        return  # in one piece, all of it is known
    assert read(text, size) == expected


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<", "\n", "a", " ", "[THINK]"]), max_size=12), st.integers(1, 9)
)
def test_no_text_is_lost_however_it_is_cut(pieces: list[str], size: int) -> None:
    """The tags, the reasoning and the answer are the text, for every cut the same."""
    text = "".join(pieces)
    reasoning, said, tags = read(text, size)
    before, after = tags or ("", "")
    whole = before + reasoning + after + said
    assert whole == text or (tags is None and text.lstrip().endswith(reasoning) and said == "")
    assert read(text, size) == read(text, 1)


@pytest.mark.anyio
async def test_a_turn_keeps_reasoning_apart_and_shows_it_to_the_model() -> None:
    """The message has the reasoning as a part of its own; within the turn the model is shown what it wrote."""
    model = ScriptedModel(
        answers(["<thi", "nk>I loo", "k.</think>\n", Asks("a", "look")], ["<think>So.</think>\n\nDone."])
    )
    async with chatting(World(), model, Trace("look", [])) as (it, sid):
        await it.turn(sid)
        parts = (await it.answer(sid)).parts
        assert [part.text for part in parts if isinstance(part, ReasoningPart)] == ["I look.", "So."]
        assert [part.text for part in parts if isinstance(part, TextPart)] == ["Done."]
        await it.turn(sid, "And now?")
    said = model.requests[1].messages[1]
    assert isinstance(said, AssistantMessage)
    assert wire(model.requests[1].messages)["openai"][1]["content"] == "<think>I look.</think>\n"
    assert [m["content"] for m in wire(model.requests[2].messages)["openai"]] == [
        "hello",
        None,
        "done",
        "Done.",
        "And now?",
    ]
