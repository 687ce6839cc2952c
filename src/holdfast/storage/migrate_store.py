"""Migration of the store from a data directory's SQLite file to PostgreSQL.

Rows are copied table by table in portions. Each portion and the position after it commit in one transaction, so an
interrupted migration continues where it stopped. The source is not changed. The change feed is not copied: it starts
a new generation.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from holdfast.core.errors import NotAllowedError, StorageError
from holdfast.core.parts import FilePart
from holdfast.storage.postgres import search
from holdfast.storage.postgres.connection import PostgresConfig, TimedConnection
from holdfast.storage.sql import tables
from holdfast.storage.sql.tables import Table

Report = Callable[[str, int, int], None]  # Called with the name of a table, the number of rows copied, and the total
_PORTION: Final = 500
_BOOLEANS: Final = frozenset(
    {"pinned", "archived", "in_tree", "pruned", "billed", "with_reasoning", "with_tools", "with_files"}
    | {"done", "failed", "approval", "shows_title", "use_tools"}
)


TABLES: Final = (
    tables.SESSIONS,
    tables.MESSAGES,
    tables.RUNS,
    tables.ERASED_USAGE,
    tables.APPROVALS,
    tables.COMPACTIONS,
    tables.FILES,
    tables.SHARES,
    tables.DRAFTS,
    tables.PERSONAS,
    tables.PROMPTS,
    tables.PROJECTS,
    tables.PROJECT_FILES,
    tables.GRANTS,
    tables.SETTINGS,
    Table("purges", "run_id", "run_id"),
    tables.LEDGERS,
    tables.DIRTY_TURNS,
    tables.FACTS,
    tables.PUSH_SUBSCRIPTIONS,
    tables.PUSHES,
    Table("docs", "n, owner, session_id, message_id, text", "n"),
)


class StoreMigration:
    def __init__(self, source: sqlite3.Connection, place: PostgresConfig, report: Report) -> None:
        self._source = source
        self._place = place
        self._report = report

    def begin(self, generation: str) -> None:
        """Mark the target as this directory's. NotAllowedError: it has data of its own, or of another directory."""
        with self._place.connect() as db:
            marked = _meta(db, "moved from")
            if marked is None and db.execute("SELECT 1 FROM sessions LIMIT 1").fetchone() is not None:
                raise NotAllowedError("move the data", "the database already contains sessions; use an empty one")
            if marked not in (None, generation):
                raise NotAllowedError("move the data", "it was used for another data directory; use an empty one")
            db.execute("INSERT INTO meta VALUES ('moved from', %s) ON CONFLICT DO NOTHING", (generation,))

    def copy(self) -> None:
        with self._place.connect() as db:
            for table in TABLES:
                self._copy(db, table)
            # New search entries must sort after the copied ones.
            db.execute("SELECT setval(pg_get_serial_sequence('docs', 'n'), greatest((SELECT max(n) FROM docs), 1))")
            db.execute("ANALYZE")

    def _copy(self, db: TimedConnection, table: Table) -> None:
        total = self._source.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0]
        done = int(_meta(db, f"moved {table.name}") or 0)
        self._report(table.name, done, total)
        listed = f"{table.select} ORDER BY {table.key} LIMIT -1 OFFSET {done}"
        found = self._source.execute(listed)  # nobody else writes: the order is stable
        while some := found.fetchmany(_PORTION):
            with db.transaction(), db.pipeline():
                for row in some:
                    cells = _target(table, row)
                    placeholders = ", ".join(placeholder for placeholder, _ in cells.values())
                    db.execute(
                        f"INSERT INTO {table.name} ({', '.join(cells)}) OVERRIDING SYSTEM VALUE "
                        f"VALUES ({placeholders}) ON CONFLICT DO NOTHING".encode(),
                        [value for _, value in cells.values()],
                    )
                done += len(some)
                db.execute(
                    "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    (f"moved {table.name}", str(done)),
                )
            self._report(table.name, done, total)

    def verify(self) -> dict[str, int]:
        """The number of rows per table, if both sides have the same rows. StorageError: they differ."""
        counts: dict[str, int] = {}
        with self._place.connect() as db:
            for table in TABLES:
                here = _digest(table, self._source.execute(table.select))
                there = _digest(table, _streamed(db, table.select))
                if here != there:
                    raise StorageError(
                        f"{table.name}: the data directory has {here[0]} rows and PostgreSQL {there[0]}, or the rows "
                        "differ. The data directory is unchanged: empty the schema `holdfast` and migrate again."
                    )
                counts[table.name] = here[0]
                self._report(f"{table.name} verified", here[0], here[0])
        return counts


def _target(table: Table, row: Sequence[Any]) -> dict[str, tuple[str, Any]]:
    """Placeholder and value by column of the same row in PostgreSQL, with the derived columns that SQLite lacks."""
    cells = {name: ("%s", _value(name, value)) for name, value in zip(table.names, row, strict=True)}
    if table.name == "messages":
        parts = tables.MESSAGES.decode(row).parts
        cells["file_ids"] = ("%s", sorted({part.file_id for part in parts if isinstance(part, FilePart)}))
    if table.name in ("docs", "facts"):
        cells["words"] = ("array_to_tsvector(%s::text[])", search.words(row[table.names.index("text")]))
    return cells


def _value(column: str, value: Any) -> Any:
    if column in _BOOLEANS:
        return None if value is None else bool(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return "" if column == "message_id" and value is None else value


def _digest(table: Table, found: Iterable[Sequence[Any]]) -> tuple[int, int]:
    """The number of rows and the sum of their checksums, which does not depend on their order."""
    count = total = 0
    for row in found:
        plain = [_value(name, value) for name, value in zip(table.names, row, strict=True)]
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
