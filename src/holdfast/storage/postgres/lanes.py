"""Threads with a connection each. Work goes to the one with the fewest callers."""

import asyncio
import select
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

import psycopg

from holdfast.core.errors import StorageError
from holdfast.storage.postgres import errors
from holdfast.storage.postgres.link import Place, TimedConnection, let_go
from holdfast.storage.threads import Away, Worker

T = TypeVar("T")


class Lane:
    """Connects when it is first used, and again when the connection was lost."""

    def __init__(self, name: str, place: Place, greet: Callable[[TimedConnection], None] | None = None) -> None:
        """`greet` is shown every new connection first."""
        self._place = place
        self._greet = greet
        self._db: TimedConnection | None = None
        self._away = Away()
        self._worker = Worker(name)

    @property
    def waiting(self) -> int:
        return self._worker.waiting

    async def run(self, work: Callable[[TimedConnection], T]) -> T:
        asked_at = monotonic()
        return await self._worker.call(lambda: self._with(work, asked_at))

    def submit(self, work: Callable[[TimedConnection], T]) -> "asyncio.Future[T]":
        """For a caller that does not wait."""
        asked_at = monotonic()
        return self._worker.submit(lambda: self._with(work, asked_at))

    async def reconnect(self) -> None:
        await self._worker.call(self._reconnect)

    async def close(self) -> None:
        await self._worker.close(self._disconnect)

    def _reconnect(self) -> None:
        self._disconnect()
        self._connect()

    def _connect(self) -> TimedConnection:
        try:
            db = self._place.connect()
        except StorageError as error:
            self._away.note(error)
            raise
        if self._greet is not None:
            try:
                self._greet(db)
            except BaseException:
                let_go(db)
                raise
        self._db = db
        return db

    def _with(self, work: Callable[[TimedConnection], T], asked_at: float) -> T:
        try:
            if self._db is not None and _was_lost(self._db):
                self._disconnect()
            if self._db is None:
                self._away.check(asked_at)
            db = self._connect() if self._db is None else self._db
            try:
                return work(db)
            finally:
                if db.closed or db.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                    self._disconnect()
        except psycopg.Error as error:
            raise errors.from_postgres(error) from error

    def _disconnect(self) -> None:
        db, self._db = self._db, None
        let_go(db)


def _was_lost(db: TimedConnection) -> bool:
    """A server says nothing unasked to a connection that rests, except that it goes: after a restart the first to use
    each connection would otherwise be told of it."""
    look = select.poll()  # not `select`, which knows no descriptors above 1,023
    look.register(db.pgconn.socket, select.POLLIN)
    return bool(look.poll(0))


class Lanes:
    def __init__(
        self, name: str, place: Place, count: int, greet: Callable[[TimedConnection], None] | None = None
    ) -> None:
        self._lanes = [Lane(f"{name}-{n}", place, greet) for n in range(count)]

    async def run(self, work: Callable[[TimedConnection], T]) -> T:
        return await min(self._lanes, key=lambda lane: lane.waiting).run(work)

    async def close(self) -> None:
        for lane in self._lanes:
            await lane.close()
