"""Queries a SQLite file that somebody else made. A small file can describe endless rows, by a virtual table, a view or
pages that refer to each other, so the tables must be ordinary ones, and the work and time of queries are bounded."""

import re
import sqlite3
from collections.abc import Callable, Generator, Sequence
from time import monotonic
from typing import Any, Final

from holdfast.core.errors import InvalidInputError

_STEPS: Final = 1000  # Steps of SQLite's virtual machine between two checks
MAX_WORK: Final = 200_000_000  # Steps of all queries; each byte of the file adds more
_WORK_PER_BYTE: Final = 20
MAX_SECONDS: Final = 60.0  # Of one query: a step can read a large cell
_MAX_CELL: Final = 128 * 1024 * 1024
_QUOTES: Final = "[\"'`\\[\\]]?"


class GuardedDatabase:
    """`check` is called while a query runs; what it raises ends the query and is raised by it."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        shown_as: str,
        size: int,
        check: Callable[[], object],
        *,
        max_work: int = MAX_WORK,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._connection = connection
        self._shown_as = shown_as
        self._check = check
        self._work_left = max_work + _WORK_PER_BYTE * size
        self._now = now
        self._deadline = now() + MAX_SECONDS
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_CELL)
        connection.set_progress_handler(self._stops, _STEPS)
        self._connection.execute("PRAGMA trusted_schema = OFF")

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> Generator[sqlite3.Row, None, None]:
        """Without sorting: SQLite would write all rows to a temporary file before the caller can count them."""
        self._deadline = self._now() + MAX_SECONDS
        try:
            yield from self._connection.execute(sql, parameters)
        except sqlite3.OperationalError:
            self._check()
            if self._is_over():
                raise InvalidInputError(self._shown_as, "takes too long to read; it may be damaged") from None
            raise

    def columns(self, table: str) -> set[str] | None:
        """The columns of an ordinary table, without computed ones; empty if it is missing, None if it is not a table.

        The statement that defines it decides: `PRAGMA table_list` expands all views, which can take very long."""
        pattern = re.compile(rf"CREATE TABLE {_QUOTES}{re.escape(table)}{_QUOTES}\s*\(")
        found = list(self.query("SELECT type, rootpage, sql FROM sqlite_master WHERE name = ?", (table,)))
        if any(row["type"] != "table" or not row["rootpage"] or not pattern.match(str(row["sql"])) for row in found):
            return None
        return {row["name"] for row in self.query(f"PRAGMA table_info({table})")} if found else set()

    def _stops(self) -> bool:
        self._work_left -= _STEPS
        self._check()
        return self._is_over()

    def _is_over(self) -> bool:
        return self._work_left < 0 or self._now() > self._deadline


def sort_key(value: Any) -> tuple[int, Any]:
    """The order of SQLite: nothing, numbers, text, bytes."""
    match value:
        case None:
            return 0, 0
        case int() | float():
            return 1, value
        case str():
            return 2, value
        case _:
            return 3, value
