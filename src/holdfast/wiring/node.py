"""An engine on its own data directory."""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.agents.chat.workspaces import WorkspaceDirectories
from holdfast.config import Config
from holdfast.core.recovery import Policy
from holdfast.engine.engine import Engine
from holdfast.engine.settings import DAY, Settings
from holdfast.ports import Agents, Clock, Journal, MemoryProviders, Store
from holdfast.storage.files import FileStore
from holdfast.storage.memory import MemoryWakeups
from holdfast.storage.sqlite import DataDir, SqliteJournal, SqliteStore, open_embedded
from holdfast.system import RandomIds, SystemClock

WORKSPACES: Final = "workspaces"
"""In the data directory: what agents work in."""
Around = Callable[[Store, Journal], tuple[Store, Journal]]
"""Puts something between the engine and its storage, as tests do."""


@dataclass(frozen=True, slots=True)
class Node:
    """An engine on its own data directory. Run `engine.run` in a task group; close when that has returned."""

    engine: Engine
    store: SqliteStore
    journal: SqliteJournal
    directory: DataDir

    async def close(self) -> None:
        await self.journal.close()
        await self.store.close()
        self.directory.close()


async def open_node(
    path: Path,
    agents: Agents,
    settings: Settings | None = None,
    clock: Clock | None = None,
    around: Around = lambda store, journal: (store, journal),
    memory: MemoryProviders | None = None,
) -> Node:
    """The embedded default: SQLite in a directory whose lock is the lease. Raises StorageError with nothing changed."""
    clock = clock or SystemClock()
    directory, store, journal = open_embedded(path, clock)
    seen_store, seen_journal = around(store, journal)
    engine = Engine(
        store=seen_store,
        journal=seen_journal,
        wakeups=MemoryWakeups(),
        agents=agents,
        clock=clock,
        ids=RandomIds(),
        settings=settings,
        files=FileStore(directory.files),
        workspaces=WorkspaceDirectories(path / WORKSPACES),
        memory=memory,
    )
    return Node(engine, store, journal, directory)


def engine_settings(config: Config) -> Settings:
    return Settings(
        retention=config.retention_days * DAY,
        drain=config.drain,
        max_runs=config.max_runs,
        recovery=Policy(auto_continue=config.auto_continue),
    )


def tune_gc() -> None:
    """Call once in a process that serves, when everything is imported. Python looks for cycles whenever
    700 objects more were made than freed, and every event that a tail holds is one: at 1,000 runs that was 4 to 9 µs a
    token, most of it over objects that live as long as the process. So those are set aside for good, and the rest is
    looked at less often. Not for a library to decide: it concerns everything in the process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(25_000, 20, 50)
