"""Reading the events of runs from the rows of the log, which several runs share. Damage found when the journal was
opened is gone by then (`journal_index`); at a record that was damaged since, the events of its run end."""

import sqlite3
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Final

from holdfast.core.events import Entry
from holdfast.storage.sqlite import journal_records
from holdfast.storage.sqlite.journal_index import LoggedRun

_ROWS: Final = "SELECT n, records FROM log WHERE"


def entries_at(
    db: sqlite3.Connection, log: LoggedRun, after: int, limit: int, max_bytes: int | None = None
) -> list[Entry] | None:
    """The entries after `after`, up to a damaged one or the row in which `max_bytes` are reached. None: some have left
    the log."""
    return _collect(db, [_RequestedRun(log, after, limit)], max_bytes)[0]


def entries_of(db: sqlite3.Connection, logs: Sequence[LoggedRun]) -> list[list[Entry] | None]:
    """`entries_at` for all entries of several runs. Frames that the scan cached are not read again."""
    cached = [log.frames for log in logs]  # read once: the writer drops them at the next append
    found = [
        _entries(1, frames) if len(frames) == log.last_seq else None for log, frames in zip(logs, cached, strict=True)
    ]
    rest = [n for n, entries in enumerate(found) if entries is None]
    for n, entries in zip(rest, _collect(db, [_RequestedRun(logs[n], 0, logs[n].last_seq) for n in rest]), strict=True):
        found[n] = entries
    return found


def _entries(seq: int, frames: Iterable[bytes]) -> list[Entry]:
    return list(map(Entry, count(seq), frames))


class _RequestedRun:
    """The requested part of a run, and the entries found so far."""

    __slots__ = ("enough", "entries", "gone", "log", "places", "rows", "seq", "size", "torn")

    def __init__(self, log: LoggedRun, after: int, limit: int) -> None:
        self.log = log
        self.places = log.places[after : after + limit]
        self.rows = log.rows[after : after + len(self.places)]
        self.seq = after + 1
        self.entries: list[Entry] = []
        self.size = 0
        self.torn = self.gone = self.enough = False

    def take(self, row: int, blob: object) -> None:
        at = len(self.entries)
        if self.torn or at == len(self.rows) or self.rows[at] != row:
            return
        places = self.places[at : bisect_right(self.rows, row, at)]  # rows are sorted
        try:
            frames = (
                journal_records.frames_at(blob, places, self.log.alias, self.seq) if isinstance(blob, bytes) else []
            )
        except LookupError:
            self.gone = self.torn = True
            return
        self.entries += _entries(self.seq, frames)
        self.size += sum(map(len, frames))
        self.seq += len(frames)
        self.torn = len(frames) < len(places)

    def found(self) -> list[Entry] | None:
        whole = len(self.entries) == len(self.rows)
        return self.entries if whole or self.enough or (self.torn and not self.gone) else None


def _collect(
    db: sqlite3.Connection, wants: Sequence[_RequestedRun], max_bytes: int | None = None
) -> list[list[Entry] | None]:
    """Read each row once for all runs that have events in it, until one of them has `max_bytes`."""
    readers: dict[int, list[_RequestedRun]] = {}
    for want in wants:
        for row in dict.fromkeys(want.rows):
            readers.setdefault(row, []).append(want)
    if readers:
        for row, blob in _fetch(db, sorted(readers)):
            for want in readers.get(row, ()):
                want.take(row, blob)
                want.enough = max_bytes is not None and want.size >= max_bytes and not want.gone
            if any(want.enough for want in readers.get(row, ())):
                break
    return [want.found() for want in wants]


def _fetch(db: sqlite3.Connection, rows: Sequence[int]) -> sqlite3.Cursor:
    first, last = rows[0], rows[-1]
    if last - first <= 2 * len(rows):  # most of the range is requested
        return db.execute(f"{_ROWS} n BETWEEN ? AND ? ORDER BY n", (first, last))
    wanted = f"[{','.join(map(str, rows))}]"
    return db.execute(f"{_ROWS} n IN (SELECT value FROM json_each(?)) ORDER BY n", (wanted,))
