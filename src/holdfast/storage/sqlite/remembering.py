"""The half of a transaction that memory uses: ledgers, dirty turns, facts. Statements over plain values, as in `tx`."""

from collections.abc import Sequence
from typing import Final

from holdfast.core.ids import FactId, OwnerId, SessionId
from holdfast.core.ledger import DirtyTurn, Ledger
from holdfast.ports import Fact
from holdfast.storage import rows
from holdfast.storage.sqlite import search
from holdfast.storage.sqlite.statements import Statements

_PUT_LEDGER: Final = rows.upsert("ledgers", rows.LEDGER, "session_id")
_PUT_TURN: Final = rows.upsert("dirty_turns", rows.DIRTY_TURN, "session_id, n")
_PUT_FACT: Final = (
    f"INSERT INTO facts (n, {rows.FACT}, words) VALUES (NULL, {', '.join('?' * len(rows.names(rows.FACT)))}, ?)"
)
_FACTS: Final = f"SELECT n, {rows.FACT} FROM facts"


class Remembering(Statements):
    def ledger(self, sid: SessionId) -> Ledger | None:
        row = self._one(f"SELECT {rows.LEDGER} FROM ledgers WHERE session_id = ?", sid)
        return None if row is None else rows.to_ledger(row)

    def put_ledger(self, ledger: Ledger) -> None:
        self._do(_PUT_LEDGER, *rows.from_ledger(ledger))

    def drop_ledger(self, sid: SessionId) -> None:
        self._do("DELETE FROM dirty_turns WHERE session_id = ?", sid)
        self._do("DELETE FROM ledgers WHERE session_id = ?", sid)

    def due_ledgers(self, by: float, limit: int) -> Sequence[Ledger]:
        sql = f"SELECT {rows.LEDGER} FROM ledgers WHERE due_at <= ? ORDER BY due_at, session_id LIMIT ?"
        return [rows.to_ledger(row) for row in self._all(sql, by, limit)]

    def dirty_turns(self, sid: SessionId, limit: int) -> Sequence[DirtyTurn]:
        sql = f"SELECT {rows.DIRTY_TURN} FROM dirty_turns WHERE session_id = ? ORDER BY n LIMIT ?"
        return [rows.to_dirty_turn(row) for row in self._all(sql, sid, limit)]

    def put_dirty_turn(self, turn: DirtyTurn) -> None:
        self._do(_PUT_TURN, *rows.from_dirty_turn(turn))

    def drop_dirty_turns(self, sid: SessionId, last: int) -> None:
        self._do("DELETE FROM dirty_turns WHERE session_id = ? AND n <= ?", sid, last)

    # ---- facts: a write takes the row to the end, so that rowids are the order in which facts were last written ----

    def fact(self, fid: FactId) -> Fact | None:
        row = self._one(f"{_FACTS} WHERE id = ?", fid)
        return None if row is None else rows.to_fact(row)

    def fact_with_key(self, owner: OwnerId, key: str) -> Fact | None:
        row = self._one(f"{_FACTS} WHERE owner = ? AND key = ?", owner, key)
        return None if row is None else rows.to_fact(row)

    def put_fact(self, fact: Fact) -> None:
        self._do("DELETE FROM facts WHERE id = ?", fact.id)
        self._do(_PUT_FACT, *rows.from_fact(fact), search.encodable(search.document(fact.text)))

    def drop_fact(self, fid: FactId) -> None:
        self._do("DELETE FROM facts WHERE id = ?", fid)

    def drop_session_facts(self, sid: SessionId) -> None:
        self._do("DELETE FROM facts WHERE session_id = ?", sid)

    def facts(
        self, owner: OwnerId, limit: int, *, text: str = "", prefix: bool = False, before: int | None = None
    ) -> Sequence[Fact]:
        last = 2**62 if before is None else before
        if not text:
            found = self._all(f"{_FACTS} WHERE owner = ? AND n < ? ORDER BY n DESC LIMIT ?", owner, last, limit)
            return [rows.to_fact(row) for row in found]
        queries = search.query(search.encodable(text))
        if queries is None:
            return []
        columns = ", ".join(f"facts.{name}" for name in ("n", *rows.names(rows.FACT)))
        sql = (
            f"SELECT {columns} FROM fact_words CROSS JOIN facts ON facts.n = fact_words.rowid "
            "WHERE fact_words MATCH ? AND fact_words.rowid < ? AND facts.owner = ? "
            "ORDER BY fact_words.rowid DESC LIMIT ?"
        )
        return [rows.to_fact(row) for row in self._all(sql, queries[prefix], last, owner, limit)]

    def facts_after(self, owner: OwnerId, n: int, limit: int) -> Sequence[Fact]:
        found = self._all(f"{_FACTS} WHERE owner = ? AND n > ? ORDER BY n LIMIT ?", owner, n, limit)
        return [rows.to_fact(row) for row in found]
