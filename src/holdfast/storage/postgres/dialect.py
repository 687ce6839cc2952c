"""The SQL that only PostgreSQL has, and its way to send statements.

A transaction is one pipeline. Writes are collected and sent with the next read, or with the commit, so only these cost
a round trip. An error of a write is raised there, which is early enough.

Every read ends with a Sync message. Only then does the server wait for the client under its idle timeout for
transactions. In a pipeline that is not synced it waits without any timeout (and also after psycopg leaves a pipeline
within a transaction, which sends Sync and then Flush): a node that stands still or is cut off would keep its locks.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, Final

import psycopg

from holdfast.core.errors import StorageError
from holdfast.core.ids import FileId, MessageId, OwnerId, SessionId
from holdfast.storage.postgres import change_numbers, search
from holdfast.storage.postgres.connection import TimedConnection
from holdfast.storage.sql.dialect import TextMatch, TextQuery
from holdfast.storage.sql.tables import FACTS, MESSAGES, Row, Table
from holdfast.storage.sql.text_words import EXCERPT_READ

_MESSAGES: Final = Table("messages", f"{MESSAGES.columns}, file_ids")

_BEGIN_WRITE: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ"
_BEGIN_READ: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_INDEX: Final = """
    INSERT INTO docs (owner, session_id, message_id, text, words) VALUES (?, ?, ?, ?, array_to_tsvector(?::text[]))
    ON CONFLICT (session_id, message_id) DO UPDATE SET text = excluded.text, words = excluded.words
    WHERE docs.text <> excluded.text
"""
_ENTER: Final = """
    INSERT INTO turnstiles (session_id, n) VALUES (?, 1)
    ON CONFLICT (session_id) DO UPDATE SET n = turnstiles.n + 1
"""


_SETTINGS: Final = r"""
    CASE WHEN strpos(settings, '\u') = 0 THEN settings
    ELSE regexp_replace(settings, '\\u(0000|d[89a-f]..)', '\\u0020', 'gi') END
"""
"""Without characters that PostgreSQL's texts cannot have, of which it would refuse all of the JSON."""


