"""The base of the SQL transaction: running statements through the dialect."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from holdfast.storage.sql.dialect import Dialect

T = TypeVar("T")

NEWEST: Final = (float("inf"), "")
"""A cursor before the first row of a list that runs from new to old."""
LARGEST_NUMBER: Final = 2**62


class Statements:
    def __init__(self, dialect: Dialect) -> None:
        self._db = dialect

    def _execute(self, sql: str, *values: Any) -> None:
        self._db.execute(sql, values)

    def _one(self, sql: str, *values: Any) -> Any:
        return self._db.fetchone(sql, values)

    def _all(self, sql: str, *values: Any) -> list[Any]:
        return self._db.fetchall(sql, values)

    def _one_as(self, decode: Callable[[Any], T], sql: str, *values: Any) -> T | None:
        row = self._db.fetchone(sql, values)
        return None if row is None else decode(row)

    def _all_as(self, decode: Callable[[Any], T], sql: str, *values: Any) -> list[T]:
        return list(map(decode, self._db.fetchall(sql, values)))
