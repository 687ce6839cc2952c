"""PostgreSQL 15 or newer, for several nodes. Read store.py, journal.py or wakeups.py first.

link, lanes, errors     connections, the threads that block for them, and what they raise
schema                  what the tables look like, and how they are brought up to date
store, tx, changes, search, files, keys
journal, frames         wakeups
"""

from holdfast.storage.postgres.journal import PostgresJournal
from holdfast.storage.postgres.link import Place
from holdfast.storage.postgres.store import PostgresStore
from holdfast.storage.postgres.wakeups import PostgresWakeups

__all__ = ["Place", "PostgresJournal", "PostgresStore", "PostgresWakeups"]
