"""Slows down the guessing of passwords: decides which attempt is checked next, and how long a client pauses after a
wrong password. The caller passes the current time; `password_checks` makes the checks.

Every attempt waits until it is chosen; none is refused. The attempts of one client are checked one after the other,
with growing pauses in between. A client is an address (`client_address.network_of`), or a browser that has logged in
before, whose attempts therefore never wait for those of others at its address.

Nobody can take up all checks, neither by being first nor by sending many attempts. Checks alternate between two rules
for choosing the client: the one that has waited longest, or a random one of those with the fewest failed attempts. The
attempts of a client alternate in the same way: the oldest one, or a random one."""

import heapq
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from random import SystemRandom
from typing import Final, Generic, TypeVar

from holdfast.server.draw_pool import DrawPool, Random

FREE_ATTEMPTS: Final = 5  # After these, each failed attempt doubles the pause
MAX_PAUSE: Final = 15.0
WAITING_TIME: Final = 30.0
"""Seconds within which all waiting attempts of one client are to be checked. With many attempts the pauses between them
are therefore shorter than `MAX_PAUSE`: otherwise an owner at the address of an attacker would wait for hours."""
MIN_PAUSE: Final = 1.0
"""The shortest pause, however many attempts wait. It limits the guesses from one address to 86,400 a day."""
FORGET_AFTER: Final = 3600.0
_MAX_CLIENTS: Final = 10_000  # Without waiting attempts; the others are limited by the number of connections
_RANKS: Final = FREE_ATTEMPTS + 5  # Clients that have failed more often are equal: all have the longest pause

T = TypeVar("T", bound=Hashable)


@dataclass(slots=True, eq=False)
class _Client(Generic[T]):
    name: str
    failed: int
    waiting: DrawPool[T] = field(default_factory=DrawPool)
    is_paused: bool = False
    oldest_next: bool = True  # Otherwise a random attempt


class LoginThrottle(Generic[T]):
    """Attempts are any hashable objects, each of which is added once."""

    def __init__(self, random: Random | None = None) -> None:
        self._random = random or SystemRandom().random
        self._attempts: dict[T, _Client[T]] = {}
        self._clients: dict[str, _Client[T]] = {}
        """Those with attempts that wait or are checked, or in a pause."""
        self._remembered: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """Failed attempts of the others, and the end of the last pause. The last used client is last."""
        self._ready: DrawPool[_Client[T]] = DrawPool()  # Whose attempts may be checked now
        self._ranks: tuple[DrawPool[_Client[T]], ...] = tuple(DrawPool() for _ in range(_RANKS))
        """The same clients, by the number of failed attempts."""
        self._pauses: list[tuple[float, int, _Client[T]]] = []  # A heap
        self._checked: tuple[_Client[T], float] | None = None  # Whose attempt is checked now, and since when
        self._draws = 0

    @property
    def next_time(self) -> float | None:
        """When the next pause ends."""
        return self._pauses[0][0] if self._pauses else None

    def add(self, name: str, attempt: T, now: float) -> None:
        """An attempt of this client starts to wait."""
        client = self._clients.get(name)
        if client is None:
            failed, free_at = self._remembered.pop(name, (0, now))
            client = self._clients[name] = _Client(name, 0 if now - free_at >= FORGET_AFTER else failed)
        client.waiting.add(attempt)
        self._attempts[attempt] = client
        self._place(client, now)

    def remove(self, attempt: T, now: float) -> None:
        """The attempt no longer waits, if it still did. It does not count as failed."""
        client = self._attempts.pop(attempt, None)
        if client is not None:
            client.waiting.discard(attempt)
            self._place(client, now)

    def draw(self, now: float) -> T | None:
        """The attempt to be checked now, or None. The caller checks it and then calls `finish`; until then it counts as
        failed."""
        while self._pauses and self._pauses[0][0] <= now:
            client = heapq.heappop(self._pauses)[2]
            client.is_paused = False
            self._place(client, now)
        if not self._ready:
            return None
        self._draws += 1
        client = self._ready.oldest() if self._draws % 2 else next(filter(len, self._ranks)).pick(self._random)
        attempt = client.waiting.oldest() if client.oldest_next else client.waiting.pick(self._random)
        client.oldest_next = not client.oldest_next
        self._checked = client, now
        self._place(client, now)
        client.failed += 1
        return attempt

    def finish(self, attempt: T, now: float, *, right: bool | None) -> None:
        """The result of the check; None if it could not be made, which does not count as failed."""
        assert self._checked is not None
        client, began = self._checked
        self._checked = None
        pause = 0.0
        if right is None:
            client.failed -= 1
        elif right:
            client.failed = 0
        else:
            pause = _pause(client.failed, len(client.waiting))
        self._attempts.pop(attempt, None)
        client.waiting.discard(attempt)
        if began + pause > now:
            client.is_paused = True
            heapq.heappush(self._pauses, (began + pause, self._draws, client))
        self._place(client, now)

    def _place(self, client: _Client[T], now: float) -> None:
        """Call after each change to a client, and before its failed attempts change."""
        is_checked = self._checked is not None and self._checked[0] is client
        if client.waiting and not client.is_paused and not is_checked:
            if client not in self._ready:
                self._ready.add(client)
                self._ranks[min(client.failed, _RANKS - 1)].add(client)
            return
        self._ready.discard(client)
        self._ranks[min(client.failed, _RANKS - 1)].discard(client)
        if not client.waiting and not client.is_paused and not is_checked:
            del self._clients[client.name]
            if client.failed:
                self._remembered[client.name] = client.failed, now
            if len(self._remembered) > _MAX_CLIENTS:
                self._remembered.popitem(last=False)


def _pause(failed: int, waiting: int) -> float:
    """Seconds from the start of one check to the start of the next of the same client. `waiting`: its attempts that
    wait, this one included."""
    if failed < FREE_ATTEMPTS:
        return 0.0
    return min(2.0 ** min(failed - FREE_ATTEMPTS, 10), MAX_PAUSE, max(MIN_PAUSE, WAITING_TIME / max(waiting, 1)))
