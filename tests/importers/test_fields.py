"""Fields of foreign JSON."""

import pytest

from holdfast.core.events import Usage
from holdfast.importers.fields import seconds, usage
from holdfast.models.usage import MAX_TOKENS


def test_token_counts_have_the_bound_of_providers() -> None:
    """The sums over a session stay numbers that JSON has exactly."""
    assert usage({"in": MAX_TOKENS, "out": 0}, "in", "out") == Usage(MAX_TOKENS, 0)
    assert usage({"in": MAX_TOKENS + 1, "out": 0}, "in", "out") is None


@pytest.mark.parametrize(
    "value", [10**400, -(10**400), float("inf"), float("nan"), 0, -1.5, True, "10000-01-01", None, []]
)
def test_a_time_that_is_none_is_ignored(value: object) -> None:
    """Any number that a file has is read; times are only decoration."""
    assert seconds(value) is None


def test_times_are_seconds_or_milliseconds() -> None:
    """Both kinds are told apart by their size."""
    assert seconds(1_700_000_000) == seconds(1_700_000_000_000) == seconds("2023-11-14T22:13:20Z") == 1_700_000_000
