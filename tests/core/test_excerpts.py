"""Finding a text in messages, and what is shown around it."""

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.excerpts import around, normalize_query
from holdfast.core.json_limits import STEP
from holdfast.core.parts import TextPart
from tests.steps import count_steps

WORDS = st.text(alphabet="aAbBéÉßẞſsSkK\u212aσςΣiIıİ", min_size=1, max_size=3)
SPACES = st.text(alphabet=" \n\t\u2003", min_size=1, max_size=4)


def find(text: str, query: str) -> str | None:
    return around([TextPart(text)], normalize_query(query))


def matches(text: str, query: str) -> bool:
    """As a regular expression finds it."""
    pattern = r"\s+".join(map(re.escape, query.split()))
    return re.search(pattern, text, re.IGNORECASE) is not None


@given(st.lists(st.tuples(WORDS, SPACES)), st.lists(WORDS, min_size=1, max_size=3))
def test_a_text_is_found_whatever_its_case_and_spaces(text: list[tuple[str, str]], query: list[str]) -> None:
    """Accents count. A short text is shown as a whole."""
    said = "".join(word + space for word, space in text)
    found = find(said, " ".join(query))
    assert (found is not None) == matches(said, " ".join(query))
    if found is not None and len(said) <= 40:
        assert found == " ".join(said.split())


def test_letters_of_any_script_are_found_by_their_other_cases() -> None:
    """Each by every letter that a regular expression without case takes for the same."""
    letters = "".join(c for c in map(chr, range(sys.maxunicode + 1)) if c.lower() != c or c.upper() != c)
    for letter in letters:
        same = {c for c in (letter.lower(), letter.upper(), letter.casefold()) if len(c) == 1}
        assert {c for c in same if find(c, letter)} == {c for c in same if matches(c, letter)}
    assert [find("ΟΔΟΣ", "οδος"), find("İzmir", "izmir")] == ["ΟΔΟΣ", "İzmir"]


@pytest.mark.parametrize("space", [" ", "\n" * 100, " " * 3 * STEP])
@pytest.mark.parametrize("before", [0, 1, STEP - 21, STEP - 8, STEP - 1, 3 * STEP])
def test_a_match_is_found_wherever_the_text_is_divided(before: int, space: str) -> None:
    """A long text is searched in pieces; the match may be in two of them."""
    text = "x" * before + f" said{space}the blue{space}kingfisher and{space}dived. " + "y" * STEP
    found = find(text, "The Blue KINGFISHER")
    assert found is not None
    assert found.startswith({0: "said the blue", 1: "x said the blue"}.get(before, "…said the blue"))
    assert "blue kingfisher and dived. yyy" in found
    assert find(text, "blue kingfishers") is None


def test_other_threads_run_while_a_long_text_is_searched() -> None:
    """Also if the text repeats the words of the query; the work does not grow with their number."""
    text = "a " * 1_000_000
    assert count_steps(lambda: find(text, "a " * 99 + "b")) >= len(text) // STEP
    assert count_steps(lambda: find("é" * 1_000_000, "zebra")) >= 1_000_000 // STEP
