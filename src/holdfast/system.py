"""The real clock, the real ids, and what the real process asks of its system."""

import ctypes
import os
import sys
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


class SystemClock:
    def now(self) -> float:
        return time.time()


class RandomIds:
    """48 bits of milliseconds and 80 of randomness in base 32; within a millisecond the last one is counted up, so
    that ids of one process sort in the order in which they were made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def new(self, prefix: str) -> str:
        with self._lock:
            fresh = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
            self._last = fresh if fresh >> 80 > self._last >> 80 else self._last + 1
            value = self._last
        digits = []
        for _ in range(26):
            digits.append(_ALPHABET[value & 31])
            value >>= 5
        return f"{prefix}_{''.join(reversed(digits))}"


def keep_private() -> None:
    """On Linux, nobody but root may read this process's environment and memory from now on, where its keys are: the
    commands that an agent runs belong to the same user. There are no core dumps either. Not for children, which begin
    anew with what they are given."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
