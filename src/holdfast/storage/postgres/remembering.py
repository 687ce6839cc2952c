"""The half of a transaction that memory uses: ledgers, dirty turns, facts. Statements over plain values, as in `tx`."""

from collections.abc import Sequence
from typing import Final

from holdfast.core.ids import FactId, OwnerId, SessionId
from holdfast.core.ledger import DirtyTurn, Ledger
from holdfast.ports import Fact
from holdfast.storage import rows
from holdfast.storage.postgres import changes, search
from holdfast.storage.postgres.statements import Statements

_PUT_LEDGER: Final = rows.upsert("ledgers", rows.LEDGER, "session_id", mark="%s")
_PUT_TURN: Final = rows.upsert("dirty_turns", rows.DIRTY_TURN, "session_id, n", mark="%s")
_PUT_FACT: Final = (
    f"INSERT INTO facts (n, {rows.FACT}, words) "
    f"VALUES ({changes.MINE} + %s, {', '.join(['%s'] * len(rows.names(rows.FACT)))}, array_to_tsvector(%s::text[]))"
)
_FACTS: Final = f"SELECT n, {rows.FACT} FROM facts"


class Remembering(Statements):
    def ledger(self, sid: SessionId) -> Ledger | None:
        row = self._one(f"SELECT {rows.LEDGER} FROM ledgers WHERE session_id = %s", sid)
        return None if row is None else rows.to_ledger(row)

    def put_ledger(self, ledger: Ledger) -> None:
        self._do(_PUT_LEDGER, *rows.from_ledger(ledger))

    def drop_ledger(self, sid: SessionId) -> None:
        self._do("DELETE FROM dirty_turns WHERE session_id = %s", sid)
        self._do("DELETE FROM ledgers WHERE session_id = %s", sid)

    def due_ledgers(self, by: float, limit: int) -> Sequence[Ledger]:
        sql = f"SELECT {rows.LEDGER} FROM ledgers WHERE due_at <= %s ORDER BY due_at, session_id LIMIT %s"
        return [rows.to_ledger(row) for row in self._all(sql, by, limit)]

    def dirty_turns(self, sid: SessionId, limit: int) -> Sequence[DirtyTurn]:
        sql = f"SELECT {rows.DIRTY_TURN} FROM dirty_turns WHERE session_id = %s ORDER BY n LIMIT %s"
        return [rows.to_dirty_turn(row) for row in self._all(sql, sid, limit)]

    def put_dirty_turn(self, turn: DirtyTurn) -> None:
        self._do(_PUT_TURN, *rows.from_dirty_turn(turn))

    def drop_dirty_turns(self, sid: SessionId, last: int) -> None:
        self._do("DELETE FROM dirty_turns WHERE session_id = %s AND n <= %s", sid, last)

    # ---- facts: numbered as changes are, and followed as they are ----

    def fact(self, fid: FactId) -> Fact | None:
        row = self._one(f"{_FACTS} WHERE id = %s", fid)
        return None if row is None else rows.to_fact(row)

    def fact_with_key(self, owner: OwnerId, key: str) -> Fact | None:
        row = self._one(f"{_FACTS} WHERE owner = %s AND key = %s", owner, key)
        return None if row is None else rows.to_fact(row)

    def put_fact(self, fact: Fact) -> None:
        self._do("DELETE FROM facts WHERE id = %s", fact.id)
        self._do(_PUT_FACT, self._count(), *rows.from_fact(fact), search.words(fact.text))

    def drop_fact(self, fid: FactId) -> None:
        self._do("DELETE FROM facts WHERE id = %s", fid)

    def drop_session_facts(self, sid: SessionId) -> None:
        self._do("DELETE FROM facts WHERE session_id = %s", sid)

    def facts(
        self, owner: OwnerId, limit: int, *, text: str = "", prefix: bool = False, before: int | None = None
    ) -> Sequence[Fact]:
        last = 2**62 if before is None else before
        queries = search.query(text) if text else None
        if text and queries is None:
            return []
        where, values = "owner = %s AND n < %s", [owner, last]
        if queries is not None:
            where, values = f"{where} AND words @@ %s::tsquery", [*values, queries[prefix]]
        found = self._all(f"{_FACTS} WHERE {where} ORDER BY n DESC LIMIT %s", *values, limit)
        return [rows.to_fact(row) for row in found]

    def facts_after(self, owner: OwnerId, n: int, limit: int) -> Sequence[Fact]:
        sql = f"{_FACTS} WHERE owner = %s AND n > %s AND {changes.SHOWN} ORDER BY n LIMIT %s"
        return [rows.to_fact(row) for row in self._all(sql, owner, n, limit)]
