"""How often somebody may try a password. Time is an argument."""

from typing import Final

FREE: Final = 5
"""Attempts that cost nothing; then each makes the next wait longer."""
LONGEST: Final = 300.0
FORGET_AFTER: Final = 3600.0
_MOST_CALLERS: Final = 10_000


class Attempts:
    """Per caller, and for all callers together a generous limit, so that many addresses are no way around it."""

    def __init__(self, everybody: int = 100) -> None:
        self._everybody = everybody
        self._tried: dict[str, tuple[int, float]] = {}
        self._tidied_at = float("-inf")

    def wait(self, who: str, now: float) -> float:
        """Seconds until the next attempt counts; 0: now."""
        return max(self._wait(who, FREE, now), self._wait("", self._everybody, now))

    def _wait(self, who: str, free: int, now: float) -> float:
        count, last = self._tried.get(who, (0, now))
        if count < free or now - last >= FORGET_AFTER:
            return 0.0
        return max(0.0, last + min(LONGEST, 2.0 ** min(count - free, 10)) - now)

    def note(self, who: str, now: float) -> None:
        if len(self._tried) >= _MOST_CALLERS and now - self._tidied_at >= LONGEST:
            self._tidied_at = now
            self._tried = {name: seen for name, seen in self._tried.items() if now - seen[1] < LONGEST}
        full = len(self._tried) >= _MOST_CALLERS
        for name in {"" if full else who, ""}:
            count, last = self._tried.get(name, (0, now))
            self._tried[name] = (1 if now - last >= FORGET_AFTER else count + 1, now)

    def forget(self, who: str) -> None:
        """The password was right."""
        for name in (who, ""):
            self._tried.pop(name, None)
