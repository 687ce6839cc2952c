"""Where the records of each unsettled run are in the log. The log has no index on disk; this is it.

Memory is 16 bytes an event, some 200 a commit and 250 a run, for as long as the run is in the log, and what the scan
keeps. It is changed by the journal's writer thread alone, after a commit and never before, so that other threads find
only what is durable.
"""

import sqlite3
from array import array
from collections.abc import Sequence
from typing import Final

from holdfast.core.errors import Fenced, Refused, Sealed, SeqConflict, TooLarge
from holdfast.core.ids import RunId
from holdfast.ports import Append, Head
from holdfast.storage.sqlite import records

_KEPT: Final = 32 << 20
"""Bytes of the log that a scan keeps. What belongs to a run that waits for a person stays until it goes on."""


class Logged:
    """A run as the writer sees it. `rows[i]` and `places[i]` are the row of event i + 1 and where it stands in it;
    there are none for a run not in the log."""

    __slots__ = ("alias", "epoch", "frames", "last_seq", "places", "pruned", "rows", "sealed")

    def __init__(
        self, alias: int = 0, epoch: int = 0, last_seq: int = 0, sealed: bool = False, pruned: bool = False
    ) -> None:
        self.alias = alias
        """0: the run has no row of its own yet."""
        self.epoch = epoch
        self.last_seq = last_seq
        self.sealed = sealed
        self.pruned = pruned
        self.rows = array("q")
        self.places = array("q")
        self.frames: list[bytes] = []
        """All events as the scan found them, if it could keep them and the run has not gone on: whoever opens the
        journal reads it to the end next, and would find and check every record a second time."""

    def head(self) -> Head:
        return Head(self.epoch, self.last_seq, self.sealed, self.pruned)


def refusal(log: Logged, item: Append, limit: int) -> Refused | None:
    """Why the append cannot be taken. The writer calls this and inserts in one go, so nothing can come between."""
    run, epoch, entries, _ = item
    if epoch < log.epoch:
        return Fenced(run, epoch, log.epoch)
    if log.sealed or log.pruned:
        return Sealed(run)
    last = log.last_seq
    for seq, frame in entries:
        if seq != last + 1:
            return SeqConflict(run, seq, last)
        last = seq
        if len(frame) > limit:
            return TooLarge(run, len(frame), limit)
    return None


class Index:
    """What is in the log. A row is shared by the runs of its commit, and leaves when all of them are settled."""

    def __init__(self) -> None:
        self.runs: dict[RunId, Logged] = {}
        self.settled: dict[RunId, Logged] = {}
        """Runs whose events are in segments by now, and in rows that others keep in the log."""
        self.live = 0
        """Events of `runs`."""
        self.shared: dict[int, tuple[int, int]] = {}
        """How many events of a row are live, and how many it has."""
        self.dead: dict[int, int] = {}
        """Rows without live events, and how many they have."""
        self.next_row = 1
        self.next_alias = 1
        self.torn = 0
        """Records that were found damaged, or behind a damaged one, and blanked."""

    def fill(self, row: int, events: int) -> None:
        """`row` is committed, with this many events."""
        self.shared[row] = events, events
        self.live += events
        self.next_row = row + 1

    def grow(self, item: Append, log: Logged, row: int, at: int) -> None:
        """`item` is committed, from `at` on in its row."""
        run, log.epoch, entries, seals = item
        if not entries:
            return
        if not log.rows:
            self.runs[run] = log
        if log.frames:
            log.frames = []
        for _, frame in entries:
            log.rows.append(row)
            log.places.append(at)  # last: readers take this as the number of events
            at += records.HEAD + len(frame)
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

    def removed(self, rows: Sequence[int]) -> None:
        """These have left the log."""
        for row in rows:
            del self.dead[row]
        if not self.dead:
            self.settled = {run: log for run, log in self.settled.items() if any(n in self.shared for n in log.rows)}

    def _release(self, log: Logged) -> None:
        log.frames = []
        self.live -= len(log.rows)
        for row in log.rows:
            live, events = self.shared[row]
            if live > 1:
                self.shared[row] = live - 1, events
            else:
                del self.shared[row]
                self.dead[row] = events


