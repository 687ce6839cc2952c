"""The in-memory index of the log: where the records of each unsettled run are. The log has no index on disk. Damaged
records are found and dropped here, when the journal is opened, and with each the later records of its run: its events
have no gap.

It takes 16 bytes per event, about 200 per commit and 250 per run while the run is in the log, plus the frames that the
scan caches. Only the writer thread changes it, and only after a commit, so other threads find durable events alone.
"""

import sqlite3
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from typing import Final

from holdfast.core.ids import RunId
from holdfast.ports.journal import Append, JournalHead
from holdfast.storage.sqlite import journal_records

_MAX_CACHED: Final = 32 << 20
"""Bytes of frames that a scan caches. The frames of a run that waits for a person stay until its next append."""


@dataclass(slots=True, eq=False)
class LoggedRun:
    """The state of a run's journal. `rows[i]` and `places[i]` are the row of event i + 1 and its position there; both
    are empty for a run that is not in the log."""

    alias: int = 0  # 0: the run has no row in `runs` yet
    epoch: int = 0
    last_seq: int = 0
    sealed: bool = False
    pruned: bool = False
    rows: "array[int]" = field(default_factory=partial(array, "q"))
    places: "array[int]" = field(default_factory=partial(array, "q"))
    frames: list[bytes] = field(default_factory=list)
    """All frames, cached by the scan until the next append: recovery reads open runs right after the journal is
    opened, and would otherwise read and check every record a second time."""

    def head(self) -> JournalHead:
        return JournalHead(self.epoch, self.last_seq, self.sealed, self.pruned)


class JournalIndex:
    """The content of the log. The runs of a commit share its row; it is deleted when all of them are settled."""

    def __init__(self) -> None:
        self.runs: dict[RunId, LoggedRun] = {}
        self.settled: dict[RunId, LoggedRun] = {}
        """Archived runs that still have events in rows which other runs keep in the log."""
        self.live = 0  # The number of events of `runs`
        self.shared: dict[int, tuple[int, int]] = {}
        """Rows with live events: the number of live events and of all events."""
        self.dead: dict[int, int] = {}  # Rows without live events: the number of events
        self.next_row = 1
        self.next_alias = 1
        self.torn = 0
        """The number of records that the scan erased because they, or an earlier one of their run, were damaged."""

    def add_row(self, row: int, events: int) -> None:
        """A row with this many events was committed."""
        self.shared[row] = events, events
        self.live += events
        self.next_row = row + 1

    def add_append(self, item: Append, log: LoggedRun, row: int, at: int) -> None:
        """An append was committed at position `at` of its row."""
        run, log.epoch, entries, seals = item
        if not entries:
            return
        if not log.rows:
            self.runs[run] = log
        if log.frames:
            log.frames = []
        for _, frame in entries:
            log.rows.append(row)
            log.places.append(at)  # last: readers use its length as the number of events
            at += journal_records.HEAD + len(frame)
        log.last_seq = entries[-1].seq
        log.sealed = seals

    def settle(self, run: RunId) -> None:
        log = self.runs.pop(run)
        self._release(log)
        if any(row in self.shared for row in log.rows):
            self.settled[run] = log

    def forget(self, run: RunId) -> None:
        log = self.runs.pop(run, None)
        if log is not None:
            self._release(log)
        self.settled.pop(run, None)

    def remove_rows(self, rows: Sequence[int]) -> None:
        """These rows were deleted."""
        for row in rows:
            del self.dead[row]
        if not self.dead:
            self.settled = {run: log for run, log in self.settled.items() if any(n in self.shared for n in log.rows)}

    def _release(self, log: LoggedRun) -> None:
        log.frames = []
        self.live -= len(log.rows)
        for row in log.rows:
            live, events = self.shared[row]
            if live > 1:
                self.shared[row] = live - 1, events
            else:
                del self.shared[row]
                self.dead[row] = events


