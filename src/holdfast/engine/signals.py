"""Wakes waiting tasks. A `Notifier` wakes those that wait for one object, `Signals` wakes tasks of this process by key,
and the `WakeupHub` also wakes tasks of other nodes. A signal is a hint: the waiter always reads the journal or the
store again. How hints reach other nodes: `ports.wakeups`, `storage.wakeup_transport`."""

import asyncio
from collections.abc import Collection, Hashable
from typing import Final
from weakref import WeakValueDictionary

import anyio

from holdfast.core.ids import NodeId, RunId
from holdfast.ports.wakeups import Wake, Wakeups

ERASE: Final = "erase"  # The signal that something is to be erased now rather than at the next sweep
SUBSCRIBED: Final = "subscribed"  # The signal that a device wants notifications
_ANY: Final = frozenset({Wake("control"), Wake("appended")})
_MAX_REMEMBERED: Final = 10_000  # Runs to read that are remembered by id; beyond it, all are read


class Notifier:
    """Wakes the tasks that wait for the next time something happens. May be created outside an event loop.

    It has no state: a waiter must check its condition first, without an `await` in between. `notify` is called once per
    commit for every run that streams, and a new `anyio.Event` each time was a tenth of the cost of a token; on asyncio
    a waiter is therefore a bare future."""

    __slots__ = ("_event", "_futures", "awaited")

    def __init__(self) -> None:
        self._futures: list[asyncio.Future[None]] = []
        self._event: anyio.Event | None = None
        self.awaited = False  # False if nobody waits, so that `notify` can be skipped

    def notify(self) -> None:
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
        """Wait until the next `notify`."""
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


class Signals:
    """Events by key. An event lives as long as somebody holds it, so unused keys cost nothing."""

    def __init__(self) -> None:
        self._waiting: WeakValueDictionary[Hashable, anyio.Event] = WeakValueDictionary()

    def event_for(self, key: Hashable) -> anyio.Event:
        """The event of the next `fire`. Get it before reading and wait for it afterwards, so that nothing in between is
        missed."""
        signal = self._waiting.get(key)
        if signal is None:
            signal = self._waiting[key] = anyio.Event()
        return signal

    def fire(self, key: Hashable) -> None:
        signal = self._waiting.pop(key, None)
        if signal is not None:
            signal.set()

    def fire_all(self, kind: str | None = None) -> None:
        """Fire all signals, or those of this kind for all runs."""
        for key in list(self._waiting):
            if kind is None or (isinstance(key, tuple) and key[0] == kind):
                self.fire(key)


async def wait_for(signal: anyio.Event, at_most: float) -> None:
    """Wait for the signal, at most this many seconds."""
    with anyio.move_on_after(at_most):
        await signal.wait()


class WakeupHub:
    """Connects the signals of this process to those of other nodes through the `Wakeups` port."""

    def __init__(self, node: NodeId, wakeups: Wakeups) -> None:
        self.signals = Signals()
        self._node = node
        self._wakeups = wakeups
        self._controlled: set[RunId] | None = set()

    async def announce(self, *wakes: Wake) -> None:
        self._fire(wakes)
        await self._wakeups.notify(self._node, wakes)

    async def listen(self) -> None:
        """Runs as long as the engine: fires the signals that other nodes send."""
        async with self._wakeups.listen(self._node) as listener:
            while True:
                self._fire(await listener.next())

    def controlled(self) -> set[RunId] | None:
        """Runs whose rows may have changed since the last call; None means any."""
        runs, self._controlled = self._controlled, set()
        return runs

    def _fire(self, wakes: Collection[Wake]) -> None:
        for wake in wakes:
            if wake.kind == "control":
                self._control(wake.run)
            if wake in _ANY:
                self.signals.fire_all(wake.kind)
            else:
                self.signals.fire((wake.kind, wake.run))

    def _control(self, run: RunId | None) -> None:
        if run is None or self._controlled is None or len(self._controlled) >= _MAX_REMEMBERED:
            self._controlled = None
        else:
            self._controlled.add(run)
        self.signals.fire("control")
