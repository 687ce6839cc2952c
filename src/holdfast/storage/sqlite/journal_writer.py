"""The writing half of the journal. Everything here runs on one thread, so a check and the insert that follows it are
one step. What an append must fulfil: `storage.append_checks`."""

import contextlib
import logging
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from holdfast.core.errors import AppendRefusedError, SchemaTooNewError, StorageError, StorageUnavailableError
from holdfast.core.ids import RunId
from holdfast.ports.journal import Append, JournalHead
from holdfast.storage import append_checks
from holdfast.storage.sqlite import database, database_upgrade, errors, journal_segments, schema
from holdfast.storage.sqlite.journal_index import JournalIndex, LoggedRun, erase, remove, scan
from holdfast.storage.sqlite.journal_log_reader import entries_of
from holdfast.storage.sqlite.journal_records import HEAD, head

log = logging.getLogger("holdfast.storage")

_PRAGMAS: Final = (
    "wal_autocheckpoint = 1000",  # pages: behind a checkpoint, commits overwrite the WAL, cheaper than growing it
    "journal_size_limit = 67108864",
    "cache_size = -8000",
    "secure_delete = FAST",
)
_INSERT: Final = "INSERT INTO log VALUES (?, ?)"
_INSERT_RUN: Final = "INSERT INTO runs (alias, run, epoch) VALUES (?, ?, ?)"
_RAISE_EPOCH: Final = "UPDATE runs SET epoch = ? WHERE alias = ?"
_DROP_TOMBSTONES: Final = """
    DELETE FROM runs WHERE pruned = 1
    AND alias <= (SELECT alias FROM runs WHERE pruned = 1 ORDER BY alias DESC LIMIT 1 OFFSET ?)
"""
_MAX_TOMBSTONES: Final = 10_000
"""Tombstones (rows of purged runs) that are kept. They refuse late appends. So many are enough, because the lock admits
one process, and the store knows which journals were pruned."""
_MAX_ROW: Final = 4 << 20  # Bytes at which a row is full; a larger commit has several rows
_PER_COMMIT: Final = 2000
"""Events, or KiB, that one commit of `archive` or `sweep` moves: appends wait for it, so it takes a few
milliseconds."""
_MIN_DEAD: Final = 5000  # Events of settled runs below which the log is not swept


