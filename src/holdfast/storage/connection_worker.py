"""Threads with a connection to a database each: connecting, losing the connection, connecting again."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from time import monotonic
from typing import Generic, Protocol, TypeVar

from holdfast.core.errors import StorageError, StorageUnavailableError
from holdfast.storage.worker_thread import WorkerThread


class Closable(Protocol):
    def close(self) -> object: ...


C = TypeVar("C", bound=Closable)
T = TypeVar("T")


class ConnectionWorker(Generic[C]):
    """Connects at the first use, and again after the connection is lost. An attempt may take seconds, so a failed one
    fails every call that was made before it ended; only a later call makes the next attempt."""

    def __init__(
        self,
        name: str,
        connect: Callable[[], C],
        translated: Callable[[], AbstractContextManager[None]],
        is_usable: Callable[[C], bool] = lambda _: True,
        db: C | None = None,
    ) -> None:
        """`translated`: a context that turns the library's errors into StorageErrors. `is_usable` is asked before and
        after each use. `db`: the first connection, if there is one already."""
        self._open = connect
        self._translated = translated
        self._is_usable = is_usable
        self._db = db
        self._failed_at, self._failure = float("-inf"), ""
        self._worker = WorkerThread(name)

    @property
    def waiting(self) -> int:
        return self._worker.waiting

    async def run(self, work: Callable[[C], T]) -> T:
        called_at = monotonic()
        return await self._worker.call(lambda: self._run_connected(work, called_at))

    def submit(self, work: Callable[[C], T]) -> "asyncio.Future[T]":
        """`run` for a caller that does not wait."""
        called_at = monotonic()
        return self._worker.submit(lambda: self._run_connected(work, called_at))

    async def reconnect(self) -> None:
        await self._worker.call(self._connect)

    async def close(self) -> None:
        await self._worker.close(self.disconnect)

    def _run_connected(self, work: Callable[[C], T], called_at: float) -> T:
        db = self._db
        if db is None or not self._is_usable(db):
            if called_at < self._failed_at:
                raise StorageUnavailableError(self._failure)
            db = self._connect()
        try:
            with self._translated():
                return work(db)
        except StorageUnavailableError:
            self.disconnect()
            raise
        finally:
            if self._db is not None and not self._is_usable(db):
                self.disconnect()

    def _connect(self) -> C:
        self.disconnect()
        try:
            with self._translated():
                db = self._db = self._open()
        except StorageError as error:
            self._failed_at, self._failure = monotonic(), str(error)
            raise
        return db

    def disconnect(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            with suppress(Exception):
                db.close()


class ConnectionPool(Generic[C]):
    """Work goes to the connection with the fewest callers."""

    def __init__(self, connections: Sequence[ConnectionWorker[C]]) -> None:
        self._connections = connections

    async def run(self, work: Callable[[C], T]) -> T:
        return await min(self._connections, key=lambda connection: connection.waiting).run(work)

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()
