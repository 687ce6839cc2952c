"""Sleeping at a pace, many at a time.

A timer of its own for each token cost as much as the token's whole way from the writer to the subscriber, and event
loops keep time in milliseconds anyway: so whoever sleeps until the same millisecond shares a timer.
"""

import asyncio
import math
from asyncio import get_running_loop
from collections.abc import Awaitable

import anyio


class Pace:
    """For the tasks of one event loop at a time. On trio it is `anyio.sleep_until`."""

    __slots__ = ("_loop", "_sleeping")

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sleeping: dict[int, list[asyncio.Future[None]]] = {}
        """Who wakes at each millisecond of the loop's time. One that was cancelled stays until then."""

    def now(self) -> float:
        """Seconds on the clock that `until` goes by."""
        try:
            return get_running_loop().time()
        except RuntimeError:
            return anyio.current_time()

    def until(self, moment: float) -> Awaitable[None]:
        """To be awaited at once: not before `moment`, and at the earliest at the next turn of the event loop."""
        try:
            loop = get_running_loop()
        except RuntimeError:
            return anyio.sleep_until(moment)
        if loop is not self._loop:  # the timers of an earlier one will never fire
            self._loop, self._sleeping = loop, {}
        millisecond = math.ceil(moment * 1000)
        sleepers = self._sleeping.get(millisecond)
        if sleepers is None:
            sleepers = self._sleeping[millisecond] = []
            loop.call_at(millisecond / 1000, self._wake, millisecond)
        future = loop.create_future()
        sleepers.append(future)
        return future

    def _wake(self, millisecond: int) -> None:
        for future in self._sleeping.pop(millisecond, ()):
            if not future.done():
                future.set_result(None)
