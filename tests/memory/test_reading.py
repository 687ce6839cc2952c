"""What a model answers, read with care."""

import json

import pytest

from holdfast.core.ids import LOCAL, FactId, MessageId, RunId, SessionId
from holdfast.core.parts import Text
from holdfast.memory.reading import drafts, prompt
from holdfast.ports import Fact, RememberedTurn

TURNS = [
    RememberedTurn(n, RunId(f"run_{n}"), MessageId(f"msg_{n}"), 1.0, (Text(f"said {n}"),), (Text(f"answered {n}"),))
    for n in (3, 4)
]


def test_an_array_of_facts_is_read_with_its_turns() -> None:
    """Facts name their turn; one that names none, or a wrong one, belongs to the last. Talk around it is no harm."""
    items = [
        {"turn": 3, "about": "home", "fact": "Lives in Rome."},
        {"turn": 99, "about": "pet", "fact": "Has a cat."},
        {"fact": "Likes tea."},
    ]
    found = drafts(f"Sure!\n```json\n{json.dumps(items)}\n```", TURNS)
    assert found is not None
    assert [(draft.about, draft.text, draft.turn.n) for draft in found] == [
        ("home", "Lives in Rome.", 3),
        ("pet", "Has a cat.", 4),
        ("", "Likes tea.", 4),
    ]


@pytest.mark.parametrize("answer", ["", "I found nothing.", "[", '{"fact": "x"}', "[1, 2", "[[[" * 50_000])
def test_what_is_no_array_is_not_taken_for_one(answer: str) -> None:
    """An answer that is not what was asked for says so, instead of passing for "nothing to remember"."""
    assert drafts(answer, TURNS) is None


def test_items_that_are_none_are_left_out() -> None:
    """Items of a wrong shape, empty or far too long are dropped; an empty array is an answer; there is a limit."""
    odd = [1, None, {"fact": 3}, {"fact": ""}, {"fact": "x" * 9999}, {"about": "y"}, {"fact": "Fine.", "about": 7}]
    found = drafts(json.dumps(odd), TURNS)
    assert found is not None
    assert [draft.text for draft in found] == ["Fine."]
    assert drafts("[]", TURNS) == []
    assert len(drafts(json.dumps([{"fact": f"Fact {n}."} for n in range(99)]), TURNS) or []) == 20


def test_the_prompt_has_the_turns_and_what_is_known() -> None:
    """A model sees both sides of each turn, and known facts with what they are about."""
    source = (SessionId("ses_1"), MessageId("msg_0"), 1.0, 1.0, 1.0)
    known = [
        Fact(FactId("f"), LOCAL, "home", "Lives in Bonn.", *source),
        Fact(FactId("g"), LOCAL, "=ab", "Odd.", *source),
    ]
    text = prompt(TURNS, known)
    for piece in ('"home": Lives in Bonn.', '"": Odd.', "Turn 3", "said 3", "answered 3", "Turn 4"):
        assert piece in text
