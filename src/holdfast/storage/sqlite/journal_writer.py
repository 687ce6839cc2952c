"""The writing half of the journal. Everything here runs on one thread, so that a check and the insert after it are
one step."""

import contextlib
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from holdfast.core.errors import Refused, SchemaTooNew, StorageError, StorageUnavailable
from holdfast.core.ids import RunId
from holdfast.ports import Append, Head
from holdfast.storage.sqlite import database, errors, schema, segments
from holdfast.storage.sqlite.gather import entries_at
from holdfast.storage.sqlite.logged import Index, Logged, erase, refusal, remove, scan
from holdfast.storage.sqlite.records import HEAD, head
from holdfast.storage.sqlite.runway import Runway

_PRAGMAS: Final = (
    "wal_autocheckpoint = 4000",
    "journal_size_limit = 67108864",
    "cache_size = -8000",
    "secure_delete = FAST",
)
_INSERT: Final = "INSERT INTO log VALUES (?, ?)"
_NEW: Final = "INSERT INTO runs (alias, run, epoch) VALUES (?, ?, ?)"
_RAISE: Final = "UPDATE runs SET epoch = ? WHERE alias = ?"
_ROW: Final = 4 << 20
"""Bytes at which a row is full; a commit of more has several."""
_SOME: Final = 2000
"""Events, or KiB, that one commit of `archive` or `sweep` moves: appends wait for it, so it is kept to some
milliseconds."""
_DEAD: Final = 5000
"""Events of settled runs that are not worth the trouble of removing them from the log."""


