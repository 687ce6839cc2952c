"""The base of the SQL transaction: reading values from their tables, and what it knows of rows."""

from typing import Any, Final, TypeVar

from holdfast.storage.sql.dialect import Dialect
from holdfast.storage.sql.tables import Row, Table, ValueTable

V = TypeVar("V")

NEWEST: Final = (float("inf"), "")  # A cursor before the first row of a list that runs from new to old
OLDEST: Final = (float("-inf"), "")  # One for a list that runs from old to new
LARGEST_NUMBER: Final = 2**62


class Statements:
    def __init__(self, dialect: Dialect) -> None:
        self._db = dialect
        self._known: dict[tuple[Table, str], Row] = {}
        """The current content of rows that a writing transaction has read or saved by id."""

    def _select(self, table: ValueTable[V], rest: str, *values: Any) -> list[V]:
        return list(map(table.decode, self._db.fetchall(f"{table.select} {rest}", *values)))

    def _select_one(self, table: ValueTable[V], rest: str, *values: Any) -> V | None:
        found = self._select(table, rest, *values)
        return found[0] if found else None

    def _find(self, table: ValueTable[V], key: str) -> V | None:
        found = self._db.fetchall(f"{table.select} WHERE id = ?", key)
        if found and self._db.writes:
            self._known[table, key] = found[0]
        return table.decode(found[0]) if found else None

    def _remember(self, table: Table, row: Row) -> Row | None:
        """Before a row is saved. Returns it as this transaction knew it, if it did."""
        old = self._known.get((table, row[0]))
        self._known[table, row[0]] = row
        return old

    def _forget_rows(self) -> None:
        """Rows are changed by other statements than those that save them by id."""
        self._known.clear()
