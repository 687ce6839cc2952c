"""Decides when the next group commit of the journal may begin. Pure.

A commit costs several times what a token in it does. While many appends a second arrive, commits therefore begin at
least `SPACING` apart; otherwise nothing waits.
"""

import math
from typing import Final

SPACING: Final = 0.008  # Seconds: half of the time for which a screen shows one frame
BUSY: Final = 500.0  # Appends a second from which commits are spaced: four in each
_AVERAGED: Final = 0.1  # Seconds over which the appends are counted; older ones fade out


class CommitPacer:
    def __init__(self) -> None:
        self._began = -math.inf
        self._rate = 0.0  # Appends a second, when the last commit began

    def began(self, now: float, appends: int) -> None:
        """A commit of so many appends begins."""
        self._rate = self._rate_at(now) + appends / _AVERAGED
        self._began = now

    def wait(self, now: float) -> float:
        """Seconds until the next commit may begin; 0 if it may now."""
        spaced_until = self._began + SPACING
        return spaced_until - now if now < spaced_until and self._rate_at(now) >= BUSY else 0.0

    def _rate_at(self, now: float) -> float:
        return self._rate * math.exp((self._began - now) / _AVERAGED)
