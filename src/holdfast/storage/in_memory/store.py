"""`Store` on an SQLite database in process memory. A transaction never yields to another task."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from copy import copy
from functools import cache
from typing import TypeVar

from anyio.lowlevel import checkpoint

from holdfast.core.errors import StorageError
from holdfast.core.ids import NodeId
from holdfast.ports.clock import Clock
from holdfast.ports.store import Tx
from holdfast.storage.sql.tx import SqlTx
from holdfast.storage.sqlite import database_upgrade, schema
from holdfast.storage.sqlite.dialect import SqliteDialect

T = TypeVar("T")


class _SharedConnection(sqlite3.Connection):
    """Closes with the last store that uses it, as Python 3.13 warns of a connection that nobody closed."""

    def __del__(self) -> None:
        self.close()


class InMemoryStore:
    """`incarnation`: the only node that can be alive, or None for a cluster whose leases lapse by `clock`."""

    def __init__(self, clock: Clock, *, incarnation: NodeId | None = None, generation: str = "memory") -> None:
        self.incarnation = incarnation
        self.generation = generation
        self._clock = clock
        self._db = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, cached_statements=256, factory=_SharedConnection
        )
        self._db.deserialize(_empty_database())
        self._db.execute("PRAGMA foreign_keys = ON")

    def as_incarnation(self, node: NodeId | None) -> "InMemoryStore":
        """The same data as the next process sees it: claims of the earlier one are void."""
        view = copy(self)
        view.incarnation = node
        return view

    async def transact(self, work: Callable[[Tx], T]) -> T:
        return await self._transaction(work, "COMMIT")

    async def read(self, work: Callable[[Tx], T]) -> T:
        return await self._transaction(work, "ROLLBACK")

    async def _transaction(self, work: Callable[[Tx], T], end: str) -> T:
        await checkpoint()
        self._db.execute("BEGIN")
        try:
            result = work(SqlTx(SqliteDialect(self._db, self._clock.now(), writes=end == "COMMIT")))
            self._db.execute(end)
        except BaseException as error:
            self._db.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise StorageError(f"The in-memory store failed: {error}.") from error
            raise
        await checkpoint()
        return result

    def free_bytes(self) -> int | None:
        return None

    async def reusable_bytes(self) -> int:
        return 0

    async def close(self) -> None:
        """The data remains for the next engine."""


@cache
def _empty_database() -> bytes:
    """Copied into each store: running the migrations takes ten times as long."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        database_upgrade.migrate(db, 0, schema.STORE)
        return db.serialize()