class JournalWriter:
    def __init__(self, path: Path, max_event_bytes: int = append_checks.MAX_EVENT_BYTES) -> None:
        self.index = JournalIndex()  # The committed content of the log. Replaced as a whole by `open`; readers use it.
        self.unusable: StorageError | None = StorageUnavailableError("The journal was not opened.")
        """Why the journal can be neither read nor written; None if it can."""
        self.openings = 0
        self.sealed_before: Sequence[RunId] = ()
        """Sealed runs that the last opening found in the log: an earlier process ended before it archived them."""
        self._path = path
        self._limit = max_event_bytes
        self._db: sqlite3.Connection | None = None
        self._sweeping: list[int] = []  # dead rows that are being deleted

    # ---- opening ----

    def try_to_open(self) -> None:
        """Open, or remember why not. SchemaTooNewError: a newer Holdfast wrote the file."""
        try:
            self.open()
        except SchemaTooNewError:
            raise
        except StorageError as error:
            self.unusable = error

    def open(self) -> None:
        """Connect and read the log; also after a failed commit, which may have happened. The old connection is closed
        only when there is a new one: on a full disk there may be none, and stored events can still be read."""
        with errors.translated(self._path):
            if not self.openings:
                # Only once: `create_or_upgrade` also opens the file without SQLite, and closing that descriptor would
                # drop this process's locks on it.
                database_upgrade.create_or_upgrade(self._path, schema.JOURNAL, keep_copy=False)
            db = database.connect(self._path, _PRAGMAS)
            try:
                index = scan(db)
            except BaseException:
                db.close()
                raise
        if index.torn:
            log.error("%s had %d damaged records, which were removed: their runs end earlier", self._path, index.torn)
        self.disconnect()
        self._db, self.index, self.unusable, self._sweeping = db, index, None, []
        self.sealed_before = [run for run, log in index.runs.items() if log.sealed]
        self.openings += 1

    def disconnect(self) -> None:
        db, self._db = self._db, None
        database.close_quietly(db)

    # ---- appending ----

    def append(self, batch: Sequence[Append]) -> Sequence[AppendRefusedError | None]:
        append_checks.check_batch(batch)
        index, limit = self.index, self._limit
        refusals: list[AppendRefusedError | None] = []
        accepted: list[tuple[Append, LoggedRun, int, int]] = []  # with its row and position in the row
        rows: list[tuple[int, bytes, int]] = []  # number, records, number of events
        pieces: list[bytes] = []
        new: list[tuple[int, RunId, int]] = []
        raised: list[tuple[int, int]] = []
        row, alias, at = index.next_row, index.next_alias, 0
        with self._using() as db:
            for item in batch:
                run, epoch, entries, seals = item
                log = index.runs.get(run) or self._run_outside_log(db, run)
                refused = append_checks.refusal(item, log.head(), limit)
                refusals.append(refused)
                if refused is not None:
                    continue
                if not log.alias:
                    log.alias = alias  # nobody else has this object before the commit
                    alias += 1
                    new.append((log.alias, run, epoch))
                elif epoch > log.epoch:
                    raised.append((epoch, log.alias))
                if at >= _MAX_ROW:
                    rows.append((row, b"".join(pieces), len(pieces) // 2))
                    row, at = row + 1, 0
                    pieces.clear()
                accepted.append((item, log, row, at))
                last = entries[-1].seq if seals and entries else 0
                for seq, frame in entries:
                    pieces += (head(log.alias, seq, frame, seq == last), frame)
                    at += HEAD + len(frame)
            if pieces:
                rows.append((row, b"".join(pieces), len(pieces) // 2))
            if len(rows) == 1 and not new and not raised:
                db.execute(_INSERT, rows[0][:2])  # a single statement is a transaction by itself
            elif rows or new or raised:
                with database.transaction(db):
                    db.executemany(_INSERT_RUN, new)
                    db.executemany(_RAISE_EPOCH, raised)
                    db.executemany(_INSERT, [(n, blob) for n, blob, _ in rows])
        index.next_alias = alias
        for n, _, events in rows:
            index.add_row(n, events)
        for item, log, n, place in accepted:
            index.add_append(item, log, n, place)
        return refusals

    # ---- fences and heads ----

    def fence(self, epochs: Mapping[RunId, int]) -> Mapping[RunId, JournalHead]:
        with self._using() as db:
            logs = {run: self.index.runs.get(run) or self._run_outside_log(db, run) for run in epochs}
            lower = [run for run, log in logs.items() if log.epoch < epochs[run]]
            unknown = [run for run in lower if not logs[run].alias]
            first = self.index.next_alias
            if lower:
                with database.transaction(db):
                    db.executemany(_INSERT_RUN, [(first + n, run, epochs[run]) for n, run in enumerate(unknown)])
                    db.executemany(_RAISE_EPOCH, [(epochs[run], logs[run].alias) for run in lower])
        self.index.next_alias = first + len(unknown)
        for run in lower:
            logs[run].epoch = epochs[run]
        return {run: log.head() for run, log in logs.items()}

    def heads(self, runs: Collection[RunId]) -> Mapping[RunId, JournalHead]:
        with self._using() as db:
            return {run: (self.index.runs.get(run) or self._run_outside_log(db, run)).head() for run in runs}

    def _run_outside_log(self, db: sqlite3.Connection, run: RunId) -> LoggedRun:
        """A run without events in the log: settled, pruned, only fenced, or unknown."""
        row = db.execute("SELECT alias, epoch, last_seq, sealed, pruned FROM runs WHERE run = ?", (run,)).fetchone()
        if row is None:
            return LoggedRun()
        alias, epoch, last_seq, sealed, pruned = row
        return LoggedRun(alias, epoch, last_seq, bool(sealed), bool(pruned))

    # ---- archiving and erasing ----

    def archive(self, runs: Sequence[RunId]) -> Sequence[RunId]:
        """Move the events of the first of `runs` into segments and return the rest. A run that is not sealed remains as
        it is. `sweep` deletes the rows of the log: other runs may have events in them."""
        moved: list[RunId] = []
        chosen: dict[RunId, LoggedRun] = {}
        size = at = 0
        while at < len(runs) and size < _PER_COMMIT:
            log = self.index.runs.get(runs[at])
            if log is not None and log.sealed:
                chosen[runs[at]] = log
                size += len(log.rows)
            at += 1
        with self._using() as db, database.transaction(db):
            # Together: a row of the log may have events of all of them, and would be read once for each.
            for (run, log), entries in zip(chosen.items(), entries_of(db, [*chosen.values()]), strict=True):
                if entries is None:
                    continue
                for segment in journal_segments.pack(entries):
                    db.execute("INSERT INTO segments VALUES (?, ?, ?, ?, ?)", (log.alias, *segment))
                db.execute(
                    "UPDATE runs SET archived = 1, sealed = 1, last_seq = ? WHERE alias = ?",
                    (log.last_seq, log.alias),
                )
                moved.append(run)
        for run in moved:
            self.index.settle(run)
        return runs[at:]

    def sweep(self) -> bool:
        """If half of the log is dead, delete some of that. Returns whether there is more to delete."""
        index = self.index
        if not self._sweeping:
            if sum(index.dead.values()) < max(_MIN_DEAD, index.live):
                return False
            self._sweeping = sorted(index.dead)
        count = events = 0
        while events < _PER_COMMIT and count < len(self._sweeping):
            events += index.dead[self._sweeping[count]]
            count += 1
        some = self._sweeping[:count]
        with self._using() as db, database.transaction(db):
            remove(db, some)
        index.remove_rows(some)
        del self._sweeping[:count]
        return bool(self._sweeping)

    def purge(self, runs: Collection[RunId]) -> None:
        """Erase the events of runs, including those in dead rows of the log and in rows shared with other runs."""
        index = self.index
        with self._using() as db, database.transaction(db):
            for run in runs:
                log = index.runs.get(run) or self._run_outside_log(db, run)
                inside = index.runs.get(run) or index.settled.get(run)
                if inside is not None:
                    _erase(db, index, inside)
                db.execute("DELETE FROM segments WHERE run = ?", (log.alias,))
                db.execute(
                    "INSERT INTO runs (run, epoch, last_seq, sealed, pruned) VALUES (?, ?, ?, ?, 1) ON CONFLICT (run) "
                    "DO UPDATE SET last_seq = excluded.last_seq, sealed = excluded.sealed, archived = 0, pruned = 1",
                    (run, log.epoch, log.last_seq, log.sealed),
                )
            db.execute(_DROP_TOMBSTONES, (_MAX_TOMBSTONES,))
            (top,) = db.execute("SELECT ifnull(max(alias), 0) FROM runs").fetchone()
        index.next_alias = max(index.next_alias, top + 1)
        for run in runs:
            index.forget(run)
        dead = sorted(index.dead)  # with the rows in which nobody else has events
        with self._using() as db, database.transaction(db):
            remove(db, dead)
        index.remove_rows(dead)
        self._sweeping = []

    # ---- the connection ----

    def error(self) -> StorageError:
        """A new error that says why the journal cannot be used."""
        return replace(self.unusable or StorageUnavailableError("The journal is closed."))

    @contextlib.contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        if self._db is None:
            raise self.error()
        try:
            yield self._db
        except sqlite3.Error as error:
            ours = errors.from_sqlite(error, self._path)
            if self._db.in_transaction:  # the rollback failed as well
                self.unusable = ours
                self.disconnect()
            raise ours from error


def _erase(db: sqlite3.Connection, index: JournalIndex, log: LoggedRun) -> None:
    for row, place in zip(log.rows, log.places, strict=True):
        if row in index.shared:
            erase(db, row, place)