class PostgresDialect:
    """One transaction, among those of other nodes."""

    false = "false"
    parts_bytes = "octet_length(parts)"
    in_list = "= ANY(?)"
    list_rows = "SELECT unnest(?::text[])"
    file_is_named = "SELECT 1 FROM messages WHERE file_ids <> '{}' AND file_ids @> ARRAY[files.id::text]"
    next_number = f"{change_numbers.OWN} + ?"
    number_is_visible = change_numbers.VISIBLE
    indexed_words = "array_to_tsvector(?::text[])"
    change_bounds = change_numbers.BOUNDS
    changes_held_back = change_numbers.HELD_BACK
    trim_changes = change_numbers.TRIM
    has_match_since = "SELECT 1 FROM docs WHERE session_id = ? AND n >= ? AND words @@ ?::tsquery LIMIT 1"
    matching_facts = f"{FACTS.select} WHERE words @@ ?::tsquery AND n < ? AND owner = ? ORDER BY n DESC LIMIT ?"
    lock_named = "ORDER BY id FOR UPDATE"
    # With OFFSET, the planner does not call the function once for each number.
    used_runs = "runs CROSS JOIN LATERAL (SELECT usage_numbers(usage) AS numbers OFFSET 0) AS used_numbers"

    def setting(self, path: tuple[str, ...]) -> str:
        is_there = f"strpos(settings, '\"{path[0]}\":') > 0"
        return f"CASE WHEN {is_there} THEN valid_json({_SETTINGS}) #>> '{{{','.join(path)}}}' END"

    def usage_number(self, n: int) -> str:
        return f"numbers[{n + 1}]"

    def whole(self, number: str) -> str:
        return f"CAST(floor({number}) AS bigint)"

    def __init__(self, db: TimedConnection, pipeline: psycopg.Pipeline, *, writes: bool) -> None:
        """The transaction begins with the first statement."""
        self._pipeline = pipeline
        self.writes = writes
        self._begin: bytes | None = _BEGIN_WRITE if writes else _BEGIN_READ
        # Nodes that are woken together claim different runs instead of undoing one another's work.
        self.skip_locked = "FOR UPDATE OF mine SKIP LOCKED" if writes else ""
        self._db = db
        self._unsent: list[tuple[str, Sequence[Any]]] = []
        self._now: float | None = None
        self._numbers = 0
        self._entered: set[SessionId] = set()

    @property
    def now(self) -> float:
        if self._now is None:
            sql = "SELECT extract(epoch FROM transaction_timestamp())::double precision"
            ((self._now,),) = self.fetchall(sql)
        return self._now

    def execute(self, sql: str, *values: Any) -> None:
        self._unsent.append((sql, values))

    def fetchall(self, sql: str, *values: Any) -> list[Any]:
        self._send()
        cursor = self._db.execute(_with_psycopg_placeholders(sql), values)
        self._pipeline.sync()
        return cursor.fetchall()

    def commit(self) -> None:
        """The result is known when the pipeline is left."""
        self._send()
        self._db.execute("COMMIT", prepare=False)

    def _send(self) -> None:
        begin, self._begin = self._begin, None
        if begin is not None:
            self._db.execute(begin, prepare=False)
        unsent, self._unsent = self._unsent, []
        for sql, values in unsent:
            self._db.execute(_with_psycopg_placeholders(sql), values)

    def list_parameter(self, values: Collection[str]) -> list[str]:
        return list(values)

    # ---- rows ----

    def save(self, table: Table, row: Row, old: Row | None) -> None:
        self.execute(table.upsert, *row)

    def save_message(self, row: Row, old: Row | None, file_ids: Collection[FileId], *, was_empty: bool) -> None:
        named = sorted(file_ids)
        self.execute(_MESSAGES.upsert, *row, named)
        if named:  # written, so that a transaction that deletes them as orphans at the same time is retried
            self.execute("UPDATE files SET created_at = created_at WHERE id = ANY(?)", named)

    def enter_session(self, sid: SessionId) -> None:
        """See store.py: this row is the one that two transactions in the same session both write."""
        if sid not in self._entered:
            self._entered.add(sid)
            self.execute(_ENTER, sid)

    # ---- numbers of changes and facts ----

    def number_parameters(self) -> Sequence[int]:
        """The next number within this transaction (see change_numbers.py)."""
        if self._numbers >= change_numbers.PER_TRANSACTION:
            limit = change_numbers.PER_TRANSACTION
            raise StorageError(f"A transaction has more than {limit} changes. Split it into smaller ones.")
        self._numbers += 1
        return (self._numbers - 1,)

    def word_parameter(self, text: str) -> list[str]:
        return search.words(text)

    # ---- full-text search ----

    def index_text(
        self, owner: OwnerId, sid: SessionId, mid: MessageId | None, text: str, *, is_new: bool = False
    ) -> None:
        words = search.words(text) if text else []
        if words:
            self.execute(_INDEX, owner, sid, mid or "", text, words)
        elif not is_new:
            self.execute("DELETE FROM docs WHERE session_id = ? AND message_id = ?", sid, mid or "")

    def parse_query(self, text: str) -> tuple[TextQuery, TextQuery] | None:
        return search.parse(text)

    def matches(self, owner: OwnerId, query: TextQuery, limit: int, before: int) -> Iterator[TextMatch]:
        """In portions: with a LIMIT, PostgreSQL walks a common word's documents backwards and stops."""
        exact, portion = search.unspaced(query.text), limit * 4 + 20
        while True:
            wanted = (bool(exact), 2 * EXCERPT_READ)
            found = self.fetchall(search.MATCHES, *wanted, owner, query.expression, before, portion)
            for n, sid, mid, text in found:
                before = n
                if all(each in text for each in exact):
                    yield TextMatch(n, sid, mid or None, partial(search.excerpt, text, query))
            if len(found) < portion:
                return


@lru_cache(maxsize=512)
def _with_psycopg_placeholders(sql: str) -> bytes:
    """Statements consist of constants of this package alone, with no other `?` or `%`; values are parameters."""
    return sql.replace("?", "%s").encode()
