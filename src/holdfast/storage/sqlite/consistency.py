"""Whether the store and the journal of a data directory belong together.

A run is in the store before it is in the journal, and it is erased from both. A journal with runs that the store does
not know belongs to a newer store: SQLite has dropped the end of a damaged write-ahead log, or the file was replaced.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from holdfast.storage.sqlite import database

_AT_ONCE: Final = 500


def count_unknown_runs(store: Path, journal: Path, newest: int = -1) -> int:
    """Count the runs of the journal, or of its `newest` ones, that the store does not know. 0 if one of the files does
    not exist or cannot be read."""
    if not store.exists() or not journal.exists():
        return 0
    unknown = 0
    try:
        with closing(database.connect_unchanged(store)) as ours, closing(database.connect_unchanged(journal)) as theirs:
            found = theirs.execute("SELECT run FROM runs WHERE pruned = 0 ORDER BY alias DESC LIMIT ?", (newest,))
            while some := [run for (run,) in found.fetchmany(_AT_ONCE)]:
                named = f"IN ({','.join('?' * len(some))})"
                known = f"SELECT id FROM runs WHERE id {named} UNION SELECT run_id FROM purges WHERE run_id {named}"
                unknown += len(some) - len(ours.execute(known, [*some, *some]).fetchall())
    except sqlite3.Error:
        return 0
    return unknown


def drop_unknown_runs(store: Path, journal: sqlite3.Connection) -> None:
    """Drop the runs that the store does not know from a copy of the journal, which was made after that of the store.
    Their records in the log are dead without them."""
    journal.execute("ATTACH ? AS store", (store.absolute().as_uri() + "?mode=ro",))
    unknown = "NOT IN (SELECT id FROM store.runs UNION SELECT run_id FROM store.purges)"
    journal.execute(f"DELETE FROM segments WHERE run IN (SELECT alias FROM runs WHERE pruned = 0 AND run {unknown})")
    journal.execute(f"DELETE FROM runs WHERE pruned = 0 AND run {unknown}")
    journal.execute("DETACH store")
