"""Timers shared by many tasks, for agents that emit tokens at a fixed rate. One timer per token would cost as
much as the token's whole path to its subscriber, so callbacks due in the same millisecond share one."""

import asyncio
import math
from collections.abc import Callable

EmitToken = Callable[[int], bool]
"""Emits the token with this number; returns whether the next may follow."""


class SharedTimers:
    """Timers of one event loop at a time."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due: dict[int, list[Callable[[], None]]] = {}
        """Callbacks by millisecond of the loop's time. Callbacks of cancelled waits do nothing."""

    def now(self) -> float:
        """Seconds on the clock that the timers use."""
        return asyncio.get_running_loop().time()

    async def emit_at_rate(self, start: float, rate: float, numbers: range, emit: EmitToken) -> int:
        """Emit the numbers in order, the nth at `start + n / rate`, until `emit` returns False or all are emitted.
        Returns the next number."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[int] = loop.create_future()
        n, end = numbers.start, numbers.stop

        def due() -> None:
            nonlocal n
            if future.done():  # cancelled
                return
            try:
                more = emit(n)
            except Exception as error:  # noqa: BLE001 - a loop callback: the waiting task raises it
                future.set_exception(error)
                return
            n += 1
            if future.done():  # emitting it cancelled the task
                return
            if more and n < end:
                self._call_at(start + n / rate, due, loop)
            else:
                future.set_result(n)

        if n < end:
            self._call_at(start + n / rate, due, loop)
            await future
        return n

    def _call_at(self, moment: float, call: Callable[[], None], loop: asyncio.AbstractEventLoop) -> None:
        if loop is not self._loop:  # timers of an earlier loop never fire
            self._loop, self._due = loop, {}
        millisecond = math.ceil(moment * 1000)
        due = self._due.get(millisecond)
        if due is None:
            due = self._due[millisecond] = []
            loop.call_at(millisecond / 1000, self._fire, millisecond)
        due.append(call)

    def _fire(self, millisecond: int) -> None:
        for call in self._due.pop(millisecond, ()):
            call()
