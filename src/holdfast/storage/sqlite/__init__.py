"""Embedded storage: one data directory with two SQLite files and no server. Read store.py or journal.py first.

data_dir                    the directory and its lock
database                    connections and transactions
database_upgrade, schema    creating and upgrading a file; its tables
store, store_group_commit   the store
dialect, search             the SQL that only SQLite has
consistency                 whether the two belong together
journal, journal_*          the journal: writer, reader, index, formats
backup                      copying a directory that is in use
"""

import logging
from contextlib import suppress
from pathlib import Path
from typing import Final

from holdfast.core.errors import StorageUnavailableError
from holdfast.ports.clock import Clock
from holdfast.storage.sqlite import database_upgrade, schema
from holdfast.storage.sqlite.consistency import count_unknown_runs
from holdfast.storage.sqlite.data_dir import DataDir
from holdfast.storage.sqlite.journal import SqliteJournal
from holdfast.storage.sqlite.store import SqliteStore

log = logging.getLogger("holdfast.storage")

_NEWEST: Final = 1000  # Runs of the journal that are looked up in the store at the start
__all__ = ["DataDir", "SqliteJournal", "SqliteStore", "open_embedded"]


def open_embedded(path: Path, clock: Clock) -> tuple[DataDir, SqliteStore, SqliteJournal]:
    """Lock the directory and open its store and journal. Close them in reverse order: the lock must outlast the
    files."""
    data = DataDir.open(path)
    try:
        # A file of a newer version is refused before the other file is changed.
        database_upgrade.check(data.store_file, schema.STORE)
        with suppress(StorageUnavailableError):
            database_upgrade.check(data.journal_file, schema.JOURNAL)
        if unknown := count_unknown_runs(data.store_file, data.journal_file, _NEWEST):
            log.error(
                "%s does not know %d of the newest runs in %s: its newest sessions are missing. It was damaged or "
                "replaced; restore a backup if you have a newer one.",
                *(data.store_file, unknown, data.journal_file.name),
            )
        store = SqliteStore(data, clock)
        try:
            return data, store, SqliteJournal(data.journal_file)
        except BaseException:
            store.abandon()
            raise
    except BaseException:
        data.close()
        raise
