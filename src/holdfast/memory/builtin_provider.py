"""The built-in memory provider, `notes`: facts in the store, found by their words and by their vectors. The vectors are
cached and refreshed with each recall, by the numbers that the store gives to writes, so several nodes can share a
store. How long a run waits for it, and how much of it is shown: `engine.session_memory`. Facts are found by a model, or
by rules if there is none or its answer cannot be read; a later statement about a subject replaces the earlier one
(`engine.transactions.memory`)."""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import anyio
from anyio import to_thread

from holdfast.core.ids import FactId, OwnerId, SessionId
from holdfast.core.parts import Json
from holdfast.memory import fact_drafts, holographic_vectors, model_extractor, rule_extractor
from holdfast.memory.keywords import keywords
from holdfast.ports.memory import FactStore, MemoryBatch
from holdfast.ports.store import Fact

Ask = Callable[[str, str, int], Awaitable[str]]
"""Asks a model: the system prompt, the text, and the token limit of the answer."""
FindModel = Callable[[str | None], Awaitable[Ask | None]]
"""Finds a model for extraction, given the session's model; None if no suitable one is available."""

_PAGE: Final = 5000
_QUERY_WORDS: Final = 8
_FACTS_PER_WORD: Final = 40
_NEAREST: Final = 48
_MIN_AGREEMENT: Final = 0.56
"""Lower agreement of two vectors may be chance: among 100,000 unrelated texts, the best reaches 0.55."""
_MIN_SCORE: Final = 0.3
_MAX_FACTS: Final = 12
_ALWAYS_RECALLED: Final = frozenset({"name"})
"""Keys of facts that are recalled whatever the query is, as are pinned facts and standing wishes."""
_WISH_PREFIXES: Final = ("Wishes:", "The person wishes:")
"""The second is that of facts stored by an earlier version."""


@dataclass(slots=True)
class _FactCache:
    """The vectors of one owner's facts, up to write number `seen`."""

    seen: int = 0
    rows: dict[FactId, int] = field(default_factory=dict)
    ids: list[FactId] = field(default_factory=list)
    always: dict[FactId, None] = field(default_factory=dict)
    matrix: holographic_vectors.Matrix = field(default_factory=holographic_vectors.Matrix)
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    def add(self, facts: Sequence[Fact]) -> None:
        vectors: dict[int, bytes] = {}
        for fact in facts:
            row = self.rows.setdefault(fact.id, len(self.ids))
            if row == len(self.ids):
                self.ids.append(fact.id)
            is_current = len(fact.vector) == holographic_vectors.BYTES
            vectors[row] = fact.vector if is_current else holographic_vectors.encode(fact.text, fact.key)
            if fact.pinned or fact.key in _ALWAYS_RECALLED or fact.text.startswith(_WISH_PREFIXES):
                self.always[fact.id] = None
            else:
                self.always.pop(fact.id, None)
        self.matrix.put(list(vectors), list(vectors.values()))
        self.seen = max(self.seen, *(fact.n for fact in facts))

    def drop(self, fid: FactId) -> None:
        self.always.pop(fid, None)
        row = self.rows.pop(fid, None)
        if row is not None:
            self.matrix.clear(row)


