"""PostgreSQL 15 or newer, for several nodes. Read store.py, journal.py or wakeups.py first.

connection                                connections and their exceptions
schema                                    the tables and their migrations
store, dialect, change_numbers, search    the store
journal, frame_packing                    the journal
wakeups, files, keyring, health_check
"""

from holdfast.storage.postgres.connection import PostgresConfig
from holdfast.storage.postgres.journal import PostgresJournal
from holdfast.storage.postgres.store import PostgresStore
from holdfast.storage.postgres.wakeups import PostgresWakeups

__all__ = ["PostgresConfig", "PostgresJournal", "PostgresStore", "PostgresWakeups"]
