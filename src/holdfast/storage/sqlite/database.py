"""Opening a database file: looked at before it is touched, made whole or not at all, brought up to date in steps.

Nothing here ever overwrites a file that it cannot read.
"""

import os
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from holdfast.core.errors import SchemaTooNew, StorageUnavailable
from holdfast.storage import disk
from holdfast.storage.sqlite import errors
from holdfast.storage.sqlite.schema import Migration

_MAGIC: Final = b"SQLite format 3\x00"
_HEADER: Final = 100
_CARE: Final = "It was left as it is. Restore it from a backup, or move it away to begin with an empty one."


def prepare(path: Path, migrations: Sequence[Migration], *, keep_copy: bool) -> None:
    """See to it that `path` is a database of the newest version. With `keep_copy`, an older one is copied beside itself
    before it is changed. SchemaTooNew: a newer Holdfast wrote it, and nothing was touched."""
    version = check(path, migrations)
    if version is None:
        _create(path, migrations)
    elif version < len(migrations):
        if keep_copy:
            _copy(path, path.with_name(f"{path.name}.v{version}.bak"))
        _migrate(path, version, migrations)


def check(path: Path, migrations: Sequence[Migration]) -> int | None:
    """The version of the database at `path`, None if there is none. Raises like `prepare` and changes nothing."""
    if not path.exists():
        return None
    version = _look(path)
    if version > len(migrations):
        raise SchemaTooNew(
            f"{path} was written by a newer Holdfast (its version is {version}, this one knows {len(migrations)}). "
            "Install that version again, or restore an older backup."
        )
    if version == 0:
        raise StorageUnavailable(f"{path} is not a Holdfast database. {_CARE}")
    return version


def connect(path: Path, pragmas: Iterable[str] = (), *, reads_only: bool = False) -> sqlite3.Connection:
    """A connection to an existing database: WAL, every commit synced. May be handed to another thread, used by one."""
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=5.0,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        # A restored copy may be in another journal mode; it is changed here, once, and not when a reader comes first.
        basic = ["query_only = ON"] if reads_only else ["journal_mode = WAL"]
        # `fullfsync`: on macOS a plain sync does not reach the medium; elsewhere it means nothing.
        for pragma in (*basic, "synchronous = FULL", "fullfsync = ON", "foreign_keys = ON", *pragmas):
            db.execute(f"PRAGMA {pragma}").close()
    except BaseException:
        db.close()
        raise
    return db


def _look(path: Path) -> int:
    """The version of the file. A WAL holds the newest pages and must be read with it, which may leave an `-shm` file;
    where there is none, `immutable` keeps SQLite from making any file."""
    has_wal = _size(_beside(path, "-wal")) > 0
    try:
        _check_length(path, has_wal)
        uri = f"{path.absolute().as_uri()}?{'mode=ro' if has_wal else 'immutable=1'}"
        db = sqlite3.connect(uri, uri=True, timeout=5.0)
        try:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        finally:
            db.close()
    except sqlite3.Error as error:
        raise StorageUnavailable(f"{path} cannot be read: {error}. {_CARE}") from error
    except OSError as error:
        raise disk.from_os(error, f"{path} cannot be read") from error
    return int(version)


def _check_length(path: Path, has_wal: bool) -> None:
    """SQLite takes an empty file for a new database and misses half a page at the end. We never leave an empty one."""
    with path.open("rb") as file:
        head = file.read(_HEADER)
    if len(head) < _HEADER:
        raise StorageUnavailable(f"{path} is cut short: it has only {len(head)} bytes. {_CARE}")
    if not head.startswith(_MAGIC):
        raise StorageUnavailable(f"{path} is not a database. {_CARE}")
    page_size = int.from_bytes(head[16:18], "big")
    expected = int.from_bytes(head[28:32], "big") * (65536 if page_size == 1 else page_size)
    counts_pages = head[24:28] == head[92:96]
    if counts_pages and not has_wal and _size(path) < expected:
        raise StorageUnavailable(f"{path} is cut short: {_size(path)} bytes of {expected} are there. {_CARE}")


def _create(path: Path, migrations: Sequence[Migration]) -> None:
    """Under another name first: a database that is there is whole, so an empty or half one is damage and not a
    beginning."""
    if _beside(path, "-wal").exists():
        raise StorageUnavailable(f"{path} is gone, but {path.name}-wal with its newest part is there. {_CARE}")
    new = _beside(path, ".new")
    try:
        for stale in (new, _beside(new, "-journal"), _beside(new, "-wal"), _beside(new, "-shm")):
            stale.unlink(missing_ok=True)
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        _migrate(new, 0, migrations)
        new.rename(path)
        disk.sync_directory(path.parent)
    except OSError as error:
        raise disk.from_os(error, f"{path} cannot be made") from error


def _copy(path: Path, target: Path) -> None:
    new = _beside(target, ".new")
    try:
        new.unlink(missing_ok=True)
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        source, copy = connect(path), sqlite3.connect(new)
        try:
            source.backup(copy)
        finally:
            copy.close()
            source.close()
        new.replace(target)
        disk.sync_directory(target.parent)
    except OSError as error:
        raise disk.from_os(error, f"{path} cannot be copied before its upgrade") from error
    except sqlite3.Error as error:
        raise errors.from_sqlite(error, path) from error


def _migrate(path: Path, version: int, migrations: Sequence[Migration]) -> None:
    number = version
    try:
        db = connect(path)
        try:
            for number, script in enumerate(migrations[version:], version + 1):
                # An error leaves the transaction open; closing rolls it back.
                if isinstance(script, str):
                    db.executescript(f"BEGIN IMMEDIATE; {script}; PRAGMA user_version = {number}; COMMIT")
                else:
                    db.execute("BEGIN IMMEDIATE")
                    script(db)
                    db.execute(f"PRAGMA user_version = {number}")
                    db.execute("COMMIT")
        finally:
            db.close()  # the last connection: what is in the WAL goes into the file
    except sqlite3.Error as error:
        ours = errors.from_sqlite(error, path)
        what = f"was not upgraded to version {number}" if version else "was not made"
        raise type(ours)(f"{path} {what}. {ours}") from error


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
