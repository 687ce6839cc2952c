"""Where sqlite3's errors become ours: none of them leaves this package."""

import sqlite3
from pathlib import Path

from holdfast.core.errors import StorageError, StorageFull, StorageUnavailable
from holdfast.storage import disk

_SCARCE = 64 * 1024
"""Bytes. With less than this left, a failed write means a full disk whatever code SQLite gave it: growing the
shared-memory file of the WAL takes 32 KiB and fails as an I/O error."""

_FULL = sqlite3.SQLITE_FULL
_WRITING = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
_UNAVAILABLE = {
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
}


def from_sqlite(error: sqlite3.Error, file: Path) -> StorageError:
    """Ours for `error`, which came up while `file` was used."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code; the rest says in which system call
    if code == _FULL or (code in _WRITING and _is_full(file.parent)):
        return StorageFull(f"No room is left to write {file}. Free some disk space.")
    if code in _UNAVAILABLE:
        return StorageUnavailable(f"{file} cannot be used: {error}.")
    return StorageError(f"{file}: {error}.")


def _is_full(directory: Path) -> bool:
    room = disk.free_bytes(directory)
    return room is not None and room < _SCARCE
