"""Measures work by the calls of Python functions, so that a test of its growth does not depend on the machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_calls(function: Callable[[], object]) -> int:
    """The Python functions that are entered, each step of a generator included."""
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def grows_linearly(function: Callable[[int], object], size: int = 150) -> bool:
    """Whether four times the input takes about four times the work, and not sixteen times."""
    return count_calls(lambda: function(4 * size)) < 6 * count_calls(lambda: function(size))
