"""From a data directory's SQLite to PostgreSQL: rows table by table, in portions, each portion and how far it goes in
one transaction, so that a move that was broken off goes on where it was. Nothing of the source is changed.

What is not taken along: the change feed, which begins a new generation.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from holdfast.core.errors import NotAllowed, StorageError
from holdfast.core.parts import File, all_from_json
from holdfast.core.values import dataclass
from holdfast.storage import rows
from holdfast.storage.postgres import search
from holdfast.storage.postgres.link import Place, TimedConnection

Report = Callable[[str, int, int], None]
"""What is being moved, how much is done, of how much."""
_PORTION: Final = 500
_SWITCHES: Final = frozenset({"pinned", "archived", "in_tree", "pruned"})


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


def _table(name: str, columns: str, key: str = "id") -> Table:
    return Table(name, rows.names(columns), rows.names(key))


TABLES: Final = (
    _table("sessions", rows.SESSION),
    _table("messages", rows.MESSAGE),
    _table("runs", rows.RUN),
    _table("approvals", rows.APPROVAL),
    _table("compactions", rows.COMPACTION, "session_id, message_id"),
    _table("files", rows.FILE),
    _table("grants", rows.GRANT, "owner, session_id, tool, scope"),
    _table("settings", "owner, name, value", "owner, name"),
    _table("purges", "run_id", "run_id"),
    _table("ledgers", rows.LEDGER, "session_id"),
    _table("dirty_turns", rows.DIRTY_TURN, "session_id, n"),
    _table("facts", f"n, {rows.FACT}", "n"),
    _table("docs", "n, owner, session_id, message_id, text", "n"),
)


class Move:
    def __init__(self, source: sqlite3.Connection, place: Place, report: Report) -> None:
        self._source = source
        self._place = place
        self._report = report

    def begin(self, generation: str) -> None:
        """NotAllowed: the target has data of its own, or of another directory."""
        with self._place.connect() as db:
            marked = _meta(db, "moved from")
            if marked is None and _count(db, "sessions"):
                raise NotAllowed("move the data", "there are sessions in that database already; name an empty one")
            if marked not in (None, generation):
                raise NotAllowed("move the data", "another data directory was moved to that database before")
            db.execute("INSERT INTO meta VALUES ('moved from', %s) ON CONFLICT DO NOTHING", (generation,))

    def copy(self) -> None:
        with self._place.connect() as db:
            for table in TABLES:
                self._copy(db, table)
            # What comes after must sort after what came along.
            db.execute("SELECT setval(pg_get_serial_sequence('docs', 'n'), greatest((SELECT max(n) FROM docs), 1))")
            db.execute("ANALYZE")

    def _copy(self, db: TimedConnection, table: Table) -> None:
        total = self._source.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0]
        done = int(_meta(db, f"moved {table.name}") or 0)
        self._report(table.name, done, total)
        listed = f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {', '.join(table.key)}"
        found = self._source.execute(f"{listed} LIMIT -1 OFFSET {done}")  # nobody else writes: the order stays
        while some := found.fetchmany(_PORTION):
            with db.transaction(), db.pipeline():
                for row in some:
                    columns, values, marks = _target(table, row)
                    db.execute(
                        f"INSERT INTO {table.name} ({', '.join(columns)}) OVERRIDING SYSTEM VALUE "
                        f"VALUES ({', '.join(marks)}) ON CONFLICT DO NOTHING".encode(),
                        values,
                    )
                done += len(some)
                db.execute(
                    "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    (f"moved {table.name}", str(done)),
                )
            self._report(table.name, done, total)

    def verify(self) -> dict[str, int]:
        """Rows of each table, which both sides have, the same. StorageError: they do not."""
        counts: dict[str, int] = {}
        with self._place.connect() as db:
            for table in TABLES:
                listed = f"SELECT {', '.join(table.columns)} FROM {table.name}"
                here = _digest(table, self._source.execute(listed))
                there = _digest(table, _streamed(db, listed))
                if here != there:
                    raise StorageError(
                        f"{table.name}: {here[0]} rows are in the data directory and {there[0]} in PostgreSQL, or they "
                        "differ. Nothing was changed in the directory: empty the schema `holdfast` and move again."
                    )
                counts[table.name] = here[0]
                self._report(f"{table.name} verified", here[0], here[0])
        return counts


def _target(table: Table, row: Sequence[Any]) -> tuple[list[str], list[Any], list[str]]:
    """Columns, values and marks of the same row in PostgreSQL; what is derived there is made here."""
    columns, values = list(table.columns), [_value(name, value) for name, value in zip(table.columns, row, strict=True)]
    marks = ["%s"] * len(columns)
    if table.name == "messages":
        parts = all_from_json(rows.decode(row[table.columns.index("parts")]))
        columns.append("file_ids")
        values.append(sorted({part.file_id for part in parts if isinstance(part, File)}))
        marks.append("%s")
    if table.name in ("docs", "facts"):
        columns.append("words")
        values.append(search.words(row[table.columns.index("text")]))
        marks.append("array_to_tsvector(%s::text[])")
    return columns, values, marks


def _value(column: str, value: Any) -> Any:
    if column in _SWITCHES:
        return bool(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return "" if column == "message_id" and value is None else value


def _digest(table: Table, found: Iterable[Sequence[Any]]) -> tuple[int, int]:
    """How many rows, and a sum of their checksums, which does not depend on their order."""
    count = total = 0
    for row in found:
        plain = [_value(name, value) for name, value in zip(table.columns, row, strict=True)]
        total += int.from_bytes(hashlib.sha256(repr(plain).encode("utf-8", "replace")).digest()[:16])
        count += 1
    return count, total % (1 << 128)


def _streamed(db: TimedConnection, listed: str) -> Iterator[Sequence[Any]]:
    with db.transaction(), db.cursor(name="verified") as cursor:
        cursor.itersize = _PORTION
        yield from cursor.execute(listed.encode())


def _meta(db: TimedConnection, key: str) -> str | None:
    row = db.execute("SELECT value FROM meta WHERE key = %s", (key,)).fetchone()
    return None if row is None else str(row[0])


def _count(db: TimedConnection, table: str) -> int:
    row = db.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
    return 0 if row is None else int(row[0])
