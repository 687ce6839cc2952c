"""An engine on its own data directory, and what an engine is set to."""

import gc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from holdfast.agents.chat.workspaces import WorkspaceDirectories
from holdfast.config import Config
from holdfast.core.recovery import Policy
from holdfast.core.values import dataclass
from holdfast.engine.engine import Engine
from holdfast.engine.settings import DAY, SWEEP, Settings
from holdfast.ports import Agents, Clock, Journal, MemoryProviders, Store
from holdfast.storage.files import FileStore
from holdfast.storage.hints import Others
from holdfast.storage.memory import MemoryWakeups
from holdfast.storage.sqlite import DataDir, backup, open_embedded
from holdfast.system import RandomIds, SystemClock

WORKSPACES: Final = "workspaces"
"""In the data directory: what agents work in."""
Around = Callable[[Store, Journal], tuple[Store, Journal]]
"""Puts something between the engine and its storage, as tests do."""


Copy = Callable[[Path, backup.Report], backup.Copied]
"""Makes a backup. Blocks."""


@dataclass(frozen=True, slots=True)
class Node:
    """An engine and what it stands on. Run `engine.run` in a task group; close when that has returned."""

    engine: Engine
    store: Store
    journal: Journal
    directory: DataDir
    wakeups: Others | None = None
    copy: Copy | None = None

    async def close(self) -> None:
        if self.wakeups is not None:
            await self.wakeups.close()
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
    return Node(engine, store, journal, directory, copy=partial(backup.copy, directory.path))


def engine_settings(config: Config) -> Settings:
    cluster = config.store_url is not None
    return Settings(
        lease_time=config.lease_time,
        lease_renewal=config.lease_renewal,
        # Of a node that died nobody hears: the others find its runs when they sweep.
        sweep=min(SWEEP, config.lease_time / 2) if cluster else SWEEP,
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
    gc.freeze()  # without a look before: imports leave next to no garbage, and a start would wait for it
    gc.set_threshold(25_000, 20, 50)
    gc.enable()
