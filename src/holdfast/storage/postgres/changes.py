"""Numbers that readers follow, of changes and of facts. Many write at once, and n may be shown only when no smaller
one can still commit.

n is the number of the writing transaction, times 65,536, and a count within it. PostgreSQL says of every snapshot the
oldest transaction that is still open in it (`pg_snapshot_xmin`): whatever is numbered below has committed or never
will, so that much is shown, and no writer waits for another. A long write transaction of somebody else in the same
server holds the feed back, and loses nothing of it.
"""

from typing import Final, LiteralString

BITS: Final = 16
MOST: Final = 1 << BITS
"""Changes, or facts, of one transaction."""

MINE: Final[LiteralString] = "(pg_current_xact_id()::text::bigint << 16)"
_BOUND: Final[LiteralString] = "(SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 16)"
_OWN: Final[LiteralString] = "(SELECT pg_current_xact_id_if_assigned()::text::bigint << 16)"
SHOWN: Final[LiteralString] = f"(n < {_BOUND} OR (n >= {_OWN} AND n < {_OWN} + 65536))"
"""What is settled for good, and what this very transaction wrote."""

ADD: Final[LiteralString] = f"""
    INSERT INTO changes (n, kind, owner, session_id, run_id, approval_id, status)
    VALUES ({MINE} + %s, %s, %s, %s, %s, %s, %s)
"""
LIST: Final[LiteralString] = f"""
    SELECT n, kind, owner, session_id, run_id, approval_id, status FROM changes
    WHERE n > %s AND {SHOWN} ORDER BY n LIMIT %s
"""
BOUNDS: Final[LiteralString] = f"""
    SELECT floor.n, greatest(floor.n, (SELECT n FROM changes WHERE {SHOWN} ORDER BY n DESC LIMIT 1))
    FROM changes_floor AS floor
"""
HELD: Final[LiteralString] = f"SELECT EXISTS (SELECT 1 FROM changes WHERE n >= {_BOUND})"
TRIM: Final[LiteralString] = f"""
    WITH last AS (SELECT n FROM changes WHERE {SHOWN} ORDER BY n DESC OFFSET %s LIMIT 1),
    gone AS (DELETE FROM changes WHERE n <= (SELECT n FROM last))
    UPDATE changes_floor AS floor SET n = last.n FROM last
"""