def scan(db: sqlite3.Connection) -> Index:
    """The index of what is on disk. A record with a wrong checksum is blanked with what follows it in its run, so that
    the run goes on from its last good event."""
    index = Index()
    logs: dict[int, Logged] = {}  # by alias
    broken: set[int] = set()
    torn: list[tuple[int, int, int]] = []  # row, place, length
    useless: list[int] = []
    row, room = 0, _KEPT
    for row, blob in db.execute("SELECT n, records FROM log ORDER BY n"):
        live = events = read = 0
        if not isinstance(blob, bytes):
            index.torn += 1
            useless.append(row)
            continue
        for alias, seq, places, frames, seals, end in records.stretches(blob):
            log = logs.get(alias)
            if log is None:
                log = logs[alias] = _known(db, alias, index)
            if alias in broken or not (log.pruned or seq == log.last_seq + 1):
                break
            count, read = len(places), end
            log.rows.extend(array("q", [row]) * count)
            log.places.extend(places)
            events += count
            if not log.pruned:  # nor settled
                if room > 0 and len(log.frames) == log.last_seq:
                    log.frames += frames
                    room -= end - places[0]
                log.last_seq += count
                log.sealed = log.sealed or seals
                live += count
        for at, alias, seq, length, seals, whole in records.walk(blob, read):  # what is not as it should be
            log = logs.get(alias)
            if log is None and whole:
                log = logs[alias] = _known(db, alias, index)
            next_one = log is not None and seq == log.last_seq + 1
            if log is None or not whole or not (next_one or log.pruned) or alias in broken:
                if whole or next_one:  # otherwise what it says of its run may be the damage
                    broken.add(alias)
                torn.append((row, at, length))
                continue
            log.rows.append(row)
            log.places.append(at)
            events += 1
            if log.pruned:  # or settled
                continue
            log.last_seq = seq
            if seals:
                log.sealed = True
            live += 1
        index.live += live
        if live:
            index.shared[row] = live, events
        else:
            index.dead[row] = events
    _mend(db, torn, useless)
    index.torn += len(torn)
    index.runs = {run: log for run, log in index.runs.items() if log.rows}
    for log in index.runs.values():
        if len(log.frames) < log.last_seq:  # some of them are of no use
            log.frames = []
    index.settled = {run: log for run, log in index.settled.items() if any(n in index.shared for n in log.rows)}
    (top,) = db.execute("SELECT ifnull(max(alias), 0) FROM runs").fetchone()
    index.next_row, index.next_alias = row + 1, max(top, *logs, 0) + 1
    return index


def _known(db: sqlite3.Connection, alias: int, index: Index) -> Logged:
    """Of a run that is settled, pruned or unknown the records are dead: `pruned` says so here."""
    row = db.execute("SELECT run, epoch, archived OR pruned FROM runs WHERE alias = ?", (alias,)).fetchone()
    if row is None:
        return Logged(alias, pruned=True)
    run, epoch, over = row
    log = Logged(alias, epoch, pruned=bool(over))
    if over:
        index.settled[run] = log
    else:
        index.runs[run] = log
    return log


def _mend(db: sqlite3.Connection, torn: Sequence[tuple[int, int, int]], useless: Sequence[int]) -> None:
    remove(db, useless)
    for row, at, length in torn:
        if length < 0:  # not even a head
            db.execute("UPDATE log SET records = substr(records, 1, ?) WHERE n = ?", (at, row))
        else:
            _blank(db, row, at, length)


def erase(db: sqlite3.Connection, row: int, at: int) -> None:
    """Make a whole record nobody's."""
    with db.blobopen("log", "records", row, readonly=True) as blob:
        blob.seek(at)
        length = records.length(blob.read(records.HEAD))
    _blank(db, row, at, length)


def _blank(db: sqlite3.Connection, row: int, at: int, length: int) -> None:
    """Only the pages that it stands on are written."""
    with db.blobopen("log", "records", row) as blob:
        blob.seek(at)
        blob.write(records.blank(length))


def remove(db: sqlite3.Connection, rows: Sequence[int]) -> None:
    """Delete rows of the log, neighbours at once: they should be in order."""
    ranges: list[list[int]] = []
    for n in rows:
        if ranges and ranges[-1][1] == n - 1:
            ranges[-1][1] = n
        else:
            ranges.append([n, n])
    db.executemany("DELETE FROM log WHERE n BETWEEN ? AND ?", ranges)
