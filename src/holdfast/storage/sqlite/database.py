"""Connections to a database file, and transactions. The PRAGMAs of every connection are set here; those of one file are
in `storage.sqlite.store` and `storage.sqlite.journal_writer`."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def connect(path: Path, pragmas: Iterable[str] = (), *, read_only: bool = False) -> sqlite3.Connection:
    """Connect to an existing database: WAL mode, every commit synced. The connection may move to another thread, but
    only one may use it."""
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=5.0,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        # A restored copy may be in another journal mode; only a writer changes it.
        basic = ["query_only = ON"] if read_only else ["journal_mode = WAL"]
        # `fullfsync`: on macOS a plain sync does not reach the disk; elsewhere it has no effect.
        for pragma in (*basic, "synchronous = FULL", "fullfsync = ON", "foreign_keys = ON", *pragmas):
            db.execute(f"PRAGMA {pragma}").close()
    except BaseException:
        db.close()
        raise
    return db


def connect_unchanged(path: Path) -> sqlite3.Connection:
    """Connect to read, also while a server uses the file. A database in use has a WAL, perhaps an empty one: it is read
    too, which may leave an `-shm` file. Without a WAL, `immutable` keeps SQLite from creating any file."""
    mode = "mode=ro" if sibling(path, "-wal").exists() else "immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=5.0)


@contextmanager
def transaction(db: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        roll_back(db)
        raise


def roll_back(db: sqlite3.Connection) -> None:
    if db.in_transaction:  # after some errors SQLite has rolled back by itself
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")


def close_quietly(db: sqlite3.Connection | None) -> None:
    if db is not None:
        with suppress(sqlite3.Error):
            db.close()


def sibling(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
