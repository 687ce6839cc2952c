"""Wakes the tasks that wait for the next time something happens, as cheaply as the event loop allows.

A notifier has no state: a waiter must check its condition first, without an `await` in between. It is rung once per
commit for every run that streams, and a new `anyio.Event` each time was a tenth of the cost of a token; on asyncio a
waiter is therefore a bare future.
"""

import asyncio

import anyio


class Notifier:
    """Wakes any number of waiters. May be created outside an event loop."""

    __slots__ = ("_event", "_futures", "awaited")

    def __init__(self) -> None:
        self._futures: list[asyncio.Future[None]] = []
        self._event: anyio.Event | None = None
        self.awaited = False  # False if nobody waits, so that ringing can be skipped

    def ring(self) -> None:
        self.awaited = False
        if self._futures:
            futures, self._futures = self._futures, []
            for future in futures:
                if not future.done():
                    future.set_result(None)
        elif self._event is not None:
            self._event.set()
            self._event = None

    async def wait(self) -> None:
        """Wait until the next `ring`."""
        self.awaited = True
        try:
            future = asyncio.get_running_loop().create_future()
        except RuntimeError:
            if self._event is None:
                self._event = anyio.Event()
            await self._event.wait()
            return
        self._futures.append(future)
        try:
            await future
        except BaseException:
            if future in self._futures:
                self._futures.remove(future)
            raise
