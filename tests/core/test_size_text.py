"""Sizes as messages name them."""

import pytest

from holdfast.core.size_text import size_text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (8192, "8192 bytes"),
        (1024**2 - 1, "1048575 bytes"),
        (1024**2, "1 MB"),
        (1_500_000, "1.43 MB"),
        (52_428_800, "50 MB"),
        (1023 * 1024**2, "1023 MB"),
        (16 * 1024**3, "16 GB"),
        (2**40, "1024 GB"),
    ],
)
def test_large_sizes_are_in_megabytes(size: int, text: str) -> None:
    """A limit is a number that a person can compare with a file."""
    assert size_text(size) == text
