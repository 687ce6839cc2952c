"""Numbers that JSON cannot carry, wherever they are in a value."""

import pytest

from holdfast.core.finite_numbers import find_non_finite, is_finite, without_non_finite
from holdfast.core.parts import Json

INFINITE = float("inf")
NAN = float("nan")


@pytest.mark.parametrize("number", [INFINITE, -INFINITE, NAN, 10**400, -(10**400)], ids=lambda v: str(v)[:4])
def test_an_infinite_number_is_found(number: float) -> None:
    """L5: also an integer that is infinite to every reader but Python."""
    assert not is_finite(number)
    assert find_non_finite(number) == ()
    assert find_non_finite({"a": [1, {"b": number}]}) == ("a", 1, "b")


@pytest.mark.parametrize("value", [None, True, 0, -1.5, 10**300, 1.7e308, "1e999", [], {}, [[1.0], {"a": False}]])
def test_what_json_can_carry_is_kept(value: Json) -> None:
    """Nothing else is taken for one."""
    assert find_non_finite(value) is None
    assert without_non_finite(value) == value


def test_infinite_numbers_become_null() -> None:
    """L5: the rest of the value is kept."""
    assert without_non_finite({"a": [NAN, 1.5], "b": {"c": -INFINITE}}) == {"a": [None, 1.5], "b": {"c": None}}
