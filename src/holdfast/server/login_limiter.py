"""Slows down password guessing. The caller passes the current time.

No attempt is refused because of earlier ones: each client's attempts are checked one after the other, with growing
pauses in between. A client is an address, or a browser that has logged in before, whose attempts therefore never wait
for those of others at its address."""

from collections import OrderedDict
from typing import Final

FREE_ATTEMPTS: Final = 5  # After these, each failed attempt doubles the pause
MAX_PAUSE: Final = 15.0
MAX_WAIT: Final = 60.0
"""An attempt that would have to wait longer is turned away: its client has several others under way."""
FORGET_AFTER: Final = 3600.0
_MAX_CLIENTS: Final = 10_000


class LoginRateLimiter:
    def __init__(self) -> None:
        self._clients: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """By client: its failed attempts, and when the next one may be checked. The last used client is last."""

    def reserve(self, client: str, now: float) -> float | None:
        """Seconds to wait before this attempt's password is checked; None if too many attempts wait already. It counts
        as failed until `reset`."""
        failed, free_at = self._clients.get(client, (0, now))
        if now - free_at >= FORGET_AFTER:
            failed = 0
        starts_at = max(now, free_at)
        if starts_at - now > MAX_WAIT:
            return None
        failed += 1
        pause = 0.0 if failed < FREE_ATTEMPTS else min(MAX_PAUSE, 2.0 ** min(failed - FREE_ATTEMPTS, 10))
        self._clients[client] = failed, starts_at + pause
        self._clients.move_to_end(client)
        if len(self._clients) > _MAX_CLIENTS:
            self._clients.popitem(last=False)
        return starts_at - now

    def failed(self, client: str) -> int:
        """Its attempts that failed or are under way."""
        return self._clients.get(client, (0, 0.0))[0]

    def forgive(self, client: str) -> None:
        """Call for an attempt that was not checked."""
        if client in self._clients:
            failed, free_at = self._clients[client]
            self._clients[client] = failed - 1, free_at

    def reset(self, client: str) -> None:
        """Call after a correct password."""
        self._clients.pop(client, None)
