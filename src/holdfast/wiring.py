"""The composition root: the only place that knows which adapters there are."""

import gc
from dataclasses import dataclass
from pathlib import Path

from holdfast.engine.engine import Engine
from holdfast.engine.settings import Settings
from holdfast.ports import Agents, Clock
from holdfast.storage.files import FileStore
from holdfast.storage.memory import MemoryWakeups
from holdfast.storage.sqlite import DataDir, SqliteJournal, SqliteStore, open_embedded
from holdfast.system import RandomIds, SystemClock


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


async def open_node(path: Path, agents: Agents, settings: Settings | None = None, clock: Clock | None = None) -> Node:
    """The embedded default: SQLite in a directory whose lock is the lease. Raises StorageError with nothing changed."""
    clock = clock or SystemClock()
    directory, store, journal = open_embedded(path, clock)
    engine = Engine(
        store=store,
        journal=journal,
        wakeups=MemoryWakeups(),
        agents=agents,
        clock=clock,
        ids=RandomIds(),
        settings=settings,
        files=FileStore(directory.files),
    )
    return Node(engine, store, journal, directory)


def tune_gc() -> None:
    """Call once in a process that serves, when everything is imported. Python looks for cycles whenever
    700 objects more were made than freed, and every event that a tail holds is one: at 1,000 runs that was 4 to 9 µs a
    token, most of it over objects that live as long as the process. So those are set aside for good, and the rest is
    looked at less often. Not for a library to decide: it concerns everything in the process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(25_000, 20, 50)
