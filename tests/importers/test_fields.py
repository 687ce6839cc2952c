"""Fields of foreign JSON."""

from holdfast.core.events import Usage
from holdfast.importers.fields import usage
from holdfast.models.usage import MAX_TOKENS


def test_token_counts_have_the_bound_of_providers() -> None:
    """The sums over a session stay numbers that JSON has exactly."""
    assert usage({"in": MAX_TOKENS, "out": 0}, "in", "out") == Usage(MAX_TOKENS, 0)
    assert usage({"in": MAX_TOKENS + 1, "out": 0}, "in", "out") is None