def scan(db: sqlite3.Connection) -> JournalIndex:
    """Build the index from disk. A record with a wrong checksum is erased with all later records of its run, so that
    the run continues after its last intact event."""
    index = JournalIndex()
    logs: dict[int, LoggedRun] = {}  # by alias
    broken: set[int] = set()
    torn: list[tuple[int, int, bytes | None]] = []  # row, place, frame
    useless: list[int] = []
    row, room = 0, _MAX_CACHED
    for row, blob in db.execute("SELECT n, records FROM log ORDER BY n"):
        live = events = 0
        if not isinstance(blob, bytes):
            index.torn += 1
            useless.append(row)
            continue
        for alias, seq, places, frames, seals, whole in journal_records.ranges(blob):
            log = logs.get(alias)
            if log is None and whole:
                log = logs[alias] = _load_run(db, alias, index)
            follows = log is not None and seq == log.last_seq + 1
            if log is None or not whole or not (follows or log.pruned) or alias in broken:
                if whole or follows:  # otherwise its alias may be what is damaged
                    broken.add(alias)
                torn += [(row, at, frame) for at, frame in zip_longest(places, frames)]
                continue
            count = len(places)
            log.rows.extend(array("q", [row]) * count)
            log.places.extend(places)
            events += count
            if not log.pruned:  # nor archived
                if room > 0 and len(log.frames) == log.last_seq:
                    log.frames += frames
                    room -= places[-1] + journal_records.HEAD + len(frames[-1]) - places[0]
                log.last_seq += count
                log.sealed = log.sealed or seals
                live += count
        index.live += live
        if live:
            index.shared[row] = live, events
        else:
            index.dead[row] = events
    _repair(db, torn, useless)
    index.torn += len(torn)
    index.runs = {run: log for run, log in index.runs.items() if log.rows}
    for log in index.runs.values():
        if len(log.frames) < log.last_seq:  # some were not cached
            log.frames = []
    index.settled = {run: log for run, log in index.settled.items() if any(n in index.shared for n in log.rows)}
    (top,) = db.execute("SELECT ifnull(max(alias), 0) FROM runs").fetchone()
    index.next_row, index.next_alias = row + 1, max(top, *logs, 0) + 1
    return index


def _load_run(db: sqlite3.Connection, alias: int, index: JournalIndex) -> LoggedRun:
    """The records of an archived, pruned or unknown run are dead: `pruned` marks them here."""
    row = db.execute("SELECT run, epoch, archived OR pruned FROM runs WHERE alias = ?", (alias,)).fetchone()
    if row is None:
        return LoggedRun(alias, pruned=True)
    run, epoch, over = row
    log = LoggedRun(alias, epoch, pruned=bool(over))
    if over:
        index.settled[run] = log
    else:
        index.runs[run] = log
    return log


def _repair(db: sqlite3.Connection, torn: Sequence[tuple[int, int, bytes | None]], useless: Sequence[int]) -> None:
    remove(db, useless)
    for row, at, frame in torn:
        if frame is None:  # not even a head
            db.execute("UPDATE log SET records = substr(records, 1, ?) WHERE n = ?", (at, row))
        else:
            _blank(db, row, at, len(frame))


def erase(db: sqlite3.Connection, row: int, at: int) -> None:
    """Erase an intact record in place."""
    with db.blobopen("log", "records", row, readonly=True) as blob:
        blob.seek(at)
        length = journal_records.frame_length(blob.read(journal_records.HEAD))
    _blank(db, row, at, length)


def _blank(db: sqlite3.Connection, row: int, at: int, length: int) -> None:
    """Writes only the pages of the record."""
    with db.blobopen("log", "records", row) as blob:
        blob.seek(at)
        blob.write(journal_records.blank(length))


def remove(db: sqlite3.Connection, rows: Sequence[int]) -> None:
    """Delete rows of the log; adjacent rows of the sorted list with one statement."""
    ranges: list[list[int]] = []
    for n in rows:
        if ranges and ranges[-1][1] == n - 1:
            ranges[-1][1] = n
        else:
            ranges.append([n, n])
    db.executemany("DELETE FROM log WHERE n BETWEEN ? AND ?", ranges)
