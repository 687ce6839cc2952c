"""Who remembers: the providers, made from the config.

[memory]                            [memory.openviking]
provider = "notes"                  url = "http://127.0.0.1:1933"
extract = "model"                   api_key_env = "OPENVIKING_API_KEY"
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from holdfast.config import Config
from holdfast.core.errors import HoldfastError
from holdfast.core.ids import LOCAL, FactId, OwnerId, SessionId
from holdfast.core.ledger import OFF
from holdfast.engine.engine import Engine
from holdfast.ports import Batch, Fact, MemoryProvider, NewFact
from holdfast.wiring import tables
from holdfast.wiring.bridge import Bridge

if TYPE_CHECKING:
    from holdfast.memory.notes import Ask, FindModel, Notes

log = logging.getLogger("holdfast.memory")


class Memories:
    """`ports.MemoryProviders`. The built-in one is always there, so that a session can choose it. Each is imported and
    made when it is first asked for: no start waits for NumPy."""

    def __init__(
        self, config: Config, environment: Mapping[str, str], bridge: Bridge, find_model: "FindModel | None" = None
    ) -> None:
        wanted = tables.memory(config, environment)
        by_rules = find_model is None or wanted.extract == "rules"
        find = no_model if by_rules or find_model is None else find_model
        self._makers: dict[str, Callable[[], MemoryProvider]] = {"notes": partial(_notes, bridge, find)}
        if wanted.viking_url is not None:
            self._makers["openviking"] = partial(_openviking, wanted.viking_url, wanted.viking_key)
        self._made: dict[str, MemoryProvider] = {}
        self._default = wanted.provider

    @property
    def default(self) -> str | None:
        return self._default

    @property
    def names(self) -> Collection[str]:
        return self._makers

    def get(self, name: str) -> MemoryProvider | None:
        if name not in self._made and name in self._makers:
            self._made[name] = self._makers[name]()
        return self._made.get(name)

    async def warm_up(self) -> None:
        """Read the vectors before the first question comes."""
        if self._default == OFF:
            return
        from holdfast.memory.notes import Notes

        try:
            notes = self.get("notes")
            assert isinstance(notes, Notes)
            await notes.warm_up(LOCAL)
        except HoldfastError:
            log.info("facts cannot be read yet; the first recall does", exc_info=True)

    async def close(self) -> None:
        for provider in self._made.values():
            await provider.close()


async def no_model(_: str | None) -> "Ask | None":
    return None


def _notes(bridge: Bridge, find_model: "FindModel") -> "Notes":
    from holdfast.memory.notes import Notes

    return Notes(_Shelf(bridge), find_model)


def _openviking(url: str, key: str | None) -> MemoryProvider:
    from holdfast.memory.openviking import OpenViking

    return OpenViking(url, key)


class _Shelf:
    """`ports.FactShelf` of the engine, which is made after its providers."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    @property
    def _engine(self) -> Engine:
        assert self._bridge.engine is not None
        return self._bridge.engine

    async def after(self, owner: OwnerId, n: int, limit: int) -> Sequence[Fact]:
        return await self._engine.facts.after(owner, n, limit)

    async def with_words(self, owner: OwnerId, words: Sequence[str], limit: int) -> Sequence[Sequence[Fact]]:
        return await self._engine.facts.with_words(owner, words, limit)

    async def by_id(self, ids: Sequence[FactId]) -> Sequence[Fact]:
        return await self._engine.facts.by_id(ids)

    async def apply(self, batch: Batch, facts: Sequence[NewFact]) -> bool:
        return await self._engine.facts.apply(batch, facts)

    async def forget(self, sid: SessionId) -> None:
        await self._engine.facts.forget(sid)
