"""The facts of the built-in memory: people list, change and delete them; the provider stores and looks them up. Which
of two statements about one subject wins is decided in `engine.transactions.memory`, what is a fact in
`memory.rule_extractor` and `memory.model_extractor`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from holdfast.core.errors import InvalidInputError, NotFoundError
from holdfast.core.ids import LOCAL, FactId, OwnerId, SessionId
from holdfast.core.memory_scope import belongs_to
from holdfast.engine.transactions import memory
from holdfast.ports.clock import Ids
from holdfast.ports.memory import MemoryBatch, NewFact
from holdfast.ports.store import Fact, Store, Tx

MAX_TEXT = 4000


@dataclass(frozen=True, slots=True, eq=False)
class MemoryFacts:
    _store: Store
    _ids: Ids

    # ---- for people ----

    async def list(
        self, owner: OwnerId = LOCAL, text: str = "", limit: int = 50, before: int | None = None
    ) -> Sequence[Fact]:
        """Last changed first; with `text`, those that contain all its words, the last one as a prefix."""
        return await self._store.read(lambda tx: tx.facts(owner, limit, text=text.strip(), prefix=True, before=before))

    async def add(self, text: str, owner: OwnerId = LOCAL) -> Fact:
        """Remember what a person wrote down. It belongs to no session. Adding it again changes nothing."""
        stripped, fid = _checked(text), FactId(self._ids.new("fct"))
        return await self._store.transact(lambda tx: memory.note(tx, owner, fid, stripped))

    async def change(
        self,
        fid: FactId,
        *,
        text: str | None = None,
        pinned: bool | None = None,
        confirmed: bool | None = None,
        owner: OwnerId = LOCAL,
    ) -> Fact:
        stripped = None if text is None else _checked(text)
        return await self._store.transact(
            lambda tx: memory.amend(tx, _get_fact(tx, fid, owner), stripped, pinned, confirmed)
        )

    async def delete(self, fid: FactId, owner: OwnerId = LOCAL) -> None:
        await self._store.transact(lambda tx: tx.drop_fact(_get_fact(tx, fid, owner).id))

    # ---- ports.memory.FactStore ----

    async def after(self, owner: OwnerId, n: int, limit: int) -> Sequence[Fact]:
        return await self._store.read(lambda tx: tx.facts_after(owner, n, limit))

    async def with_words(self, owner: OwnerId, words: Sequence[str], limit: int) -> Sequence[Sequence[Fact]]:
        return await self._store.read(lambda tx: [tx.facts(owner, limit, text=word) for word in words])

    async def by_id(self, ids: Sequence[FactId]) -> Sequence[Fact]:
        return await self._store.read(lambda tx: [fact for fid in ids if (fact := tx.fact(fid)) is not None])

    async def apply(self, batch: MemoryBatch, facts: Sequence[NewFact]) -> bool:
        ids = [FactId(self._ids.new("fct")) for _ in facts]
        return await self._store.transact(partial(memory.apply, batch=batch, facts=facts, ids=ids))

    async def forget(self, sid: SessionId) -> None:
        await self._store.transact(lambda tx: tx.drop_session_facts(sid))


def _checked(text: str) -> str:
    if not 0 < len(text.strip()) <= MAX_TEXT:
        raise InvalidInputError("text", f"must have 1 to {MAX_TEXT} characters; to remove a fact, delete it")
    return text.strip()


def _get_fact(tx: Tx, fid: FactId, owner: OwnerId) -> Fact:
    fact = tx.fact(fid)
    if fact is None or not belongs_to(fact.owner, owner):
        raise NotFoundError("fact", fid)
    return fact
