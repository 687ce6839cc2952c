"""The memory providers of a server, built from the configuration. Which provider a session uses:
`engine.transactions.memory`."""

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from holdfast.app.engine_proxy import EngineProxy
from holdfast.config import Config, OpenVikingSection
from holdfast.core.errors import HoldfastError
from holdfast.core.ids import LOCAL
from holdfast.core.memory_ledger import OFF
from holdfast.ports.memory import MemoryProvider

if TYPE_CHECKING:
    from holdfast.memory.builtin_provider import Ask, FindModel, NotesProvider

log = logging.getLogger("holdfast.memory")


class MemoryProviderTable:
    """Implements `ports.MemoryProviders`. The built-in provider is always offered, so that a session can choose it.
    Each provider is imported and built on first use: the engine exists by then, and importing NumPy would delay the
    start."""

    def __init__(
        self,
        config: Config,
        environment: Mapping[str, str],
        engine_proxy: EngineProxy,
        find_model: "FindModel | None" = None,
    ) -> None:
        section = config.memory
        find = find_model if find_model is not None and section.extract == "model" else no_model
        self._factories: dict[str, Callable[[], MemoryProvider]] = {
            "notes": partial(_notes, engine_proxy, find, section.confirm)
        }
        if section.openviking.url is not None:
            self._factories["openviking"] = partial(_openviking, section.openviking, environment)
        self._built: dict[str, MemoryProvider] = {}
        self.default: str | None = section.provider
        self.names: Collection[str] = self._factories

    def get(self, name: str) -> MemoryProvider | None:
        if name not in self._built and name in self._factories:
            self._built[name] = self._factories[name]()
        return self._built.get(name)

    async def warm_up(self) -> None:
        """Reads the vectors before the first recall needs them."""
        if self.default == OFF:
            return
        from holdfast.memory.builtin_provider import NotesProvider

        try:
            notes = self.get("notes")
            assert isinstance(notes, NotesProvider)
            await notes.refresh(LOCAL)
        except HoldfastError:
            log.info("the stored facts cannot be read now; the next turn that needs them tries again", exc_info=True)

    async def close(self) -> None:
        for provider in self._built.values():
            await provider.close()


async def no_model(_: str | None) -> "Ask | None":
    return None


def _notes(engine_proxy: EngineProxy, find_model: "FindModel", confirm: bool) -> "NotesProvider":
    from holdfast.memory.builtin_provider import NotesProvider

    return NotesProvider(engine_proxy.engine.memory_facts, find_model, confirm=confirm)


def _openviking(section: OpenVikingSection, environment: Mapping[str, str]) -> MemoryProvider:
    from holdfast.memory.openviking import OpenViking

    assert section.url is not None
    variable_key = environment.get(section.api_key_env) if section.api_key_env else None
    return OpenViking(section.url, section.api_key.get_secret_value() if section.api_key else variable_key)
