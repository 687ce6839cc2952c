"""Translation of sqlite3's exceptions: none of them leaves this package."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.core.errors import StorageError, StorageFullError, StorageUnavailableError
from holdfast.storage import filesystem

_ALMOST_FULL = 64 * 1024
"""Free bytes below which a failed write means a full disk, whatever SQLite's error code: growing the WAL's
shared-memory file takes 32 KiB and fails as an I/O error."""

_FULL = sqlite3.SQLITE_FULL
_WRITING = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNAVAILABLE = {
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
}


def from_sqlite(error: sqlite3.Error, file: Path) -> StorageError:
    """Translate an error that occurred while `file` was in use."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code, without the system call
    if code == _FULL or (code in _WRITING and _is_full(file.parent)):
        return StorageFullError(f"The disk is full: {file} cannot be written. Free some disk space.")
    if code in _DAMAGED:
        return StorageUnavailableError(f"{file} cannot be used: {error}.", damaged=True)
    if code in _UNAVAILABLE:
        return StorageUnavailableError(f"{file} cannot be used: {error}.")
    return StorageError(f"{file}: {error}.")


@contextmanager
def translated(file: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise from_sqlite(error, file) from error


def _is_full(directory: Path) -> bool:
    room = filesystem.free_bytes(directory)
    return room is not None and room < _ALMOST_FULL
