"""Who waits in this process for what. A signal is a hint: the waiter always looks at the journal or the store again."""

from collections.abc import Collection, Hashable
from typing import Final
from weakref import WeakValueDictionary

import anyio

from holdfast.core.ids import NodeId, RunId
from holdfast.ports import Wake, Wakeups

_ANY: Final = frozenset({Wake("control"), Wake("appended")})
_MOST: Final = 10_000
"""Runs to look at that are remembered by name; beyond it, all are looked at."""


class Signal:
    __slots__ = ("__weakref__", "event")

    def __init__(self) -> None:
        self.event = anyio.Event()


class Signals:
    """Signals by key. One lives as long as somebody holds it: nothing is kept for keys that nobody waits for."""

    def __init__(self) -> None:
        self._waiting: WeakValueDictionary[Hashable, Signal] = WeakValueDictionary()

    def armed(self, key: Hashable) -> Signal:
        """Take this before looking, wait on it after: what happens in between is not missed."""
        signal = self._waiting.get(key)
        if signal is None:
            signal = self._waiting[key] = Signal()
        return signal

    def fire(self, key: Hashable) -> None:
        signal = self._waiting.pop(key, None)
        if signal is not None:
            signal.event.set()

    def fire_kind(self, kind: str) -> None:
        """Of whatever run."""
        for key in list(self._waiting):
            if isinstance(key, tuple) and key[0] == kind:
                self.fire(key)

    def fire_all(self) -> None:
        for key in list(self._waiting):
            self.fire(key)


async def wait(signal: Signal, at_most: float) -> None:
    """Until the signal, or until it is time to look anyway."""
    with anyio.move_on_after(at_most):
        await signal.event.wait()


class Hub:
    """Signals of this process, joined to the other nodes' through the `Wakeups` port."""

    def __init__(self, node: NodeId, wakeups: Wakeups) -> None:
        self.signals = Signals()
        self._node = node
        self._wakeups = wakeups
        self._controlled: set[RunId] | None = set()

    async def announce(self, *wakes: Wake) -> None:
        self._fire(wakes)
        await self._wakeups.notify(self._node, wakes)

    async def listen(self) -> None:
        """Runs for the engine's life."""
        async with self._wakeups.listen(self._node) as listener:
            while True:
                self._fire(await listener.next())

    def controlled(self) -> set[RunId] | None:
        """Runs whose row somebody asked to be looked at since the last call; None: it may have been any."""
        runs, self._controlled = self._controlled, set()
        return runs

    def _fire(self, wakes: Collection[Wake]) -> None:
        for wake in wakes:
            if wake.kind == "control":
                self._control(wake.run)
            if wake in _ANY:
                self.signals.fire_kind(wake.kind)
            else:
                self.signals.fire((wake.kind, wake.run))

    def _control(self, run: RunId | None) -> None:
        if run is None or self._controlled is None or len(self._controlled) >= _MOST:
            self._controlled = None
        else:
            self._controlled.add(run)
        self.signals.fire("control")