class NotesProvider:
    def __init__(self, store: FactStore, find_model: FindModel, *, confirm: bool = False) -> None:
        """`confirm`: facts are recalled only after a person has confirmed them."""
        self._store = store
        self._find_model = find_model
        self._confirm = confirm
        self._caches: dict[OwnerId, _FactCache] = {}

    # ---- recall ----

    async def recall(self, owner: OwnerId, sid: SessionId, query: str) -> Sequence[Mapping[str, Json]]:
        return [_recalled(fact) for fact in await self.find(owner, query) if fact.confirmed or not self._confirm]

    async def find(self, owner: OwnerId, query: str) -> Sequence[Fact]:
        """Facts that are always recalled, then those that match the query, best first."""
        cache = await self.refresh(owner)
        if not cache.rows:
            return []
        scores: dict[FactId, float] = {}
        words = sorted(keywords(query), key=len, reverse=True)[:_QUERY_WORDS]
        if words:
            for found, weight in await self._match_words(owner, cache, words):
                scores[found] = scores.get(found, 0.0) + weight
            vector = holographic_vectors.encode(query)
            near = await to_thread.run_sync(partial(cache.matrix.nearest, vector, _NEAREST))
            for row, agreement in near:
                if agreement >= _MIN_AGREEMENT:
                    fid = cache.ids[row]
                    scores[fid] = scores.get(fid, 0.0) + (agreement - 0.5) * 5.0
        best = sorted((fid for fid, score in scores.items() if score >= _MIN_SCORE), key=lambda fid: -scores[fid])
        chosen = list(dict.fromkeys([*list(cache.always)[-_MAX_FACTS:], *best]))[: 2 * _MAX_FACTS]
        facts = {fact.id: fact for fact in await self._store.by_id(chosen)}
        for fid in chosen:
            if fid not in facts:
                cache.drop(fid)  # it was erased
        return [facts[fid] for fid in chosen if fid in facts][:_MAX_FACTS]

    async def _match_words(self, owner: OwnerId, cache: _FactCache, words: Sequence[str]) -> list[tuple[FactId, float]]:
        """The newest facts with each word, weighted by how rare the word is; the weights of all words add up to 1."""
        hits = await self._store.with_words(owner, words, _FACTS_PER_WORD)
        weights = [_rarity(facts, cache) for facts in hits]
        whole = sum(weights) or 1.0
        return [(fact.id, weight / whole) for facts, weight in zip(hits, weights, strict=True) for fact in facts]

    async def refresh(self, owner: OwnerId) -> _FactCache:
        """Reads the facts that were written since the last time."""
        cache = self._caches.setdefault(owner, _FactCache())
        async with cache.lock:
            while True:
                page = await self._store.after(owner, cache.seen, _PAGE)
                if page:
                    await to_thread.run_sync(cache.add, page)
                if len(page) < _PAGE:
                    return cache

    # ---- commit ----

    async def commit(self, batch: MemoryBatch) -> None:
        """M11: one write stores the facts and that the batch is applied."""
        if batch.turns:
            found = await self._extract(batch)
            await self._store.apply(batch, await to_thread.run_sync(fact_drafts.to_facts, found))

    async def _extract(self, batch: MemoryBatch) -> list[fact_drafts.FactDraft]:
        """Extract with a model; with rules if there is none, or if its answer is not in the requested form."""
        ask = await self._find_model(batch.model)
        if ask is not None:
            text = " ".join(part.text for turn in batch.turns for part in turn.user if hasattr(part, "text"))
            known = await self.find(batch.owner, text[:2000])
            answer = await ask(
                model_extractor.SYSTEM, model_extractor.build_prompt(batch.turns, known), model_extractor.MAX_TOKENS
            )
            found = model_extractor.parse_answer(answer, batch.turns)
            if found is not None:
                return found
        return await to_thread.run_sync(rule_extractor.extract, batch.turns)

    async def forget(self, owner: OwnerId, sid: SessionId) -> None:
        await self._store.forget(sid)

    async def release(self, sid: SessionId) -> None:
        """There is no state per session."""

    async def health(self) -> str | None:
        return None

    async def close(self) -> None:
        self._caches.clear()


def _recalled(fact: Fact) -> dict[str, Json]:
    source = {"source": fact.session_id, "message_id": fact.message_id} if fact.session_id else {}
    return {"text": fact.text, **source, "fact_id": fact.id}


def _rarity(facts: Sequence[Fact], cache: _FactCache) -> float:
    """How distinctive a word is, from the number of facts that have it. If more have it than were read, the number is
    estimated from how close together the newest were written."""
    if not facts:
        return 1.0
    total = max(len(cache.rows), len(facts))
    count = float(len(facts))
    if len(facts) == _FACTS_PER_WORD:
        count = max(count, total * _FACTS_PER_WORD / max(1, cache.seen - facts[-1].n + 1))
    return 0.1 + math.log(1.0 + total / count)
