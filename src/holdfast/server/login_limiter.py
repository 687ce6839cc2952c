"""Rate limit for password attempts. The caller passes the current time."""

from typing import Final

FREE_ATTEMPTS: Final = 5  # After these, each failed attempt doubles the wait
MAX_WAIT: Final = 300.0
FORGET_AFTER: Final = 3600.0
_MAX_CLIENTS: Final = 10_000
_Attempts = tuple[int, float]  # Their number, and the time of the last one
_NONE: Final[_Attempts] = (0, float("-inf"))


class LoginRateLimiter:
    """Limits each client, and all clients together by a generous limit against attacks from many addresses."""

    def __init__(self, free_in_total: int = 100) -> None:
        self._free_in_total = free_in_total
        self._by_client: dict[str, _Attempts] = {}
        self._total = _NONE
        self._cleaned_at = float("-inf")

    def wait(self, client: str, now: float) -> float:
        """Seconds until the next attempt is allowed; 0: now."""
        own = self._by_client.get(client, _NONE)
        return max(_wait(own, FREE_ATTEMPTS, now), _wait(self._total, self._free_in_total, now))

    def record_attempt(self, client: str, now: float) -> None:
        if len(self._by_client) >= _MAX_CLIENTS and now - self._cleaned_at >= MAX_WAIT:
            self._cleaned_at = now
            self._by_client = {name: seen for name, seen in self._by_client.items() if now - seen[1] < MAX_WAIT}
        if len(self._by_client) < _MAX_CLIENTS:
            self._by_client[client] = _add_attempt(self._by_client.get(client, _NONE), now)
        self._total = _add_attempt(self._total, now)

    def reset(self, client: str) -> None:
        """Call after a correct password. The attempts of all other clients still count."""
        own, _ = self._by_client.pop(client, _NONE)
        self._total = (max(0, self._total[0] - own), self._total[1])


def _wait(attempts: _Attempts, free: int, now: float) -> float:
    count, last = attempts
    if count < free or now - last >= FORGET_AFTER:
        return 0.0
    return max(0.0, last + min(MAX_WAIT, 2.0 ** min(count - free, 10)) - now)


def _add_attempt(attempts: _Attempts, now: float) -> _Attempts:
    count, last = attempts
    return (1 if now - last >= FORGET_AFTER else count + 1), now
