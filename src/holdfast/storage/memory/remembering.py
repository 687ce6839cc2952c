"""The half of a transaction that memory uses: ledgers, dirty turns, facts."""

import re
from collections.abc import Sequence
from heapq import nlargest, nsmallest
from typing import Final

from holdfast.core.errors import StorageError
from holdfast.core.ids import FactId, OwnerId, SessionId
from holdfast.core.ledger import DirtyTurn, Ledger
from holdfast.core.values import replace
from holdfast.ports import Fact
from holdfast.storage.memory.data import Data, UndoLog

_WORD: Final = re.compile(r"\w+")


class Remembering:
    _data: Data
    _log: UndoLog

    def ledger(self, sid: SessionId) -> Ledger | None:
        return self._data.ledgers.get(sid)

    def put_ledger(self, ledger: Ledger) -> None:
        self._log.set(self._data.ledgers, ledger.session_id, ledger)

    def drop_ledger(self, sid: SessionId) -> None:
        for n in list(self._data.dirty_turns.get(sid, ())):
            self._log.remove(self._data.dirty_turns[sid], n)
        self._log.remove(self._data.ledgers, sid)

    def due_ledgers(self, by: float, limit: int) -> Sequence[Ledger]:
        due = [(each.due_at, sid) for sid, each in self._data.ledgers.items() if each.due_at is not None]
        return [self._data.ledgers[sid] for at, sid in nsmallest(limit, due) if at <= by]

    def dirty_turns(self, sid: SessionId, limit: int) -> Sequence[DirtyTurn]:
        turns = self._data.dirty_turns.get(sid, {})
        return [turns[n] for n in nsmallest(limit, turns)]

    def put_dirty_turn(self, turn: DirtyTurn) -> None:
        if turn.session_id not in self._data.dirty_turns:
            self._log.set(self._data.dirty_turns, turn.session_id, {})
        self._log.set(self._data.dirty_turns[turn.session_id], turn.n, turn)

    def drop_dirty_turns(self, sid: SessionId, last: int) -> None:
        turns = self._data.dirty_turns.get(sid, {})
        for n in [n for n in turns if n <= last]:
            self._log.remove(turns, n)

    # facts

    def fact(self, fid: FactId) -> Fact | None:
        return self._data.facts.get(fid)

    def fact_with_key(self, owner: OwnerId, key: str) -> Fact | None:
        fid = self._data.fact_keys.get((owner, key))
        return None if fid is None else self._data.facts[fid]

    def put_fact(self, fact: Fact) -> None:
        data, key = self._data, (fact.owner, fact.key)
        if data.fact_keys.get(key, fact.id) != fact.id:
            raise StorageError(f"Fact {fact.id}: its key is that of fact {data.fact_keys[key]}.")
        self.drop_fact(fact.id)
        n = data.counters["fact"] + 1
        self._log.set(data.counters, "fact", n)
        self._log.set(data.facts, fact.id, replace(fact, n=n))
        self._log.set(data.fact_keys, key, fact.id)

    def drop_fact(self, fid: FactId) -> None:
        fact = self._data.facts.get(fid)
        if fact is not None:
            self._log.remove(self._data.fact_keys, (fact.owner, fact.key))
            self._log.remove(self._data.facts, fid)

    def drop_session_facts(self, sid: SessionId) -> None:
        for fid in [fact.id for fact in self._data.facts.values() if fact.session_id == sid]:
            self.drop_fact(fid)

    def facts(
        self, owner: OwnerId, limit: int, *, text: str = "", prefix: bool = False, before: int | None = None
    ) -> Sequence[Fact]:
        words = _WORD.findall(text.casefold())
        if text and not words:
            return []
        found = (
            fact
            for fact in self._data.facts.values()
            if fact.owner == owner and (before is None or fact.n < before) and _has(fact.text, words, prefix)
        )
        return nlargest(limit, found, key=lambda fact: fact.n)

    def facts_after(self, owner: OwnerId, n: int, limit: int) -> Sequence[Fact]:
        found = (fact for fact in self._data.facts.values() if fact.owner == owner and fact.n > n)
        return nsmallest(limit, found, key=lambda fact: fact.n)


def _has(text: str, words: Sequence[str], prefix: bool) -> bool:
    if not words:
        return True
    there = set(_WORD.findall(text.casefold()))
    *whole, last = words
    if not all(word in there for word in whole):
        return False
    return last in there or (prefix and any(word.startswith(last) for word in there))
