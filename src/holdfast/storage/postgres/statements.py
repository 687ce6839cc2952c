"""Statements of one transaction. They are sent without waiting for their answers; a read waits for its own and for all
before it."""

from typing import Any

import psycopg

from holdfast.core.errors import StorageError
from holdfast.storage.postgres import changes
from holdfast.storage.postgres.link import TimedConnection


def constant(text: str) -> bytes:
    """Statements are put together from constants of this package alone; values are always parameters."""
    return text.encode()


class Statements:
    def __init__(self, db: TimedConnection) -> None:
        self._db = db
        self._now: float | None = None
        self._counted = 0

    @property
    def now(self) -> float:
        if self._now is None:
            self._now = float(self._one("SELECT extract(epoch FROM transaction_timestamp())::double precision")[0])
        return self._now

    def _do(self, sql: str | bytes, *values: Any) -> "psycopg.Cursor[Any]":
        return self._db.execute(sql if isinstance(sql, bytes) else sql.encode(), values)

    def _one(self, sql: str, *values: Any) -> Any:
        return self._do(sql, *values).fetchone()

    def _all(self, sql: str, *values: Any) -> list[Any]:
        return self._do(sql, *values).fetchall()

    def _count(self) -> int:
        """The next number within this transaction (see changes.py)."""
        if self._counted >= changes.MOST:
            raise StorageError(f"A transaction has more than {changes.MOST} changes. Make it in smaller steps.")
        self._counted += 1
        return self._counted - 1
