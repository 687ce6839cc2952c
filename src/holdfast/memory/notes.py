"""The built-in provider: facts in the store, found again by their words and by their vectors.

Facts live in the store alone. What is kept here is a copy of their vectors, which follows the store by the numbers that
it gives to writes: a recall asks for what is new, so nodes may share a store.
"""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Final

import anyio
from anyio import to_thread

from holdfast.core.ids import FactId, OwnerId, SessionId
from holdfast.core.parts import Json
from holdfast.core.values import dataclass
from holdfast.memory import drafts, holograms, reading, rules
from holdfast.memory.words import telling
from holdfast.ports import Batch, Fact, FactShelf

Ask = Callable[[str, str, int], Awaitable[str]]
"""System prompt, text and most tokens of the answer."""
FindModel = Callable[[str | None], Awaitable[Ask | None]]
"""A model to extract with, for the session's own; None: none that is up to it."""

_PAGE: Final = 5000
_WORDS: Final = 8
_PER_WORD: Final = 40
_NEAR: Final = 48
_CHANCE: Final = 0.56
"""Agreement of vectors below which it may be chance: of 100,000 texts that share nothing, the best reaches 0.55."""
_ENOUGH: Final = 0.3
_MOST: Final = 12
_ALWAYS: Final = frozenset({"name"})
"""What a fact is about that is worth knowing whatever is asked."""
_WISHES: Final = "The person wishes:"


@dataclass(slots=True)
class _Copy:
    """Of one owner's vectors, up to write number `seen`."""

    seen: int = 0
    rows: dict[FactId, int] = field(default_factory=dict)
    ids: list[FactId] = field(default_factory=list)
    always: dict[FactId, None] = field(default_factory=dict)
    matrix: holograms.Matrix = field(default_factory=holograms.Matrix)
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    def take(self, facts: Sequence[Fact]) -> None:
        vectors: dict[int, bytes] = {}
        for fact in facts:
            row = self.rows.setdefault(fact.id, len(self.ids))
            if row == len(self.ids):
                self.ids.append(fact.id)
            known = len(fact.vector) == holograms.BYTES
            vectors[row] = fact.vector if known else holograms.encode(fact.text, fact.key)
            if fact.pinned or fact.key in _ALWAYS or fact.text.startswith(_WISHES):
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


class Notes:
    def __init__(self, shelf: FactShelf, find_model: FindModel) -> None:
        self._shelf = shelf
        self._find_model = find_model
        self._copies: dict[OwnerId, _Copy] = {}

    # ---- recall ----

    async def recall(self, owner: OwnerId, sid: SessionId, query: str) -> Sequence[Mapping[str, Json]]:
        return [
            {"text": fact.text, "source": fact.session_id, "message_id": fact.message_id, "fact_id": fact.id}
            for fact in await self.find(owner, query)
        ]

    async def find(self, owner: OwnerId, query: str) -> Sequence[Fact]:
        """What is always worth knowing first, then what has to do with the query, the nearest first."""
        copy = await self._follow(owner)
        if not copy.rows:
            return []
        scores: dict[FactId, float] = {}
        words = sorted(telling(query), key=len, reverse=True)[:_WORDS]
        if words:
            for found, weight in await self._by_words(owner, copy, words):
                scores[found] = scores.get(found, 0.0) + weight
            vector = holograms.encode(query)
            near = await to_thread.run_sync(partial(copy.matrix.nearest, vector, _NEAR))
            for row, agreement in near:
                if agreement >= _CHANCE:
                    fid = copy.ids[row]
                    scores[fid] = scores.get(fid, 0.0) + (agreement - 0.5) * 5.0
        best = sorted((fid for fid, score in scores.items() if score >= _ENOUGH), key=lambda fid: -scores[fid])
        chosen = list(dict.fromkeys([*list(copy.always)[-_MOST:], *best]))[: 2 * _MOST]
        there = {fact.id: fact for fact in await self._shelf.by_id(chosen)}
        for fid in chosen:
            if fid not in there:
                copy.drop(fid)  # erased since
        return [there[fid] for fid in chosen if fid in there][:_MOST]

    async def _by_words(self, owner: OwnerId, copy: _Copy, words: Sequence[str]) -> list[tuple[FactId, float]]:
        """The newest facts of each word, weighed by how rare it is; all words together weigh 1."""
        hits = await self._shelf.with_words(owner, words, _PER_WORD)
        weights = [_rarity(facts, copy) for facts in hits]
        whole = sum(weights) or 1.0
        return [(fact.id, weight / whole) for facts, weight in zip(hits, weights, strict=True) for fact in facts]

    async def _follow(self, owner: OwnerId) -> _Copy:
        copy = self._copies.setdefault(owner, _Copy())
        async with copy.lock:
            while True:
                page = await self._shelf.after(owner, copy.seen, _PAGE)
                if page:
                    await to_thread.run_sync(copy.take, page)
                if len(page) < _PAGE:
                    return copy

    async def warm_up(self, owner: OwnerId) -> None:
        """Read what there is, so that the first recall need not."""
        await self._follow(owner)

    # ---- commit ----

    async def commit(self, batch: Batch) -> None:
        """M11: read, then write once: the store has the facts and the mark, or neither."""
        if batch.turns:
            found = await self._extract(batch)
            await self._shelf.apply(batch, await to_thread.run_sync(drafts.finished, found))

    async def _extract(self, batch: Batch) -> list[drafts.Draft]:
        """By the session's model; by rules where there is none, or where it does not answer as it was asked."""
        ask = await self._find_model(batch.model)
        if ask is not None:
            said = " ".join(part.text for turn in batch.turns for part in turn.user if hasattr(part, "text"))
            known = await self.find(batch.owner, said[:2000])
            answer = await ask(reading.SYSTEM, reading.prompt(batch.turns, known), reading.MAX_TOKENS)
            found = reading.drafts(answer, batch.turns)
            if found is not None:
                return found
        return await to_thread.run_sync(rules.extract, batch.turns)

    # ---- the rest ----

    async def forget(self, owner: OwnerId, sid: SessionId) -> None:
        await self._shelf.forget(sid)

    async def release(self, sid: SessionId) -> None:
        """Nothing is held for a session."""

    async def health(self) -> str | None:
        return None

    async def close(self) -> None:
        self._copies.clear()


def _rarity(facts: Sequence[Fact], copy: _Copy) -> float:
    """How much a word tells. Where there are more facts than were read, their number is judged by how close together
    the newest are."""
    if not facts:
        return 1.0
    total = max(len(copy.rows), len(facts))
    count = float(len(facts))
    if len(facts) == _PER_WORD:
        count = max(count, total * _PER_WORD / max(1, copy.seen - facts[-1].n + 1))
    return 0.1 + math.log(1.0 + total / count)
