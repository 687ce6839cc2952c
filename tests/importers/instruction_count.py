"""Measures work by the instructions of Python that run, so that a test of its growth does not depend on the machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_instructions(function: Callable[[], object]) -> int:
    """The instructions that run, in functions that are called from now on. Loops of C are not seen."""
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def grows_linearly(function: Callable[[int], object], size: int = 100) -> bool:
    """Whether four times the input takes about four times the work, and not sixteen times."""
    return count_instructions(lambda: function(4 * size)) < 6 * count_instructions(lambda: function(size))
