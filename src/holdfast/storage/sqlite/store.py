"""`Store` on one SQLite file. One thread writes, a few read; each transaction is one call on one of them.

In WAL mode readers continue while the writer commits, each on its own snapshot. `transact` runs its work once: there
is one writer, and the data directory's lock excludes other processes.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import TypeVar

from holdfast.core.ids import NodeId
from holdfast.ports.clock import Clock
from holdfast.ports.store import Tx
from holdfast.storage import filesystem
from holdfast.storage.sqlite import database, errors, schema
from holdfast.storage.sqlite.connection_thread import PRAGMAS, ConnectionThread
from holdfast.storage.sqlite.data_dir import DataDir

T = TypeVar("T")


class SqliteStore:
    def __init__(self, data: DataDir, clock: Clock, *, readers: int = 2) -> None:
        """Open, create or upgrade the file. Blocks; if it raises StorageError, nothing is left open."""
        file = data.store_file
        database.prepare(file, schema.STORE, keep_copy=True)
        self._directory = data.path
        self.incarnation: NodeId | None = data.node
        db, self.generation = _open(file)
        self._writer = ConnectionThread("store-writer", file, clock, writes=True, db=db)
        self._readers = [ConnectionThread(f"store-reader-{n}", file, clock, writes=False) for n in range(readers)]

    def free_bytes(self) -> int | None:
        return filesystem.free_bytes(self._directory)

    async def transact(self, work: Callable[[Tx], T]) -> T:
        return await self._writer.run(work)

    async def read(self, work: Callable[[Tx], T]) -> T:
        return await min(self._readers, key=lambda reader: reader.waiting).run(work)

    def abandon(self) -> None:
        """Close a store that was never used, without an event loop."""
        self._writer.disconnect()

    async def close(self) -> None:
        """The writer closes last: it checkpoints the WAL into the file."""
        for thread in (*self._readers, self._writer):
            await thread.close()


def _open(path: Path) -> tuple[sqlite3.Connection, str]:
    """Open the first connection and keep it: closing the only one would checkpoint the whole WAL of an earlier process
    before any request is served."""
    with errors.translated(path):
        db = database.connect(path, PRAGMAS)
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
