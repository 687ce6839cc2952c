"""The events of runs, out of the rows of the log that they share with others."""

import sqlite3
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import count
from typing import Final

from holdfast.core.events import Entry, named
from holdfast.storage.sqlite import records
from holdfast.storage.sqlite.logged import Logged

_ROWS: Final = "SELECT n, records FROM log WHERE"
_entry = partial(named, Entry)


def entries_at(db: sqlite3.Connection, log: Logged, after: int, limit: int) -> list[Entry] | None:
    """The entries behind `after`, up to a damaged one. None: they are no longer all there."""
    return _collect(db, [_Want(log, after, limit)])[0]


def entries_of(db: sqlite3.Connection, logs: Sequence[Logged]) -> list[list[Entry] | None]:
    """The same for all entries of several runs. Those that the scan kept need not be looked for."""
    kept = [log.frames for log in logs]  # once: the writer drops them when the run goes on
    found = [
        _entries(1, frames) if len(frames) == log.last_seq else None for log, frames in zip(logs, kept, strict=True)
    ]
    rest = [n for n, entries in enumerate(found) if entries is None]
    for n, entries in zip(rest, _collect(db, [_Want(logs[n], 0, logs[n].last_seq) for n in rest]), strict=True):
        found[n] = entries
    return found


def _entries(seq: int, frames: Iterable[bytes]) -> list[Entry]:
    return list(map(_entry, zip(count(seq), frames)))


class _Want:
    """What is wanted of a run, and what was found so far."""

    __slots__ = ("entries", "gone", "log", "places", "rows", "seq", "torn")

    def __init__(self, log: Logged, after: int, limit: int) -> None:
        self.log = log
        self.places = log.places[after : after + limit]
        self.rows = log.rows[after : after + len(self.places)]
        self.seq = after + 1
        self.entries: list[Entry] = []
        self.torn = self.gone = False

    def take(self, row: int, blob: object) -> None:
        at = len(self.entries)
        if self.torn or at == len(self.rows) or self.rows[at] != row:
            return
        places = self.places[at : bisect_right(self.rows, row, at)]  # rows come in order
        try:
            frames = records.frames_at(blob, places, self.log.alias, self.seq) if isinstance(blob, bytes) else []
        except LookupError:
            self.gone = self.torn = True
            return
        self.entries += _entries(self.seq, frames)
        self.seq += len(frames)
        self.torn = len(frames) < len(places)

    def found(self) -> list[Entry] | None:
        whole = len(self.entries) == len(self.rows)
        return self.entries if whole or (self.torn and not self.gone) else None


def _collect(db: sqlite3.Connection, wants: Sequence[_Want]) -> list[list[Entry] | None]:
    """Each row is read once, whoever has events in it."""
    readers: dict[int, list[_Want]] = {}
    for want in wants:
        for row in dict.fromkeys(want.rows):
            readers.setdefault(row, []).append(want)
    if readers:
        for row, blob in _fetch(db, sorted(readers)):
            for want in readers.get(row, ()):
                want.take(row, blob)
    return [want.found() for want in wants]


def _fetch(db: sqlite3.Connection, rows: Sequence[int]) -> sqlite3.Cursor:
    first, last = rows[0], rows[-1]
    if last - first <= 2 * len(rows):  # most of them are wanted
        return db.execute(f"{_ROWS} n BETWEEN ? AND ? ORDER BY n", (first, last))
    wanted = f"[{','.join(map(str, rows))}]"
    return db.execute(f"{_ROWS} n IN (SELECT value FROM json_each(?)) ORDER BY n", (wanted,))
