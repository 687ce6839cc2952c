"""The change feed: what changed in all sessions of an owner, from a cursor and then live, for sidebars and other tabs.
A cursor that is too old gets a reset. How other nodes learn of a change: `engine.signals`; how browser tabs share the
stream: `web/src/core/change-feed.ts`. How many changes are kept: `keep_changes` in `engine.settings`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import anyio

from holdfast.core.errors import InvalidInputError
from holdfast.core.ids import OwnerId
from holdfast.engine.run_feed import RunFeed
from holdfast.engine.signals import Signals, wait_for
from holdfast.ports.store import Change, Store, Tx

_PAGE = 500
_SOON = 0.05  # Seconds until held-back changes are read again
_DIGITS = 18  # Most digits in a cursor's number


@dataclass(frozen=True, slots=True)
class Changes:
    """`reset`: the cursor was too old or of another generation; read the lists again, then go on from `cursor`."""

    items: Sequence[Change]
    cursor: str
    reset: bool = False


class ChangeSubscription:
    __slots__ = ("_feed", "_from", "_owner", "_pause", "_seen", "_signals", "_store")  # thousands may be waiting

    def __init__(self, store: Store, signals: Signals, feed: RunFeed, owner: OwnerId, after: str | None) -> None:
        self._store = store
        self._signals = signals
        self._feed = feed
        self._owner = owner
        self._from: tuple[str, int] | None = None if after is None else parse_cursor(after)
        self._seen: anyio.Event | None = None  # armed before the last read, if that returned everything
        self._pause = feed.poll_interval

    async def begin(self) -> str:
        """Fix and return the starting cursor, by default now. Call it before telling a client that it is subscribed."""
        if self._from is None:
            _, newest = await self._store.read(lambda tx: tx.change_bounds())
            self._from = (self._store.generation, newest)
        return f"{self._from[0]}-{self._from[1]}"

    async def next(self) -> Changes | None:
        """The next changes or a reset; None if the server stops."""
        await self.begin()
        while not self._feed.stopping:
            seen, self._seen = self._seen, None
            if seen is not None:
                await wait_for(seen, self._pause)
                continue
            signal = self._signals.event_for(("changed", None))
            assert self._from is not None
            generation, after = self._from
            (oldest, newest), found, held = await self._store.read(partial(_read, after=after))
            if generation != self._store.generation or not oldest <= after <= newest:
                return self._move(newest, (), reset=True)
            if len(found) < _PAGE:
                self._seen, self._pause = signal, _SOON if held else self._feed.poll_interval
            if found:
                moved = self._move(found[-1].n, [change for change in found if change.owner == self._owner])
                if moved.items:
                    return moved
        return None

    def _move(self, n: int, items: Sequence[Change], *, reset: bool = False) -> Changes:
        self._from = (self._store.generation, n)
        return Changes(items, f"{self._store.generation}-{n}", reset)


def _read(tx: Tx, after: int) -> tuple[tuple[int, int], Sequence[Change], bool]:
    """Bounds and rows in one snapshot, because the feed may be trimmed at any time."""
    return tx.change_bounds(), tx.changes(after, _PAGE), tx.changes_held_back()


def parse_cursor(text: str) -> tuple[str, int]:
    generation, _, n = text.rpartition("-")
    if not generation or not n.isdecimal() or not n.isascii() or len(n) > _DIGITS:
        raise InvalidInputError("cursor", "is not a cursor of this feed; omit it to start from now")
    return generation, int(n)
