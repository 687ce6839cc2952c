"""Splitting texts into words, and excerpts of long texts."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.storage.sql.text_words import EXCERPT_READ, UNSPACED, cut_excerpt, split_words
from tests.importers.instruction_count import count_instructions
from tests.steps import count_steps

LETTERS = st.lists(st.sampled_from(["ﾊﾞ", *"aB1éÉßİςΣﬁ猫犬か한\u0301\u3099・_ -\n"]), max_size=5).map("".join)


def normalize(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", word.casefold()) if unicodedata.category(c) != "Mn")[:60]


def words_of(text: str) -> list[tuple[int, str]]:
    """By the definition, for texts of any length that need not be fast."""
    found = []
    for match in re.finditer(r"[^\W_]+", text):
        pieces = re.finditer(f"{UNSPACED.pattern}|(?:(?!{UNSPACED.pattern}).)+", match.group())
        found += [(match.start() + piece.start(), normalize(piece.group())) for piece in pieces]
    return [(at, word) for at, word in found if word]


@given(st.lists(st.tuples(LETTERS, st.sampled_from([1, 1, 1, 60, 239, 240, 241, 481]))))
def test_words_are_normalized_and_shortened(parts: list[tuple[str, int]]) -> None:
    """Each character of a script without spaces is a word; of other words the first 60 characters count."""
    text = "".join(part * times for part, times in parts)
    assert list(split_words(text)) == words_of(text)


@pytest.mark.parametrize("letter", ["é", "ﬁ", "a", "1"])
def test_a_huge_word_takes_no_longer_than_what_counts_of_it(letter: str) -> None:
    """A document may be one word; it is read in many steps, between which other threads can run."""
    text = letter * 600_000 + " zebra"
    assert [word for _, word in split_words(text)] == [normalize(letter * 60), "zebra"]
    assert len(text) / 240 < count_instructions(lambda: list(split_words(text))) < len(text) / 4


def test_an_excerpt_looks_at_the_beginning_of_a_long_text() -> None:
    """A match behind it is shown by the first words of the text."""
    text = "a " * (EXCERPT_READ // 2 - 10) + "the gnu " + "a " * 400_000 + "zebra"
    assert "the gnu a a" in cut_excerpt(text, "gnu", is_prefix=False)
    assert cut_excerpt(text, "zebra", is_prefix=True) == "a " * 120 + "…"
    assert count_steps(lambda: cut_excerpt(text, "zebra", is_prefix=False)) < EXCERPT_READ
