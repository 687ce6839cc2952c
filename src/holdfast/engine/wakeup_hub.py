"""Signals that wake waiting tasks, in this process and from other nodes. A signal is a hint: the waiter always reads
the journal or the store again."""

from collections.abc import Collection, Hashable
from typing import Final
from weakref import WeakValueDictionary

import anyio

from holdfast.core.ids import NodeId, RunId
from holdfast.ports.wakeups import Wake, Wakeups

_ANY: Final = frozenset({Wake("control"), Wake("appended")})
_MOST: Final = 10_000  # Runs to read that are remembered by id; beyond it, all are read


class Signals:
    """Events by key. An event lives as long as somebody holds it, so unused keys cost nothing."""

    def __init__(self) -> None:
        self._waiting: WeakValueDictionary[Hashable, anyio.Event] = WeakValueDictionary()

    def armed(self, key: Hashable) -> anyio.Event:
        """Arm before reading and wait afterwards, so that nothing in between is missed."""
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
        """For the engine's life: fire the signals of other nodes."""
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
        if run is None or self._controlled is None or len(self._controlled) >= _MOST:
            self._controlled = None
        else:
            self._controlled.add(run)
        self.signals.fire("control")
