"""Where the rows of each unsettled run are in the log. The log has no index on disk; this is it.

Memory is 8 bytes an event and some 250 a run, for as long as the run is in the log. It is changed by the journal's
writer thread alone, after a commit and never before, so that other threads find only what is durable.
"""

import sqlite3
from array import array
from collections.abc import Sequence
from typing import Final
from zlib import crc32

from holdfast.core.errors import Fenced, Refused, Sealed, SeqConflict, TooLarge
from holdfast.core.events import Entry
from holdfast.core.ids import RunId
from holdfast.ports import Append, Head

_ROWS: Final = "SELECT run, seq, crc, frame FROM log WHERE"


class Logged:
    """A run as the writer sees it. `rows[i]` is the row of event i + 1; there are none for a run not in the log."""

    __slots__ = ("alias", "epoch", "last_seq", "pruned", "rows", "sealed")

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

    def head(self) -> Head:
        return Head(self.epoch, self.last_seq, self.sealed, self.pruned)


def refusal(log: Logged, item: Append, limit: int) -> Refused | None:
    """Why the append cannot be taken. The writer calls this and inserts in one go, so nothing can come between."""
    if item.epoch < log.epoch:
        return Fenced(item.run, item.epoch, log.epoch)
    if log.sealed or log.pruned:
        return Sealed(item.run)
    last = log.last_seq
    for seq, frame in item.entries:
        if seq != last + 1:
            return SeqConflict(item.run, seq, last)
        last = seq
        if len(frame) > limit:
            return TooLarge(item.run, len(frame), limit)
    return None


class Index:
    """What is in the log: live runs, and the rows of settled ones, which are removed in larger numbers."""

    def __init__(self) -> None:
        self.runs: dict[RunId, Logged] = {}
        self.live = 0
        """Rows of `runs`."""
        self.dead = array("q")
        """Rows whose events are in segments by now."""
        self.next_row = 1
        self.next_alias = 1
        self.torn = 0
        """Records that were found damaged, or behind a damaged one, and removed."""

    def grow(self, item: Append, log: Logged, first: int) -> None:
        """`item` is committed, in the rows from `first` on."""
        log.epoch = item.epoch
        count = len(item.entries)
        if count:
            if not log.rows:
                self.runs[item.run] = log
            if count == 1:
                log.rows.append(first)
            else:
                log.rows.extend(range(first, first + count))
            log.last_seq += count
            log.sealed = item.seals
            self.live += count

    def settle(self, run: RunId) -> None:
        log = self.runs.pop(run)
        self.live -= len(log.rows)
        self.dead.extend(log.rows)

    def forget(self, run: RunId) -> None:
        log = self.runs.pop(run, None)
        if log is not None:
            self.live -= len(log.rows)


def scan(db: sqlite3.Connection) -> Index:
    """The index of what is on disk. A record with a wrong checksum is removed with what follows it in its run, so
    that the run goes on from its last good event."""
    index = Index()
    logs: dict[int, Logged | None] = {}  # by alias; None: its rows are dead
    broken: set[int] = set()
    torn: list[int] = []
    n = 0
    for n, alias, seq, crc, seals, frame in db.execute("SELECT n, run, seq, crc, seals, frame FROM log ORDER BY n"):
        if alias not in logs:
            logs[alias] = _live(db, alias, index)
        log = logs[alias]
        if log is None:
            index.dead.append(n)
        elif seq != log.last_seq + 1 or alias in broken or not _is_whole(frame, crc):
            broken.add(alias)
            torn.append(n)
        else:
            log.last_seq = seq
            log.rows.append(n)
            if seals:
                log.sealed = True
    index.live = sum(len(log.rows) for log in index.runs.values())
    if torn:
        remove(db, torn)
        index.runs = {run: log for run, log in index.runs.items() if log.rows}
    (top,) = db.execute("SELECT ifnull(max(alias), 0) FROM runs").fetchone()
    index.next_row, index.next_alias, index.torn = n + 1, max(top, *logs, 0) + 1, len(torn)
    return index


def _live(db: sqlite3.Connection, alias: int, index: Index) -> Logged | None:
    row = db.execute("SELECT run, epoch FROM runs WHERE alias = ? AND archived = 0 AND pruned = 0", (alias,)).fetchone()
    if row is None:
        return None
    log = index.runs[row[0]] = Logged(alias, row[1])
    return log


def _is_whole(frame: object, crc: int) -> bool:
    return isinstance(frame, bytes) and crc32(frame) == crc


def remove(db: sqlite3.Connection, rows: Sequence[int]) -> None:
    """Delete rows of the log, neighbours at once: they should be in order."""
    ranges: list[list[int]] = []
    for n in rows:
        if ranges and ranges[-1][1] == n - 1:
            ranges[-1][1] = n
        else:
            ranges.append([n, n])
    db.executemany("DELETE FROM log WHERE n BETWEEN ? AND ?", ranges)


def entries_at(db: sqlite3.Connection, log: Logged, rows: "array[int]") -> list[Entry] | None:
    """The entries in these rows of the log, up to a damaged one. None: they are no longer all there."""
    if not rows:
        return []
    first, last = rows[0], rows[-1]
    if last - first == len(rows) - 1:
        found = db.execute(f"{_ROWS} n BETWEEN ? AND ? ORDER BY n", (first, last)).fetchall()
    else:
        wanted = f"[{','.join(map(str, rows))}]"
        found = db.execute(f"{_ROWS} n IN (SELECT value FROM json_each(?)) ORDER BY n", (wanted,)).fetchall()
    if len(found) != len(rows):
        return None
    entries: list[Entry] = []
    for alias, seq, crc, frame in found:
        if alias != log.alias:
            return None
        if not _is_whole(frame, crc):
            break
        entries.append(Entry(seq, frame))
    return entries
