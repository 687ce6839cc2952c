"""The embedded default: one data directory, two SQLite files in it, no server. Read store.py or journal.py first.

datadir            the directory and its lock
database, schema   opening, creating and upgrading a file; what is in it
runway             room for commits ahead of the WAL
store, lane, tx, search
journal, journal_writer, journal_reader, logged, segments
"""

from contextlib import suppress
from pathlib import Path

from holdfast.core.errors import StorageUnavailable
from holdfast.ports import Clock
from holdfast.storage.sqlite import database, schema
from holdfast.storage.sqlite.datadir import DataDir
from holdfast.storage.sqlite.journal import SqliteJournal
from holdfast.storage.sqlite.store import SqliteStore

__all__ = ["DataDir", "SqliteJournal", "SqliteStore", "open_embedded"]


def open_embedded(path: Path, clock: Clock) -> tuple[DataDir, SqliteStore, SqliteJournal]:
    """Lock the directory and open what is in it. Close them in the opposite order: the lock must outlast the files."""
    data = DataDir.open(path)
    try:
        # What a newer version wrote is refused before anything is changed in the other file.
        database.check(data.store_file, schema.STORE)
        with suppress(StorageUnavailable):
            database.check(data.journal_file, schema.JOURNAL)
        store = SqliteStore(data, clock)
        try:
            return data, store, SqliteJournal(data.journal_file)
        except BaseException:
            store.abandon()
            raise
    except BaseException:
        data.close()
        raise
