"""The facts of the built-in memory: seen, changed and erased by people (the calls), kept and looked up by the provider
(`ports.FactShelf`)."""

from collections.abc import Sequence
from functools import partial

from holdfast.core.errors import Invalid, NotFound
from holdfast.core.ids import LOCAL, FactId, OwnerId, SessionId
from holdfast.engine.book import remembering
from holdfast.ports import Batch, Fact, Ids, NewFact, Store, Tx

MAX_TEXT = 4000


class Facts:
    def __init__(self, store: Store, ids: Ids) -> None:
        self._store = store
        self._ids = ids

    # ---- for people ----

    async def list(
        self, owner: OwnerId = LOCAL, text: str = "", limit: int = 50, before: int | None = None
    ) -> Sequence[Fact]:
        """The last changed first; with `text`, those that have all its words, the last perhaps only begun."""
        return await self._store.read(lambda tx: tx.facts(owner, limit, text=text.strip(), prefix=True, before=before))

    async def change(
        self, fid: FactId, *, text: str | None = None, pinned: bool | None = None, owner: OwnerId = LOCAL
    ) -> Fact:
        if text is not None and not 0 < len(text.strip()) <= MAX_TEXT:
            raise Invalid("text", f"must have 1 to {MAX_TEXT} characters; to take a fact away, delete it")
        words = None if text is None else text.strip()
        return await self._store.transact(lambda tx: remembering.amend(tx, _the_fact(tx, fid, owner), words, pinned))

    async def delete(self, fid: FactId, owner: OwnerId = LOCAL) -> None:
        await self._store.transact(lambda tx: tx.drop_fact(_the_fact(tx, fid, owner).id))

    # ---- ports.FactShelf ----

    async def after(self, owner: OwnerId, n: int, limit: int) -> Sequence[Fact]:
        return await self._store.read(lambda tx: tx.facts_after(owner, n, limit))

    async def with_words(self, owner: OwnerId, words: Sequence[str], limit: int) -> Sequence[Sequence[Fact]]:
        return await self._store.read(lambda tx: [tx.facts(owner, limit, text=word) for word in words])

    async def by_id(self, ids: Sequence[FactId]) -> Sequence[Fact]:
        return await self._store.read(lambda tx: [fact for fid in ids if (fact := tx.fact(fid)) is not None])

    async def apply(self, batch: Batch, facts: Sequence[NewFact]) -> bool:
        ids = [FactId(self._ids.new("fct")) for _ in facts]
        return await self._store.transact(partial(remembering.apply, batch=batch, facts=facts, ids=ids))

    async def forget(self, sid: SessionId) -> None:
        await self._store.transact(lambda tx: tx.drop_session_facts(sid))


def _the_fact(tx: Tx, fid: FactId, owner: OwnerId) -> Fact:
    fact = tx.fact(fid)
    if fact is None or fact.owner != owner:
        raise NotFound("fact", fid)
    return fact
