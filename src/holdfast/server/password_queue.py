"""The queue for password checks of clients that have not logged in before, of which one is made at a time.

A crowd of strangers must not delay the owner: those with the fewest failed attempts go first, in random order among
equals, and when the queue is full, one of those with the most is turned away. Nobody gets further by coming early."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import SystemRandom
from typing import Final

import anyio

MAX_WAITING: Final = 50  # A few seconds of argon2


class PasswordQueueFullError(Exception):
    """Too many others wait, with as few or fewer failed attempts."""


@dataclass(slots=True, eq=False)
class _Waiter:
    rank: tuple[int, float]
    called: anyio.Event = field(default_factory=anyio.Event)
    has_turn: bool = False


class PasswordQueue:
    def __init__(self, random: Callable[[], float] | None = None) -> None:
        self._random = random or SystemRandom().random
        self._is_busy = False
        self._waiting: list[_Waiter] = []

    @asynccontextmanager
    async def turn(self, failed: int) -> AsyncIterator[None]:
        """Holds the only turn. `failed`: attempts of this client. Raises PasswordQueueFullError."""
        if self._is_busy:
            await self._wait(_Waiter((failed, self._random())))
        self._is_busy = True
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, waiter: _Waiter) -> None:
        self._waiting.append(waiter)
        if len(self._waiting) > MAX_WAITING:
            last = max(self._waiting, key=lambda each: each.rank)
            self._waiting.remove(last)
            last.called.set()
        try:
            await waiter.called.wait()
        except BaseException:
            if waiter.has_turn:
                self._pass_on()
            elif waiter in self._waiting:
                self._waiting.remove(waiter)
            raise
        if not waiter.has_turn:
            raise PasswordQueueFullError

    def _pass_on(self) -> None:
        """Passes the turn to the next waiter directly, so that a newcomer cannot take it."""
        self._is_busy = bool(self._waiting)
        if self._waiting:
            first = min(self._waiting, key=lambda each: each.rank)
            self._waiting.remove(first)
            first.has_turn = True
            first.called.set()
