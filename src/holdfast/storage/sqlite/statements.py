"""Statements of one transaction. Constants, wherever they come from, so that SQLite prepares each once."""

import sqlite3
from typing import Any

from holdfast.storage.sqlite import search


class Statements:
    """Lone surrogates, which UTF-8 cannot carry, become question marks, as in a journal's frames."""

    def __init__(self, db: sqlite3.Connection, now: float) -> None:
        self._db = db
        self._now = now

    def _do(self, sql: str, *values: Any) -> sqlite3.Cursor:
        try:
            return self._db.execute(sql, values)
        except UnicodeEncodeError:
            return self._db.execute(sql, [encodable(value) for value in values])

    def _one(self, sql: str, *values: Any) -> Any:
        return self._do(sql, *values).fetchone()

    def _all(self, sql: str, *values: Any) -> list[Any]:
        return self._do(sql, *values).fetchall()


def encodable(value: Any) -> Any:
    return search.encodable(value) if isinstance(value, str) else value
