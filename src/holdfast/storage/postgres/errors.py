"""Translation of psycopg's exceptions: none of them leaves this package."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg import errors as pg

from holdfast.core.errors import StorageError, StorageFullError, StorageUnavailableError

CONFLICTS: Final = (pg.SerializationFailure, pg.DeadlockDetected)
"""Another transaction won: nothing was written, and a retry will succeed."""
TRANSIENT: Final = (pg.UniqueViolation, pg.LockNotAvailable)
"""Nothing was written, and a retry may succeed."""
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
