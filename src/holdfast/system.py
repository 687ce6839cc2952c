"""The real clock and random ids (`ports.clock`), and protection of the process's memory."""

import ctypes
import os
import sys
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]
_SHIFTS = range(120, -1, -10)  # Of the 13 pairs of digits in an id


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
        digits = [_PAIRS[value >> shift & 1023] for shift in _SHIFTS]
        return f"{prefix}_{''.join(digits)}"


def unsupported_reason(platform: str) -> str | None:
    """Why Holdfast does not run on this system, and what to do instead; None if it does."""
    if platform != "win32":
        return None
    return (
        "Holdfast does not run on Windows itself: the lock of its data directory, the flushing of directories to disk "
        "and the process groups of tools need Linux or macOS. Install it in WSL 2 (`wsl --install`, then `pip install "
        "holdfast` there), or run the container image."
    )


def hide_process_memory() -> None:
    """On Linux, keeps processes of the same user, such as an agent's commands, from reading the keys in this process's
    environment and memory. Also disables core dumps. Child processes are not affected."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
