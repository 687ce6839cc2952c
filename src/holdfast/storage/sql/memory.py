"""SQL for memory: ledgers, dirty turns and facts."""

from collections.abc import Sequence
from typing import Any, Final

from holdfast.core.ids import FactId, OwnerId, SessionId
from holdfast.core.memory_ledger import DirtyTurn, Ledger
from holdfast.ports.store import Fact
from holdfast.storage.sql import row_codec as rows
from holdfast.storage.sql.statements import LARGEST_NUMBER, Statements

_SELECT_FACTS: Final = rows.FACTS.select


class SqlMemoryRows(Statements):
    def ledger(self, sid: SessionId) -> Ledger | None:
        return self._one_as(rows.to_ledger, f"{rows.LEDGERS.select} WHERE session_id = ?", sid)

    def put_ledger(self, ledger: Ledger) -> None:
        self._execute(rows.LEDGERS.upsert, *rows.from_ledger(ledger))

    def due_ledgers(self, by: float, limit: int) -> Sequence[Ledger]:
        sql = f"{rows.LEDGERS.select} WHERE due_at <= ? ORDER BY due_at, session_id LIMIT ?"
        return self._all_as(rows.to_ledger, sql, by, limit)

    def dirty_turns(self, sid: SessionId, limit: int) -> Sequence[DirtyTurn]:
        sql = f"{rows.DIRTY_TURNS.select} WHERE session_id = ? ORDER BY n LIMIT ?"
        return self._all_as(rows.to_dirty_turn, sql, sid, limit)

    def put_dirty_turn(self, turn: DirtyTurn) -> None:
        self._execute(rows.DIRTY_TURNS.upsert, *rows.from_dirty_turn(turn))

    def drop_dirty_turns(self, sid: SessionId, last: int) -> None:
        self._execute("DELETE FROM dirty_turns WHERE session_id = ? AND n <= ?", sid, last)

    # ---- facts: a write deletes the row and inserts it under a new number, so that n is the order of writes ----

    def fact(self, fid: FactId) -> Fact | None:
        return self._one_as(rows.to_fact, rows.FACTS.select_by_id, fid)

    def fact_with_key(self, owner: OwnerId, key: str) -> Fact | None:
        return self._one_as(rows.to_fact, f"{_SELECT_FACTS} WHERE owner = ? AND key = ?", owner, key)

    def put_fact(self, fact: Fact) -> None:
        db = self._db
        self._execute("DELETE FROM facts WHERE id = ?", fact.id)
        placeholders = rows.FACTS.placeholders.removeprefix("?, ")  # n has its own expression
        sql = f"""
            INSERT INTO facts ({rows.FACTS.columns}, words)
            VALUES ({db.next_number}, {placeholders}, {db.indexed_words})
        """
        self._execute(sql, *db.number_parameters(), *rows.from_fact(fact), db.word_parameter(fact.text))

    def drop_fact(self, fid: FactId) -> None:
        self._execute("DELETE FROM facts WHERE id = ?", fid)

    def drop_session_facts(self, sid: SessionId) -> None:
        self._execute("DELETE FROM facts WHERE session_id = ?", sid)

    def facts(
        self, owner: OwnerId, limit: int, *, text: str = "", prefix: bool = False, before: int | None = None
    ) -> Sequence[Fact]:
        last = LARGEST_NUMBER if before is None else before
        if not text:
            return self._facts("owner = ? AND n < ? ORDER BY n DESC LIMIT ?", owner, last, limit)
        queries = self._db.parse_query(text)
        if queries is None:
            return []
        return [rows.to_fact(row) for row in self._db.matching_facts(owner, queries[prefix], last, limit)]

    def facts_after(self, owner: OwnerId, n: int, limit: int) -> Sequence[Fact]:
        where = f"owner = ? AND n > ? AND {self._db.number_is_visible}"
        return self._facts(f"{where} ORDER BY n LIMIT ?", owner, n, limit)

    def _facts(self, where: str, *values: Any) -> list[Fact]:
        return self._all_as(rows.to_fact, f"{_SELECT_FACTS} WHERE {where}", *values)
