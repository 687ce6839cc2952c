"""`Store` on one SQLite file. One thread writes, a few read; each transaction is one call to one of them.

WAL lets readers go on while the writer commits, each on the snapshot it began with. `transact` runs its work once:
there is one writer, and the data directory's lock keeps every other process out.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import TypeVar

from holdfast.core.ids import NodeId
from holdfast.ports import Clock, Tx
from holdfast.storage.sqlite import database, errors, schema
from holdfast.storage.sqlite.datadir import DataDir
from holdfast.storage.sqlite.lane import PRAGMAS, Lane

T = TypeVar("T")


class SqliteStore:
    def __init__(self, data: DataDir, clock: Clock, *, readers: int = 2) -> None:
        """Open, make or upgrade the file. Blocks; a StorageError says what is wrong, and then nothing is left open."""
        file = data.store_file
        database.prepare(file, schema.STORE, keep_copy=True)
        self._data = data
        db, self._generation = _open(file)
        self._writer = Lane("store-writer", file, clock, writes=True, db=db)
        self._readers = [Lane(f"store-reader-{n}", file, clock, writes=False) for n in range(readers)]

    @property
    def generation(self) -> str:
        return self._generation

    @property
    def incarnation(self) -> NodeId | None:
        return self._data.node

    def free_bytes(self) -> int | None:
        return self._data.free_bytes()

    async def transact(self, work: Callable[[Tx], T]) -> T:
        return await self._writer.run(work)

    async def read(self, work: Callable[[Tx], T]) -> T:
        return await min(self._readers, key=lambda lane: lane.waiting).run(work)

    def abandon(self) -> None:
        """Close what was opened and never used, without a thread or a loop."""
        self._writer.disconnect()

    async def close(self) -> None:
        """The writer goes last: it puts the WAL into the file."""
        for lane in (*self._readers, self._writer):
            await lane.close()


def _open(path: Path) -> tuple[sqlite3.Connection, str]:
    """The first connection, which stays: closing the only one would put the whole WAL of an earlier life into the
    file before anybody is served."""
    try:
        db = database.connect(path, PRAGMAS)
        try:
            return db, _generation(db, path)
        except BaseException:
            db.close()
            raise
    except sqlite3.Error as error:
        raise errors.from_sqlite(error, path) from error


def _generation(db: sqlite3.Connection, path: Path) -> str:
    """Belongs to this very file: one that was copied here has another inode and begins a new generation. A backup
    made by other means than copying the file should clear the row `generation`, for it may be restored into the same
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
