"""Creates and upgrades a database file, and decides which files are refused. The tables and migrations:
`storage.sqlite.schema`. The same for PostgreSQL: `storage.postgres.database_upgrade`.

A file is checked before it is changed, created whole or not at all, and never overwritten if it cannot be read.
"""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

from holdfast.core.errors import SchemaTooNewError, StorageUnavailableError
from holdfast.storage import filesystem
from holdfast.storage.sqlite import errors
from holdfast.storage.sqlite.database import connect, connect_unchanged, sibling
from holdfast.storage.sqlite.schema import Migration

_MAGIC: Final = b"SQLite format 3\x00"
_HEADER: Final = 100
_ADVICE: Final = "It was not changed. Restore it from a backup, or move it away to start with an empty one."


def create_or_upgrade(path: Path, migrations: Sequence[Migration], *, keep_copy: bool) -> None:
    """Create the database, or upgrade it to the newest version. With `keep_copy`, an older one is copied next to itself
    first. SchemaTooNewError: a newer Holdfast wrote it; nothing was changed."""
    version = check(path, migrations)
    if version is None:
        _create(path, migrations)
    elif version < len(migrations):
        if keep_copy:
            _copy(path, path.with_name(f"{path.name}.v{version}.bak"))
        _upgrade(path, version, migrations)


def check(path: Path, migrations: Sequence[Migration]) -> int | None:
    """The version of the database at `path`, or None if there is no file. Raises the errors of `create_or_upgrade`
    and changes nothing."""
    if not path.exists():
        return None
    version = _read_version(path)
    if version > len(migrations):
        raise SchemaTooNewError(
            f"{path} was written by a newer Holdfast: its schema has version {version}, and this one supports "
            f"{len(migrations)}. Install the newer version, or restore an older backup."
        )
    if version == 0:
        raise StorageUnavailableError(f"{path} is not a Holdfast database. {_ADVICE}", damaged=True)
    return version


def _read_version(path: Path) -> int:
    try:
        with filesystem.translated(f"{path} cannot be read"):
            _check_length(path)
        with closing(connect_unchanged(path)) as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.Error as error:
        ours = errors.from_sqlite(error, path)
        raise replace(ours, what=f"{path} cannot be read: {error}. {_ADVICE}") from error
    return int(version)


def _check_length(path: Path) -> None:
    """SQLite accepts an empty file as a new database and overlooks a truncated page; Holdfast never leaves either."""
    with path.open("rb") as file:
        head = file.read(_HEADER)
    if len(head) < _HEADER:
        raise StorageUnavailableError(f"{path} is truncated: it has only {len(head)} bytes. {_ADVICE}", damaged=True)
    if not head.startswith(_MAGIC):
        raise StorageUnavailableError(f"{path} is not a database. {_ADVICE}", damaged=True)
    page_size = int.from_bytes(head[16:18], "big")
    expected = int.from_bytes(head[28:32], "big") * (65536 if page_size == 1 else page_size)
    counts_pages = head[24:28] == head[92:96]
    if counts_pages and not _size(sibling(path, "-wal")) and _size(path) < expected:
        raise StorageUnavailableError(
            f"{path} is truncated: it has {_size(path)} of {expected} bytes. {_ADVICE}", damaged=True
        )


def _create(path: Path, migrations: Sequence[Migration]) -> None:
    """Create the file under a temporary name first: a file under its final name is complete, so an empty or partial one
    is damaged."""
    if sibling(path, "-wal").exists():
        raise StorageUnavailableError(
            f"{path} is missing, but {path.name}-wal with its newest changes exists. {_ADVICE}", damaged=True
        )
    new = sibling(path, ".new")
    with filesystem.translated(f"{path} cannot be created"):
        for stale in (new, sibling(new, "-journal"), sibling(new, "-wal"), sibling(new, "-shm")):
            stale.unlink(missing_ok=True)
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        _upgrade(new, 0, migrations)
        new.rename(path)
        filesystem.sync_directory(path.parent)


def _copy(path: Path, target: Path) -> None:
    new = sibling(target, ".new")
    with errors.translated(path), filesystem.translated(f"{path} cannot be copied before its upgrade"):
        new.unlink(missing_ok=True)
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(connect(path)) as source, closing(sqlite3.connect(new)) as copy:
            source.backup(copy)
        new.replace(target)
        filesystem.sync_directory(target.parent)


def _upgrade(path: Path, version: int, migrations: Sequence[Migration]) -> None:
    try:
        with closing(connect(path)) as db:  # the last connection checkpoints the WAL into the file
            migrate(db, version, migrations)
    except sqlite3.Error as error:
        ours = errors.from_sqlite(error, path)
        what = f"was not upgraded to version {len(migrations)}" if version else "was not created"
        raise replace(ours, what=f"{path} {what}. {ours}") from error


def migrate(db: sqlite3.Connection, version: int, migrations: Sequence[Migration]) -> None:
    """Run the migrations after `version`. After an error the transaction is open; closing rolls it back."""
    for number, script in enumerate(migrations[version:], version + 1):
        if isinstance(script, str):
            db.executescript(f"BEGIN IMMEDIATE; {script}; PRAGMA user_version = {number}; COMMIT")
        else:
            db.execute("BEGIN IMMEDIATE")
            script(db)
            db.execute(f"PRAGMA user_version = {number}")
            db.execute("COMMIT")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
