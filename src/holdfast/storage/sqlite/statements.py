"""Statements of one transaction. Constants, or put together in a few ways, so that SQLite prepares each once."""

import sqlite3
from collections.abc import Sequence
from itertools import compress
from operator import ne
from typing import Any

from holdfast.storage import rows
from holdfast.storage.sqlite import search


class Table:
    """One whose rows are found and replaced by `id`, the first of its columns."""

    def __init__(self, name: str, columns: str) -> None:
        self.name = name
        self.select = f"SELECT {columns} FROM {name}"
        self.columns = rows.names(columns)
        self.upsert = rows.upsert(name, columns)
        self._sets = tuple(f"{column} = ?" for column in self.columns)

    def update(self, changed: Sequence[int]) -> str:
        """For the values of these columns, by their places, and the id."""
        return f"UPDATE {self.name} SET {', '.join([self._sets[n] for n in changed])} WHERE id = ?"


class Statements:
    """Lone surrogates, which UTF-8 cannot carry, become question marks, as in a journal's frames."""

    def __init__(self, db: sqlite3.Connection, now: float, *, writes: bool) -> None:
        self._db = db
        self._now = now
        self._writes = writes
        self._known: dict[tuple[Table, str], rows.Row] = {}
        """Rows that were read or written here, as they are now, if it `writes`. Whoever changes any by other means
        forgets them."""

    def _do(self, sql: str, *values: Any) -> sqlite3.Cursor:
        try:
            return self._db.execute(sql, values)
        except UnicodeEncodeError:
            return self._db.execute(sql, [encodable(value) for value in values])

    def _one(self, sql: str, *values: Any) -> Any:
        return self._do(sql, *values).fetchone()

    def _all(self, sql: str, *values: Any) -> list[Any]:
        return self._do(sql, *values).fetchall()

    def _find(self, table: Table, key: str) -> Any:
        row = self._one(f"{table.select} WHERE id = ?", key)
        if row is not None and self._writes:
            self._known[table, key] = row
        return row

    def _put(self, table: Table, row: rows.Row) -> rows.Row | None:
        """Returns what was known of it before. Of a known row only what differs is written: SQLite then leaves alone
        every index that has nothing of it, and most have not."""
        place = table, row[0]
        old = self._known.get(place)
        if old is not None:
            changed = list(compress(range(len(row)), map(ne, old, row)))
            if changed and not self._do(table.update(changed), *[row[n] for n in changed], row[0]).rowcount:
                old = None  # dropped meanwhile
        if old is None:
            self._do(table.upsert, *row)
        self._known[place] = row
        return old


def encodable(value: Any) -> Any:
    return search.encodable(value) if isinstance(value, str) else value
