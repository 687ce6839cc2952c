"""Similar texts have similar vectors, and the nearest of many is found."""

import os

import pytest

from holdfast.memory.holographic_vectors import BYTES, Matrix, encode

FACTS = {
    "home": "The person lives in Berlin.",
    "name": "The person's name is Anna Schmidt.",
    "": "The person prefers tea over coffee.",
    "allergies": "The person is allergic to peanuts.",
    "dog name": "The person's dog is called Rex.",
    "profession": "The person works as carpenter.",
}


def agreement(one: bytes, other: bytes) -> float:
    matrix = Matrix()
    matrix.put([0], [other])
    return matrix.nearest(one, 1)[0][1]


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
    """A question agrees most, and beyond chance, with the fact that answers it: by topic, words or parts of words."""
    asked = encode(question)
    alike = {key: agreement(asked, encode(text, key)) for key, text in FACTS.items()}
    assert max(alike, key=lambda key: alike[key]) == about
    assert alike[about] > 0.56


def test_unrelated_texts_agree_by_chance() -> None:
    """A question about something else is not near any fact."""
    asked = encode("Explain quantum chromodynamics")
    assert all(abs(agreement(asked, encode(text, key)) - 0.5) < 0.06 for key, text in FACTS.items())


def test_the_encoding_never_changes() -> None:
    """Stored vectors are compared with new ones, so the encoding is fixed."""
    vector = encode("The person lives in Berlin.", "home")
    assert len(vector) == BYTES
    assert vector == encode("The person lives in Berlin.", "home")
    assert vector[:8].hex() == KNOWN


KNOWN = "a4fe356b225dfc08"


@pytest.mark.parametrize("count", [1000, 1025, 40_000])
def test_the_nearest_of_many_are_found(count: int) -> None:
    """A scan finds the nearest rows, best first. Cleared rows are not found; replaced rows have their new vector."""
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


def test_empty_queries_and_matrices() -> None:
    """A query without keywords finds nothing, and nor does a search of an empty matrix."""
    matrix = Matrix()
    assert matrix.nearest(encode("Where do I live?"), 5) == []
    matrix.put([0], [encode("x y z words")])
    assert matrix.nearest(encode("the of and"), 5) == []
