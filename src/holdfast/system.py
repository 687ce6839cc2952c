"""The system clock, random ids, and protection of the process's memory."""

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
    """48 bits of milliseconds and 80 random bits in base 32. Within a millisecond the last id is incremented, so that
    the ids of one process sort in the order of their creation."""

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


def hide_process_memory() -> None:
    """On Linux, keeps processes of the same user, such as an agent's commands, from reading the keys in this process's
    environment and memory. Also disables core dumps. Child processes are not affected."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
