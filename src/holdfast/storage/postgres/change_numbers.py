"""Numbering of changes and facts, whose readers follow them by number: n may become visible only when no smaller
number can still commit, and many transactions write at once.

n is the id of the writing transaction, times 65,536, plus a count within it. For every snapshot PostgreSQL knows the
oldest transaction that is still open in it (`pg_snapshot_xmin`). Every smaller id has committed or never will, so those
numbers are visible, and no writer waits for another. A long write transaction of another client of the same server
delays the feed and loses none of it.
"""

from typing import Final

PER_TRANSACTION: Final = 1 << 16  # The most changes and facts of one transaction

OWN: Final = "(pg_current_xact_id()::text::bigint << 16)"
_OLDEST_OPEN: Final = "(SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 16)"
_OWN_IF_ANY: Final = "(SELECT pg_current_xact_id_if_assigned()::text::bigint << 16)"
VISIBLE: Final = f"(n < {_OLDEST_OPEN} OR (n >= {_OWN_IF_ANY} AND n < {_OWN_IF_ANY} + 65536))"
"""Numbers that are settled, and those of this very transaction."""

BOUNDS: Final = f"""
    SELECT floor.n, greatest(floor.n, (SELECT n FROM changes WHERE {VISIBLE} ORDER BY n DESC LIMIT 1))
    FROM changes_floor AS floor
"""
HELD_BACK: Final = f"SELECT EXISTS (SELECT 1 FROM changes WHERE n >= {_OLDEST_OPEN})"
TRIM: Final = f"""
    WITH last AS (SELECT n FROM changes WHERE {VISIBLE} ORDER BY n DESC OFFSET ? LIMIT 1),
    gone AS (DELETE FROM changes WHERE n <= (SELECT n FROM last))
    UPDATE changes_floor AS floor SET n = last.n FROM last
"""
