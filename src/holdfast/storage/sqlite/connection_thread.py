"""A thread with its own SQLite connection, which runs transactions one after the other."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from holdfast.ports.clock import Clock
from holdfast.ports.store import Tx
from holdfast.storage.sql.tx import SqlTx
from holdfast.storage.sqlite import database, errors
from holdfast.storage.sqlite.dialect import SqliteDialect
from holdfast.storage.worker_thread import WorkerThread

T = TypeVar("T")

PRAGMAS: Final = (
    "cache_size = -16000",  # KiB, for each connection
    "temp_store = MEMORY",
    "wal_autocheckpoint = 4000",  # pages: ending 1,000 runs of an earlier process needs no checkpoint
    "journal_size_limit = 67108864",
    "secure_delete = ON",  # clear and delete erase the data
)


class ConnectionThread:
    """Connects at the first use, and again after a rollback failed."""

    def __init__(
        self, name: str, path: Path, clock: Clock, *, writes: bool, db: sqlite3.Connection | None = None
    ) -> None:
        """`db`: a connection made with `PRAGMAS` to start with."""
        self._path = path
        self._clock = clock
        self._writes = writes
        self._begin = "BEGIN IMMEDIATE" if writes else "BEGIN"
        self._db = db
        self._worker = WorkerThread(name)

    @property
    def waiting(self) -> int:
        return self._worker.waiting

    async def run(self, work: Callable[[Tx], T]) -> T:
        return await self._worker.call(lambda: self._transaction(work))

    async def close(self) -> None:
        await self._worker.close(self.disconnect)

    def _transaction(self, work: Callable[[Tx], T]) -> T:
        try:
            db = self._db
            if db is None:
                db = self._db = database.connect(self._path, PRAGMAS, reads_only=not self._writes)
            try:
                db.execute(self._begin)
                value = work(SqlTx(SqliteDialect(db, self._clock.now(), writes=self._writes)))
                db.execute("COMMIT")
            except BaseException:
                self._roll_back(db)
                raise
            return value
        except sqlite3.Error as error:
            raise errors.from_sqlite(error, self._path) from error

    def _roll_back(self, db: sqlite3.Connection) -> None:
        try:
            if db.in_transaction:  # after some errors SQLite has already rolled back
                db.execute("ROLLBACK")
        except sqlite3.Error:
            self.disconnect()

    def disconnect(self) -> None:
        db, self._db = self._db, None
        database.close_quietly(db)