class JournalWriter:
    def __init__(self, path: Path, max_event_bytes: int) -> None:
        self.index = Index()
        """Equal to what is committed. Replaced as a whole by `open`; readers look into it."""
        self.trouble = "The journal was not opened."
        """Why nothing can be read or written; empty if it can."""
        self.openings = 0
        self.left: Sequence[RunId] = ()
        """Sealed runs that were found in the log: an earlier life did not get to put them away."""
        self._path = path
        self._limit = max_event_bytes
        self._db: sqlite3.Connection | None = None
        self._runway = Runway(path)
        self._doomed: list[int] = []  # dead rows that are being removed

    # ---- opening ----

    def try_to_open(self) -> None:
        """Open, or remember why not. Only what a newer version wrote is refused."""
        try:
            self.open()
        except SchemaTooNew:
            raise
        except StorageError as error:
            self.trouble = str(error)

    def open(self) -> None:
        """Connect and read the log. Again after a failed commit: it may have happened. The old connection is let go
        when there is a new one, for on a full disk there may be none, and what is stored can still be read."""
        try:
            if not self.openings:
                # Never later: it opens the file beside SQLite, and closing that again would drop this process's locks
                # on it.
                database.prepare(self._path, schema.JOURNAL, keep_copy=False)
            db = database.connect(self._path, _PRAGMAS)
            try:
                index = scan(db)
            except BaseException:
                db.close()
                raise
        except sqlite3.Error as error:
            raise errors.from_sqlite(error, self._path) from error
        self.disconnect()
        self._db, self.index, self.trouble, self._doomed = db, index, "", []
        self.left = [run for run, log in index.runs.items() if log.sealed]
        self.openings += 1

    def disconnect(self) -> None:
        db, self._db = self._db, None
        self._runway.close()
        if db is not None:
            with contextlib.suppress(sqlite3.Error):
                db.close()

    # ---- appending ----

    def append(self, batch: Sequence[Append]) -> Sequence[Refused | None]:
        if len({item.run for item in batch}) < len(batch):
            raise ValueError("a batch has at most one append of a run")
        index, limit = self.index, self._limit
        refusals: list[Refused | None] = []
        taken: list[tuple[Append, Logged, int, int]] = []  # with its row, and where it stands in it
        rows: list[tuple[int, bytes, int]] = []  # with the number of its events
        pieces: list[bytes] = []
        new: list[tuple[int, RunId, int]] = []
        raised: list[tuple[int, int]] = []
        row, alias, at = index.next_row, index.next_alias, 0
        with self._using() as db:
            for item in batch:
                run, epoch, entries, seals = item
                log = index.runs.get(run) or self._kept(db, run)
                refused = refusal(log, item, limit)
                refusals.append(refused)
                if refused is not None:
                    continue
                if not log.alias:
                    log.alias = alias  # not known to anybody else before the commit
                    alias += 1
                    new.append((log.alias, run, epoch))
                elif epoch > log.epoch:
                    raised.append((epoch, log.alias))
                if at >= _ROW:
                    rows.append((row, b"".join(pieces), len(pieces) // 2))
                    row, at = row + 1, 0
                    pieces.clear()
                taken.append((item, log, row, at))
                last = entries[-1].seq if seals and entries else 0
                for seq, frame in entries:
                    pieces += (head(log.alias, seq, frame, seq == last), frame)
                    at += HEAD + len(frame)
            if pieces:
                rows.append((row, b"".join(pieces), len(pieces) // 2))
            if len(rows) == 1 and not new and not raised:
                db.execute(_INSERT, rows[0][:2])  # one statement, which is a transaction by itself
            elif rows or new or raised:
                with _transaction(db):
                    db.executemany(_NEW, new)
                    db.executemany(_RAISE, raised)
                    db.executemany(_INSERT, [(n, blob) for n, blob, _ in rows])
        self._runway.keep()
        index.next_alias = alias
        for n, _, events in rows:
            index.fill(n, events)
        for item, log, n, place in taken:
            index.grow(item, log, n, place)
        return refusals

    def checkpoint(self) -> None:
        """Put the WAL into the file, for it takes some milliseconds at least; what is read just now stays. If it
        cannot be, a commit will say why."""
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    # ---- the fence, and where journals end ----

    def fence(self, epochs: Mapping[RunId, int]) -> Mapping[RunId, Head]:
        with self._using() as db:
            logs = {run: self.index.runs.get(run) or self._kept(db, run) for run in epochs}
            lower = [run for run, log in logs.items() if log.epoch < epochs[run]]
            unknown = [run for run in lower if not logs[run].alias]
            first = self.index.next_alias
            if lower:
                with _transaction(db):
                    db.executemany(_NEW, [(first + n, run, epochs[run]) for n, run in enumerate(unknown)])
                    db.executemany(_RAISE, [(epochs[run], logs[run].alias) for run in lower])
        self.index.next_alias = first + len(unknown)
        for run in lower:
            logs[run].epoch = epochs[run]
        return {run: log.head() for run, log in logs.items()}

    def heads(self, runs: Collection[RunId]) -> Mapping[RunId, Head]:
        with self._using() as db:
            return {run: (self.index.runs.get(run) or self._kept(db, run)).head() for run in runs}

    def _kept(self, db: sqlite3.Connection, run: RunId) -> Logged:
        """A run that is not in the log: settled, pruned, only fenced, or never heard of."""
        row = db.execute("SELECT alias, epoch, last_seq, sealed, pruned FROM runs WHERE run = ?", (run,)).fetchone()
        if row is None:
            return Logged()
        alias, epoch, last_seq, sealed, pruned = row
        return Logged(alias, epoch, last_seq, bool(sealed), bool(pruned))

    # ---- what becomes of settled runs ----

    def archive(self, runs: Sequence[RunId]) -> Sequence[RunId]:
        """Put the events of the first of `runs` into segments; the rest is returned. One that is not sealed stays as it
        is. The log's rows are left for `sweep`: others may have events in them."""
        moved: list[RunId] = []
        size = at = 0
        with self._using() as db, _transaction(db):
            while at < len(runs) and size < _SOME:
                run = runs[at]
                at += 1
                log = self.index.runs.get(run)
                entries = entries_at(db, log, 0, log.last_seq) if log is not None and log.sealed else None
                if log is None or entries is None:
                    continue
                for segment in segments.pack(entries):
                    db.execute(
                        "INSERT INTO segments VALUES (?, ?, ?, ?, ?)",
                        (log.alias, segment.first_seq, segment.last_seq, segment.crc, segment.frames),
                    )
                    size += len(segment.frames) // 1024
                db.execute(
                    "UPDATE runs SET archived = 1, sealed = 1, last_seq = ? WHERE alias = ?",
                    (log.last_seq, log.alias),
                )
                moved.append(run)
                size += len(log.rows)
        for run in moved:
            self.index.settle(run)
        return runs[at:]

    def sweep(self) -> bool:
        """If half of the log is dead, remove some of that; whether to call again."""
        index = self.index
        if not self._doomed:
            if sum(index.dead.values()) < max(_DEAD, index.live):
                return False
            self._doomed = sorted(index.dead)
        count = events = 0
        while events < _SOME and count < len(self._doomed):
            events += index.dead[self._doomed[count]]
            count += 1
        some = self._doomed[:count]
        with self._using() as db, _transaction(db):
            remove(db, some)
        index.removed(some)
        del self._doomed[:count]
        return bool(self._doomed)

    def purge(self, runs: Collection[RunId]) -> None:
        """Also of the log: the dead rows, which may have events of theirs, and those that they share with others."""
        index = self.index
        with self._using() as db, _transaction(db):
            for run in runs:
                log = index.runs.get(run) or self._kept(db, run)
                inside = index.runs.get(run) or index.settled.get(run)
                if inside is not None:
                    _erase(db, index, inside)
                db.execute("DELETE FROM segments WHERE run = ?", (log.alias,))
                db.execute(
                    "INSERT INTO runs (run, epoch, last_seq, sealed, pruned) VALUES (?, ?, ?, ?, 1) ON CONFLICT (run) "
                    "DO UPDATE SET last_seq = excluded.last_seq, sealed = excluded.sealed, archived = 0, pruned = 1",
                    (run, log.epoch, log.last_seq, log.sealed),
                )
            dead = sorted(index.dead)
            remove(db, dead)
            (top,) = db.execute("SELECT ifnull(max(alias), 0) FROM runs").fetchone()
        index.next_alias = max(index.next_alias, top + 1)
        index.removed(dead)
        self._doomed = []
        for run in runs:
            index.forget(run)

    # ---- the connection ----

    @contextlib.contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        if self._db is None:
            raise StorageUnavailable(self.trouble)
        try:
            yield self._db
        except sqlite3.Error as error:
            ours = errors.from_sqlite(error, self._path)
            if self._db.in_transaction:  # the rollback failed as well
                self.trouble = str(ours)
                self.disconnect()
            raise ours from error


def _erase(db: sqlite3.Connection, index: Index, log: Logged) -> None:
    for row, place in zip(log.rows, log.places, strict=True):
        if row in index.shared:
            erase(db, row, place)


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # after some errors SQLite has rolled back by itself
            with contextlib.suppress(sqlite3.Error):
                db.execute("ROLLBACK")
        raise
