"""Sleeping and speaking at a pace, many at a time.

A timer of its own for each token cost as much as the token's whole way from the writer to the subscriber, and event
loops keep time in milliseconds anyway: so whatever is due in the same millisecond shares a timer. Nor is a task woken
for each token, as little as one is for what a model says.
"""

import asyncio
import math
from asyncio import get_running_loop
from collections.abc import Awaitable, Callable

import anyio

Say = Callable[[int], bool]
"""Says the token of this number; whether the next may follow."""


class Pace:
    """For the tasks of one event loop at a time. On trio it is `anyio.sleep_until`."""

    __slots__ = ("_due", "_loop")

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due: dict[int, list[Callable[[], None]]] = {}
        """What is called at each millisecond of the loop's time. For one that was cancelled, in vain."""

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
        future: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not future.done():
                future.set_result(None)

        self._at(moment, wake, loop)
        return future

    async def along(self, start: float, rate: float, numbers: range, say: Say) -> int:
        """`say` the numbers one after the other, the n-th at `start + n / rate`, until it declines or they are said.
        The number of the next is returned."""
        try:
            loop = get_running_loop()
        except RuntimeError:
            for n in numbers:
                await anyio.sleep_until(start + n / rate)
                if not say(n):
                    return n + 1
            return numbers.stop
        future: asyncio.Future[int] = loop.create_future()
        n, end = numbers.start, numbers.stop

        def due() -> None:
            nonlocal n
            if future.done():  # cancelled
                return
            try:
                more = say(n)
            except Exception as error:  # noqa: BLE001 - the loop calls this, so it is raised where somebody waits
                future.set_exception(error)
                return
            n += 1
            if future.done():  # saying it had the task cancelled
                return
            if more and n < end:
                self._at(start + n / rate, due, loop)
            else:
                future.set_result(n)

        if n < end:
            self._at(start + n / rate, due, loop)
            await future
        return n

    def _at(self, moment: float, call: Callable[[], None], loop: asyncio.AbstractEventLoop) -> None:
        if loop is not self._loop:  # the timers of an earlier one will never fire
            self._loop, self._due = loop, {}
        millisecond = math.ceil(moment * 1000)
        due = self._due.get(millisecond)
        if due is None:
            due = self._due[millisecond] = []
            loop.call_at(millisecond / 1000, self._ring, millisecond)
        due.append(call)

    def _ring(self, millisecond: int) -> None:
        for call in self._due.pop(millisecond, ()):
            call()
