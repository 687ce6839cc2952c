"""The reading half of the journal. A reader has its own thread and connection, so it neither waits for commits nor
delays them."""

import sqlite3
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from holdfast.core.errors import JournalPrunedError, StorageError
from holdfast.core.events import Entry
from holdfast.core.ids import RunId
from holdfast.storage.sqlite import database, errors, journal_segments
from holdfast.storage.sqlite.journal_log_reader import entries_at, entries_of
from holdfast.storage.sqlite.journal_writer import JournalWriter

_TRIES: Final = 5
_SEGMENTS: Final = (
    "SELECT first_seq, last_seq, crc, frames FROM segments WHERE run = ? AND last_seq > ? ORDER BY first_seq"
)


class JournalReader:
    def __init__(self, path: Path, writer: JournalWriter) -> None:
        self._path = path
        self._writer = writer
        self._db: sqlite3.Connection | None = None
        self._opening = 0

    def read(self, run: RunId, after: int, limit: int, max_bytes: int | None = None) -> Sequence[Entry]:
        """What `max_bytes` leaves out is not read, except for the rest of a row."""
        try:
            db = self._connected()
            for _ in range(_TRIES):
                log = self._writer.index.runs.get(run)
                if log is not None:
                    found = entries_at(db, log, after, limit, max_bytes)
                    if found is not None:
                        return found
                    # The rows have left the log meanwhile: the run was settled or erased.
                settled = self._settled(db, run, after, limit, max_bytes)
                if settled is not None:
                    return settled
                if run not in self._writer.index.runs:
                    return []
        except sqlite3.Error as error:
            self.disconnect()
            raise errors.from_sqlite(error, self._path) from error
        raise StorageError(f"The journal of run {run} kept changing while it was read. Read it again.")

    def read_whole(self, runs: Collection[RunId]) -> dict[RunId, Sequence[Entry]]:
        """Runs that were active at the same time share rows: each row is read once for all of them."""
        logs = {run: log for run in runs if (log := self._writer.index.runs.get(run)) is not None}
        try:
            found = entries_of(self._connected(), list(logs.values()))
        except sqlite3.Error as error:
            self.disconnect()
            raise errors.from_sqlite(error, self._path) from error
        read = {run: entries for run, entries in zip(logs, found, strict=True) if entries is not None}
        return {run: read[run] if run in read else self.read(run, 0, sys.maxsize) for run in runs}

    def disconnect(self) -> None:
        db, self._db = self._db, None
        database.close_quietly(db)

    def _settled(
        self, db: sqlite3.Connection, run: RunId, after: int, limit: int, max_bytes: int | None
    ) -> list[Entry] | None:
        """Entries of a settled run, on one snapshot; None if it is not settled."""
        db.execute("BEGIN")
        try:
            row = db.execute("SELECT alias, archived, pruned FROM runs WHERE run = ?", (run,)).fetchone()
            if row is None:
                return None
            alias, archived, pruned = row
            if pruned:
                raise JournalPrunedError(run)
            segments = db.execute(_SEGMENTS, (alias, after))
            return _unpacked(segments, after, limit, max_bytes) if archived else None
        finally:
            db.execute("COMMIT")

    def _connected(self) -> sqlite3.Connection:
        if self._writer.unusable is not None:
            raise self._writer.error()
        if self._db is None or self._opening != self._writer.openings:
            self.disconnect()
            self._opening = self._writer.openings
            self._db = database.connect(self._path, read_only=True)
        return self._db


def _unpacked(rows: sqlite3.Cursor, after: int, limit: int, max_bytes: int | None) -> list[Entry]:
    found: list[Entry] = []
    size = 0
    for row in rows:
        entries = journal_segments.unpack(journal_segments.Segment(*row))
        if not entries:
            break  # damaged: later segments would leave a gap
        wanted = [entry for entry in entries if entry.seq > after]
        found += wanted
        size += sum(len(frame) for _, frame in wanted)
        if len(found) >= limit or (max_bytes is not None and size >= max_bytes):
            break
    rows.close()
    return found[:limit]
