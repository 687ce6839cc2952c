"""Connections to PostgreSQL: settings, time limits, escaping of text that PostgreSQL cannot store, and the translation
of psycopg's exceptions, none of which leaves this package."""

import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.abc import Buffer, PQGen
from psycopg.adapt import Loader
from psycopg.types.string import StrDumper

from holdfast.core.errors import StorageError, StorageFullError, StorageUnavailableError
from holdfast.storage.worker_thread import ConnectionPool, ConnectionWorker

R = TypeVar("R")

_OLDEST_VERSION: Final = 150_000
_ALMOST: Final = 0.95  # Of the limit: timers may fire a little early
_TEXT_OID: Final = 25
_MARK, _NUL, _SELF = "\x1a", "\x1a0", "\x1a1"

CONFLICTS: Final = (pg.SerializationFailure, pg.DeadlockDetected)
"""Another transaction won: nothing was written, and a retry will succeed."""
TRANSIENT: Final = (pg.UniqueViolation, pg.LockNotAvailable)  # Nothing was written, and a retry may succeed
_UNAVAILABLE: Final = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    pg.ReadOnlySqlTransaction,
    pg.IdleInTransactionSessionTimeout,
)


def from_postgres(error: psycopg.Error) -> StorageError:
    lines = str(error).strip().splitlines()
    text = lines[0] if lines else type(error).__name__
    if isinstance(error, pg.DiskFull):
        return StorageFullError(f"PostgreSQL's disk is full: {text}. Free disk space on its server.")
    if isinstance(error, _UNAVAILABLE):
        return StorageUnavailableError(f"PostgreSQL cannot be used: {text}.")
    return StorageError(f"PostgreSQL: {text}.")


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise from_postgres(error) from error


class TextDumper(StrDumper):
    """Escapes NUL, which PostgreSQL's text cannot hold, as two characters, and the escape character too. Lone
    surrogates, which UTF-8 cannot carry, become question marks, as in a journal's frames."""

    def dump(self, obj: str) -> Buffer | None:
        if "\x00" in obj or _MARK in obj:
            obj = obj.replace(_MARK, _SELF).replace("\x00", _NUL)
        return obj.encode("utf-8", "replace")


class TextLoader(Loader):
    def load(self, data: Buffer) -> str:
        text = str(data, "utf-8")
        return text.replace(_NUL, "\x00").replace(_SELF, _MARK) if _MARK in text else text


class TimedConnection(psycopg.Connection[Any]):
    """A connection that fails if an answer takes longer than `answer_within` seconds. Neither `statement_timeout` nor
    the socket's options notice a server process that hangs."""

    answer_within: float = 10.0

    def wait(self, gen: PQGen[R], interval: float = 0.1, timeout: float | None = None) -> R:
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        began = time.monotonic()
        try:
            return super().wait(gen, interval, self.answer_within)
        except psycopg.OperationalError:
            if time.monotonic() - began < _ALMOST * self.answer_within:
                raise
            self.pgconn.finish()  # the outcome is in doubt, and nobody else may wait for it
            raise psycopg.OperationalError(f"no answer within {self.answer_within:g} seconds") from None


@dataclass(frozen=True, slots=True)
class PostgresConfig:
    """The address of PostgreSQL, and the name under which a node appears there."""

    url: str
    schema: str = "holdfast"
    name: str = "holdfast"
    answer_within: float = 10.0

    def connect(self, first: Callable[[TimedConnection], None] | None = None) -> TimedConnection:
        """Connect, and call `first` with the new connection. Raises StorageUnavailableError. An acknowledged commit is
        on disk, whatever the server's default."""
        with translated():
            db = TimedConnection.connect(
                self.url,
                autocommit=True,
                connect_timeout=5,
                application_name=self.name,
                keepalives_idle=5,
                keepalives_interval=2,
                keepalives_count=3,
                tcp_user_timeout=int(self.answer_within * 1000),
            )
            db.answer_within = self.answer_within
            try:
                self._set_up(db)
                if first is not None:
                    first(db)
            except BaseException:
                db.close()
                raise
        return db

    def worker(
        self, name: str, first: Callable[[TimedConnection], None] | None = None
    ) -> ConnectionWorker[TimedConnection]:
        return ConnectionWorker(name, partial(self.connect, first), psycopg.Error, from_postgres, _is_usable)

    def pool(
        self, name: str, count: int, first: Callable[[TimedConnection], None] | None = None
    ) -> ConnectionPool[TimedConnection]:
        return ConnectionPool([self.worker(f"{name}-{n}", first) for n in range(count)])

    def _set_up(self, db: TimedConnection) -> None:
        if db.info.server_version < _OLDEST_VERSION:
            found = db.info.parameter_status("server_version")
            raise StorageUnavailableError(f"PostgreSQL 15 or newer is required; the server runs {found}. Upgrade it.")
        db.adapters.register_dumper(str, TextDumper)
        db.adapters.register_loader(_TEXT_OID, TextLoader)
        limit = int(self.answer_within * 1000)
        # An abandoned transaction must not block the others forever: the idle timeout ends that of a node that hangs
        # still, keepalives that of a node that is gone. Every query has an index; a plan made while a table was small
        # must not scan it after it has grown.
        db.execute(
            f"SET search_path = {self.schema}; SET client_encoding = 'UTF8'; SET synchronous_commit = on; "
            f"SET statement_timeout = {limit}; SET idle_in_transaction_session_timeout = {limit}; "
            f"SET lock_timeout = {limit // 2}; SET enable_seqscan = off; SET jit = off; "
            f"SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; "
            f"SET tcp_user_timeout = {limit}"
        )


def _is_usable(db: TimedConnection) -> bool:
    """Whether it is open, outside of a transaction, and not closed by the server, which sends nothing else unasked.
    Without the last check, the first use of each connection after a restart of the server would fail."""
    if db.closed or db.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
        return False
    poll = select.poll()  # not `select`, which cannot handle descriptors above 1,023
    poll.register(db.pgconn.socket, select.POLLIN)
    return not poll.poll(0)
