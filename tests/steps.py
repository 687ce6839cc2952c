"""Whether long work lets the other threads of the process run."""

import sys
from collections.abc import Callable
from types import FrameType


def count_steps(work: Callable[[], object]) -> int:
    """How often Python code begins or goes on during the work. Between two of these another thread can run; a single
    call of C code, however long, is one step."""
    steps = 0

    def step(frame: FrameType, event: str, arg: object) -> None:
        nonlocal steps
        steps += event == "call"

    previous = sys.getprofile()
    sys.setprofile(step)
    try:
        work()
    finally:
        sys.setprofile(previous)
    return steps
