"""Variables in saved prompts."""

import time

import pytest

from holdfast.core.errors import InvalidInputError
from holdfast.core.saved_prompts import MAX_FILLED, MAX_VARIABLES, check_text, fill, find_variables


def test_variables_are_found_in_their_order() -> None:
    """Each once, with the first default that it is given anywhere; other braces are text."""
    text = "{{a}} {{ b = two words }} {{c=}} {{a=late}} {{b=other}} {{}} {{1x}} {d} {{a b}} {{x{{y}} }}"
    found = [(each.name, each.default) for each in find_variables(text)]
    assert found == [("a", "late"), ("b", "two words"), ("c", ""), ("y", None)]


def test_a_prompt_is_filled_with_values_and_defaults() -> None:
    """An empty value is the default; what looks like a variable in a value is text."""
    text = "Say {{what}} to {{whom=everybody}}, {{what}}! {{not a variable}}"
    assert fill(text, {"what": "{{whom}}", "whom": ""}) == "Say {{whom}} to everybody, {{whom}}! {{not a variable}}"
    assert fill("plain", {}) == "plain"


@pytest.mark.parametrize("values", [{}, {"what": ""}, {"what": "x", "other": "y"}])
def test_missing_and_unknown_values_are_refused(values: dict[str, str]) -> None:
    """The error names the variable."""
    with pytest.raises(InvalidInputError, match=r"what|other"):
        fill("Say {{what}}", values)


def test_texts_have_limits() -> None:
    """Empty texts, too many variables and a message that would be too long are refused."""
    check_text("".join(f"{{{{v{n}}}}}" for n in range(MAX_VARIABLES)))
    for text in (" \n", "".join(f"{{{{v{n}}}}}" for n in range(MAX_VARIABLES + 1))):
        with pytest.raises(InvalidInputError):
            check_text(text)
    with pytest.raises(InvalidInputError, match="longer"):
        fill("{{a}}" * 4000, {"a": "x" * 20_000})
    assert len(fill("{{a}}" * 5, {"a": "x" * (MAX_FILLED // 5)})) == MAX_FILLED


def test_hostile_braces_cost_little() -> None:
    """No text of the largest size takes quadratic time."""
    before = time.process_time()
    for text in ("{" * 20_000, "{{a=" * 5000, "{{a" * 6000, "{{" + " " * 20_000, "{{a=x}}" * 2857):
        find_variables(text)
    assert time.process_time() - before < 1.0
