"""`Store` on one SQLite file. One thread writes, in group commits, and a few read.

In WAL mode readers continue while the writer commits, each on its own snapshot. There is one writer, and the data
directory's lock excludes other processes, so nothing conflicts.
"""

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Final, TypeVar

from holdfast.core.ids import NodeId
from holdfast.ports.clock import Clock
from holdfast.ports.store import Tx
from holdfast.storage import filesystem
from holdfast.storage.sql.tx import SqlTx
from holdfast.storage.sqlite import database, database_upgrade, errors, schema
from holdfast.storage.sqlite.data_dir import DataDir
from holdfast.storage.sqlite.dialect import SqliteDialect
from holdfast.storage.sqlite.store_group_commit import StoreGroupCommit
from holdfast.storage.worker_thread import ConnectionPool, ConnectionWorker

T = TypeVar("T")

_READERS: Final = 2
_PRAGMAS: Final = (
    "cache_size = -16000",  # KiB, for each connection
    "temp_store = MEMORY",
    "wal_autocheckpoint = 4000",  # pages: ending 1,000 runs of an earlier process needs no checkpoint
    "journal_size_limit = 67108864",
    "secure_delete = ON",  # clear and delete erase the data
)


class SqliteStore:
    def __init__(self, data: DataDir, clock: Clock) -> None:
        """Open, create or upgrade the file. Blocks; if it raises StorageError, nothing is left open."""
        file = data.store_file
        database_upgrade.create_or_upgrade(file, schema.STORE, keep_copy=True)
        self._directory = data.path
        self.incarnation: NodeId | None = data.node
        self._clock = clock
        db, self.generation = _open(file)
        self._writer = _worker("store-writer", file, db)
        self._group_commit = StoreGroupCommit(self._writer, self._begin)
        self._readers = ConnectionPool([_worker(f"store-reader-{n}", file) for n in range(_READERS)])

    def free_bytes(self) -> int | None:
        return filesystem.free_bytes(self._directory)

    async def reusable_bytes(self) -> int:
        return await self._readers.run(_free_page_bytes)

    async def transact(self, work: Callable[[Tx], T]) -> T:
        return await self._group_commit.transact(work)

    async def read(self, work: Callable[[Tx], T]) -> T:
        return await self._readers.run(lambda db: self._read(db, work))

    def _begin(self, db: sqlite3.Connection) -> SqlTx:
        return SqlTx(SqliteDialect(db, self._clock.now(), writes=True))

    def _read(self, db: sqlite3.Connection, work: Callable[[Tx], T]) -> T:
        with database.transaction(db, "BEGIN"):
            return work(SqlTx(SqliteDialect(db, self._clock.now(), writes=False)))

    def abandon(self) -> None:
        """Close a store that was never used, without an event loop."""
        self._writer.disconnect()

    async def close(self) -> None:
        """The writer closes last: it checkpoints the WAL into the file."""
        await self._readers.close()
        await self._writer.close()


def _worker(name: str, file: Path, writer: sqlite3.Connection | None = None) -> ConnectionWorker[sqlite3.Connection]:
    """A thread that writes, starting with the connection `writer`, or one that reads."""
    connect = partial(database.connect, file, _PRAGMAS, read_only=writer is None)
    # After a failed rollback, the connection is replaced.
    translate = partial(errors.from_sqlite, file=file)
    return ConnectionWorker(name, connect, sqlite3.Error, translate, lambda db: not db.in_transaction, writer)


def _open(path: Path) -> tuple[sqlite3.Connection, str]:
    """Open the first connection and keep it: closing the only one would checkpoint the whole WAL of an earlier process
    before any request is served."""
    with errors.translated(path):
        db = database.connect(path, _PRAGMAS)
        try:
            return db, _generation(db, path)
        except BaseException:
            db.close()
            raise


def _generation(db: sqlite3.Connection, path: Path) -> str:
    """A generation belongs to one file: a copied file has another inode and starts a new generation. A backup made by
    other means than copying the file must clear the row `generation`, because it may be restored into the same
    inode."""
    stat = path.stat()
    place = f"{stat.st_dev}:{stat.st_ino}"
    known = dict(db.execute("SELECT key, value FROM meta WHERE key IN ('generation', 'place')").fetchall())
    if known.get("generation") and known.get("place") == place:
        return str(known["generation"])
    generation = token_hex(6)
    pairs = [("generation", generation), ("place", place)]
    db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", pairs)
    return generation


def _free_page_bytes(db: sqlite3.Connection) -> int:
    """SQLite keeps the counts at the beginning of the file, so this does not look through it."""
    with database.transaction(db, "BEGIN"):
        [pages], [size] = (db.execute(f"PRAGMA {name}").fetchone() for name in ("freelist_count", "page_size"))
    return int(pages * size)
