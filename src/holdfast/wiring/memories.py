"""Who remembers: the providers, made from the config.

[memory]                            [memory.openviking]
provider = "notes"                  url = "http://127.0.0.1:1933"
extract = "model"                   api_key_env = "OPENVIKING_API_KEY"
"""

import logging
from collections.abc import Collection, Mapping, Sequence

from holdfast.config import Config
from holdfast.core.errors import HoldfastError
from holdfast.core.ids import LOCAL, FactId, OwnerId, SessionId
from holdfast.core.ledger import OFF
from holdfast.engine.engine import Engine
from holdfast.memory.notes import Ask, FindModel, Notes
from holdfast.memory.openviking import OpenViking
from holdfast.ports import Batch, Fact, MemoryProvider, NewFact
from holdfast.wiring import tables
from holdfast.wiring.bridge import Bridge

log = logging.getLogger("holdfast.memory")


class Memories:
    """`ports.MemoryProviders`. The built-in one is always there, so that a session can choose it."""

    def __init__(
        self, config: Config, environment: Mapping[str, str], bridge: Bridge, find_model: FindModel | None = None
    ) -> None:
        wanted = tables.memory(config, environment)
        by_rules = find_model is None or wanted.extract == "rules"
        self._notes = Notes(_Shelf(bridge), no_model if by_rules or find_model is None else find_model)
        self._providers: dict[str, MemoryProvider] = {"notes": self._notes}
        if wanted.viking_url is not None:
            self._providers["openviking"] = OpenViking(wanted.viking_url, wanted.viking_key)
        self._default = wanted.provider

    @property
    def default(self) -> str | None:
        return self._default

    @property
    def names(self) -> Collection[str]:
        return self._providers

    def get(self, name: str) -> MemoryProvider | None:
        return self._providers.get(name)

    async def warm_up(self) -> None:
        """Read the vectors before the first question comes."""
        if self._default == OFF:
            return
        try:
            await self._notes.warm_up(LOCAL)
        except HoldfastError:
            log.info("facts cannot be read yet; the first recall does", exc_info=True)

    async def close(self) -> None:
        for provider in self._providers.values():
            await provider.close()


async def no_model(_: str | None) -> Ask | None:
    return None


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
