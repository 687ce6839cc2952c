"""Forms that a tool's server asks a person to fill in, with numbers of every size."""

from typing import Any

import pytest

from holdfast.core.form_schema import answer_problem, form_problem

HUGE = 10**400  # More than any float; JSON has it


@pytest.mark.parametrize("value", [HUGE, -HUGE, float("inf"), float("nan")])
def test_a_number_beyond_any_float_is_no_answer(value: float) -> None:
    """It is refused with the field, as every wrong value is."""
    form = {"type": "object", "properties": {"n": {"type": "number"}}}
    assert form_problem(form) is None
    assert answer_problem(form, {"n": value}) == ("n", "must be a finite number")
    assert answer_problem(form, {"n": 1.5}) is None


@pytest.mark.parametrize(
    ("limit", "fits"), [({"minimum": HUGE}, False), ({"maximum": HUGE}, True), ({"maximum": -HUGE}, False)]
)
def test_a_limit_beyond_any_float_breaks_no_answer(limit: dict[str, Any], fits: bool) -> None:
    """The schema is a server's, which may write any number."""
    form = {"type": "object", "properties": {"n": {"type": "integer", **limit}}}
    assert form_problem(form) is None
    assert (answer_problem(form, {"n": 1}) is None) == fits
