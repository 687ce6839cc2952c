"""SQL for memory: ledgers, dirty turns and facts."""

from collections.abc import Sequence

from holdfast.core.ids import FactId, OwnerId, SessionId
from holdfast.core.memory_ledger import DirtyTurn, Ledger
from holdfast.ports.store import Fact
from holdfast.storage.sql import tables
from holdfast.storage.sql.statements import LARGEST_NUMBER, Statements


class SqlMemoryRows(Statements):
    def ledger(self, sid: SessionId) -> Ledger | None:
        found = self._db.fetchall(f"{tables.LEDGERS.select} WHERE session_id = ?", sid)
        return tables.to_ledger(found[0]) if found else None

    def put_ledger(self, ledger: Ledger) -> None:
        self._db.execute(tables.LEDGERS.upsert, *tables.from_ledger(ledger))

    def due_ledgers(self, by: float, limit: int) -> Sequence[Ledger]:
        sql = f"{tables.LEDGERS.select} WHERE due_at <= ? ORDER BY due_at, session_id LIMIT ?"
        return list(map(tables.to_ledger, self._db.fetchall(sql, by, limit)))

    def dirty_turns(self, sid: SessionId, limit: int) -> Sequence[DirtyTurn]:
        return self._select(tables.DIRTY_TURNS, "WHERE session_id = ? ORDER BY n LIMIT ?", sid, limit)

    def put_dirty_turn(self, turn: DirtyTurn) -> None:
        self._db.execute(tables.DIRTY_TURNS.upsert, *tables.DIRTY_TURNS.encode(turn))

    def drop_dirty_turns(self, sid: SessionId, last: int) -> None:
        self._db.execute("DELETE FROM dirty_turns WHERE session_id = ? AND n <= ?", sid, last)

    # ---- facts: a write deletes the row and inserts it under a new number, so that n is the order of writes ----

    def fact(self, fid: FactId) -> Fact | None:
        return self._select_one(tables.FACTS, "WHERE id = ?", fid)

    def fact_with_key(self, owner: OwnerId, key: str) -> Fact | None:
        return self._select_one(tables.FACTS, "WHERE owner = ? AND key = ?", owner, key)

    def put_fact(self, fact: Fact) -> None:
        db = self._db
        self._db.execute("DELETE FROM facts WHERE id = ?", fact.id)
        *values, _ = tables.FACTS.encode(fact)  # n, the last column, has its own expression
        placeholders = tables.FACTS.placeholders.removesuffix("?")
        sql = f"""
            INSERT INTO facts ({tables.FACTS.columns}, words)
            VALUES ({placeholders} {db.next_number}, {db.indexed_words})
        """
        self._db.execute(sql, *values, *db.number_parameters(), db.word_parameter(fact.text))

    def drop_fact(self, fid: FactId) -> None:
        self._db.execute("DELETE FROM facts WHERE id = ?", fid)

    def drop_session_facts(self, sid: SessionId) -> None:
        self._db.execute("DELETE FROM facts WHERE session_id = ?", sid)

    def facts(
        self, owner: OwnerId, limit: int, *, text: str = "", prefix: bool = False, before: int | None = None
    ) -> Sequence[Fact]:
        last = LARGEST_NUMBER if before is None else before
        if not text:
            return self._select(tables.FACTS, "WHERE owner = ? AND n < ? ORDER BY n DESC LIMIT ?", owner, last, limit)
        queries = self._db.parse_query(text)
        if queries is None:
            return []
        found = self._db.fetchall(self._db.matching_facts, queries[prefix].expression, last, owner, limit)
        return list(map(tables.FACTS.decode, found))

    def facts_after(self, owner: OwnerId, n: int, limit: int) -> Sequence[Fact]:
        rest = f"WHERE owner = ? AND n > ? AND {self._db.number_is_visible} ORDER BY n LIMIT ?"
        return self._select(tables.FACTS, rest, owner, n, limit)
