"""The SQL that only SQLite has, and its way to save rows."""

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import compress
from operator import ne
from typing import Any, Final

from holdfast.core.ids import FileId, MessageId, OwnerId, SessionId
from holdfast.storage.sql.dialect import TextMatch, TextQuery
from holdfast.storage.sql.tables import FACTS, MESSAGES, Row, Table
from holdfast.storage.sqlite import search
from holdfast.storage.sqlite.search import replace_surrogates

_OWNER: Final = MESSAGES.names.index("owner")


class SqliteDialect:
    """One transaction of the only writer, or of a reader. Lone surrogates, which UTF-8 cannot carry, become question
    marks, as in a journal's frames."""

    false = "0"
    list_rows = "SELECT value FROM json_each(?)"
    parts_bytes = "length(CAST(parts AS BLOB))"
    in_list = f"IN ({list_rows})"
    file_is_named = "SELECT 1 FROM message_files WHERE file_id = files.id"
    next_number = "NULL"  # AUTOINCREMENT: there is one writer, so numbers are committed in their order
    number_is_visible = "true"
    indexed_words = "?"
    change_bounds = """
        SELECT coalesce((SELECT min(n) - 1 FROM changes), last), last
        FROM (SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'changes'), 0) AS last)
    """
    changes_held_back = "SELECT false"
    trim_changes = "DELETE FROM changes WHERE n <= (SELECT max(n) FROM changes) - ?"
    has_match_since = """
        SELECT 1 FROM docs CROSS JOIN words ON words.rowid = docs.n
        WHERE docs.session_id = ? AND docs.n >= ? AND words MATCH ? LIMIT 1
    """
    matching_facts = f"""
        SELECT {", ".join(f"facts.{name}" for name in FACTS.names)}
        FROM fact_words CROSS JOIN facts ON facts.n = fact_words.rowid
        WHERE fact_words MATCH ? AND fact_words.rowid < ? AND facts.owner = ? ORDER BY fact_words.rowid DESC LIMIT ?
    """
    lock_named = skip_locked = ""
    used_runs = "runs"

    def __init__(self, db: sqlite3.Connection, now: float, *, writes: bool) -> None:
        self.now = now
        self._db = db
        self.writes = writes

    def setting(self, path: tuple[str, ...]) -> str:
        is_there = f"instr(settings, '\"{path[0]}\":') AND json_valid(settings)"
        return f"CASE WHEN {is_there} THEN json_extract(settings, '$.{'.'.join(path)}') END"

    def usage_number(self, n: int) -> str:
        number = f"json_extract(usage, '$[{n}]')"
        return f"CASE WHEN json_valid(usage) AND {number} BETWEEN -1e15 AND 1e15 THEN {number} END"

    def whole(self, number: str) -> str:
        return f"CAST({number} AS INTEGER)"

    def execute(self, sql: str, *values: Any) -> None:
        self._run(sql, values)

    def fetchall(self, sql: str, *values: Any) -> list[Any]:
        return self._run(sql, values).fetchall()

    def _run(self, sql: str, values: Sequence[Any]) -> sqlite3.Cursor:
        try:
            return self._db.execute(sql, values)
        except UnicodeEncodeError:
            return self._db.execute(
                sql, [replace_surrogates(value) if isinstance(value, str) else value for value in values]
            )

    def list_parameter(self, values: Collection[str]) -> str:
        return json.dumps(list(values))

    # ---- rows ----

    def save(self, table: Table, row: Row, old: Row | None) -> None:
        """Writes only the changed columns of a known row, so that SQLite skips the indexes on the others."""
        if old is None:
            self.execute(table.upsert, *row)
        elif changed := list(compress(range(len(row)), map(ne, old, row))):
            updated = self._run(table.update(changed), [*[row[n] for n in changed], row[0]])
            if not updated.rowcount:  # another statement has deleted it
                self.execute(table.upsert, *row)

    def save_message(self, row: Row, old: Row | None, file_ids: Collection[FileId], *, was_empty: bool) -> None:
        self.save(MESSAGES, row, old)
        if not was_empty:
            self.execute("DELETE FROM message_files WHERE message_id = ?", row[0])
        for fid in file_ids:
            self.execute("INSERT INTO message_files VALUES (?, ?, ?)", fid, row[0], row[_OWNER])

    def enter_session(self, sid: SessionId) -> None:
        """One transaction writes at a time."""

    # ---- numbers of changes and facts ----

    def number_parameters(self) -> Sequence[int]:
        return ()

    def word_parameter(self, text: str) -> str:
        return replace_surrogates(search.document(text))

    # ---- full-text search ----

    def index_text(
        self, owner: OwnerId, sid: SessionId, mid: MessageId | None, text: str, *, is_new: bool = False
    ) -> None:
        text = self.word_parameter(text)
        find = "SELECT n, text FROM docs WHERE session_id = ? AND message_id IS ?"
        row = None if is_new else self._run(find, (sid, mid)).fetchone()
        if row is None:
            if text:
                insert = "INSERT INTO docs (owner, session_id, message_id, text) VALUES (?, ?, ?, ?)"
                self.execute(insert, owner, sid, mid, text)
        elif not text:
            self.execute("DELETE FROM docs WHERE n = ?", row[0])
        elif row[1] != text:
            self.execute("UPDATE docs SET text = ? WHERE n = ?", text, row[0])

    def parse_query(self, text: str) -> tuple[TextQuery, TextQuery] | None:
        return search.parse(replace_surrogates(text))

    def matches(self, owner: OwnerId, query: TextQuery, limit: int, before: int) -> Iterator[TextMatch]:
        with closing(self._run(search.MATCHES, (query.expression, before, owner))) as found:
            for n, sid, mid in found:
                yield TextMatch(n, sid, mid, partial(search.excerpt, self._db, query, n))
