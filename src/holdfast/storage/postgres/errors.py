"""Where psycopg's errors become ours: none of them leaves this package."""

from typing import Final

import psycopg
from psycopg import errors as pg

from holdfast.core.errors import StorageError, StorageFull, StorageUnavailable

CONFLICTS: Final = (pg.SerializationFailure, pg.DeadlockDetected)
"""Another transaction came between: nothing happened, do it again."""
MAYBE: Final = (pg.UniqueViolation, pg.LockNotAvailable)
"""The same, if doing it again a few times helps."""


def from_postgres(error: psycopg.Error) -> StorageError:
    said = str(error).strip().splitlines()
    text = said[0] if said else type(error).__name__
    if isinstance(error, pg.DiskFull):
        return StorageFull(f"PostgreSQL has no room left: {text}. Free some disk space on its server.")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | pg.ReadOnlySqlTransaction):
        return StorageUnavailable(f"PostgreSQL cannot be used: {text}.")
    return StorageError(f"PostgreSQL: {text}.")
