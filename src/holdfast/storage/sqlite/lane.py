"""A thread with a connection of its own, on which transactions follow one another."""

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from holdfast.ports import Clock, Tx
from holdfast.storage.sqlite import database, errors
from holdfast.storage.sqlite.runway import Runway
from holdfast.storage.sqlite.tx import SqliteTx
from holdfast.storage.threads import Worker

T = TypeVar("T")

PRAGMAS: Final = (
    "cache_size = -16000",  # KiB, for each connection
    "temp_store = MEMORY",
    "wal_autocheckpoint = 4000",  # pages: ending the 1,000 runs of an earlier life fits, and waits for no checkpoint
    "journal_size_limit = 67108864",
    "secure_delete = ON",  # clear and delete erase
)


class Lane:
    """Connects when it is first used, and again after a connection that could not be brought back to a clean state."""

    def __init__(
        self, name: str, path: Path, clock: Clock, *, writes: bool, db: sqlite3.Connection | None = None
    ) -> None:
        """`db`: a connection that was made with `PRAGMAS`, to begin with."""
        self._path = path
        self._clock = clock
        self._writes = writes
        self._begin = "BEGIN IMMEDIATE" if writes else "BEGIN"
        self._db = db
        self._runway = Runway(path)
        self._worker = Worker(name)

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
                value = work(SqliteTx(db, self._clock.now(), writes=self._writes))
                db.execute("COMMIT")
                if self._writes:
                    self._runway.keep()
            except BaseException:
                self._roll_back(db)
                raise
            return value
        except sqlite3.Error as error:
            raise errors.from_sqlite(error, self._path) from error

    def _roll_back(self, db: sqlite3.Connection) -> None:
        try:
            if db.in_transaction:  # after some errors SQLite has rolled back by itself
                db.execute("ROLLBACK")
        except sqlite3.Error:
            self.disconnect()

    def disconnect(self) -> None:
        db, self._db = self._db, None
        self._runway.close()
        if db is not None:
            with contextlib.suppress(sqlite3.Error):
                db.close()
