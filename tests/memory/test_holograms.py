"""Vectors: what is alike points the same way, and the nearest of many is found."""

import os

import pytest

from holdfast.memory.holograms import BYTES, Matrix, agreement, encode

FACTS = {
    "home": "The person lives in Berlin.",
    "name": "The person's name is Anna Schmidt.",
    "": "The person prefers tea over coffee.",
    "allergies": "The person is allergic to peanuts.",
    "dog name": "The person's dog is called Rex.",
    "profession": "The person works as carpenter.",
}


@pytest.mark.parametrize(
    ("question", "about"),
    [
        ("Where do I live?", "home"),
        ("what's my name", "name"),
        ("What should I drink, tea or cofee?", ""),
        ("can I eat peanut butter?", "allergies"),
        ("how is my dog doing", "dog name"),
        ("what is my job?", "profession"),
    ],
)
def test_a_question_points_to_its_fact(question: str, about: str) -> None:
    """A question agrees most with the fact that answers it, by topic, by words or by parts of words, beyond chance."""
    asked = encode(question)
    alike = {key: agreement(asked, encode(text, key)) for key, text in FACTS.items()}
    assert max(alike, key=lambda key: alike[key]) == about
    assert alike[about] > 0.56


def test_what_has_nothing_in_common_agrees_by_chance() -> None:
    """A question about something else is near no fact."""
    asked = encode("Explain quantum chromodynamics")
    assert all(abs(agreement(asked, encode(text, key)) - 0.5) < 0.06 for key, text in FACTS.items())


def test_a_vector_is_the_same_each_time_and_on_each_machine() -> None:
    """What was kept is compared with what is made later: the encoding is fixed."""
    vector = encode("The person lives in Berlin.", "home")
    assert len(vector) == BYTES
    assert vector == encode("The person lives in Berlin.", "home")
    assert vector[:8].hex() == KNOWN


KNOWN = "a4fe356b225dfc08"


@pytest.mark.parametrize("count", [1000, 1025, 40_000])
def test_the_nearest_of_many_are_found_and_those_that_are_gone_are_not(count: int) -> None:
    """A scan finds the rows that agree most, best first; a cleared row is not found, a replaced one as it is now."""
    matrix = Matrix()
    matrix.put(range(count), [os.urandom(BYTES) for _ in range(count)])
    vectors = [encode("The person lives in Berlin.", "home"), encode("The person's dog is called Rex.", "dog name")]
    matrix.put([700, 900], vectors)
    (first, near), *rest = matrix.nearest(encode("Where do I live?"), 5)
    assert first == 700
    assert near > 0.6
    assert all(agreement <= near for _, agreement in rest)
    matrix.put([700], [os.urandom(BYTES)])
    assert matrix.nearest(encode("Where do I live?"), 1)[0][0] != 700
    assert matrix.nearest(encode("dog called Rex"), 1)[0][0] == 900
    matrix.clear(900)
    assert 900 not in [row for row, _ in matrix.nearest(encode("dog called Rex"), count)]


def test_nothing_is_near_to_nothing() -> None:
    """An empty question, and an empty matrix, find nothing."""
    matrix = Matrix()
    assert matrix.nearest(encode("Where do I live?"), 5) == []
    matrix.put([0], [encode("x y z words")])
    assert matrix.nearest(encode("the of and"), 5) == []
