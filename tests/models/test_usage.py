"""Usage that providers report."""

from holdfast.core.events import Usage
from holdfast.models.usage import parse_usage


def test_a_part_is_not_larger_than_the_whole() -> None:
    """More cached tokens than there are would make the input of other runs free, because costs are those of sums."""
    reported = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 999_999},
        "completion_tokens_details": {"reasoning_tokens": 6},
    }
    assert parse_usage(reported) == Usage(10, 5, None, 10, 5)
    assert parse_usage({"prompt_tokens": 10, "completion_tokens": 5}) == Usage(10, 5)
