"""A node: an engine with its storage, which is in the data directory or shared with other nodes. The cluster adapters
are imported only if `store_url` is set, because their drivers are optional. What `config` sets of the engine's limits:
`engine_settings` here."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from holdfast.agents.chat.workspaces import WorkspaceDirectories
from holdfast.config import Config
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.engine.engine import Engine
from holdfast.engine.settings import DAY, SWEEP, EngineSettings
from holdfast.ports.agent import AgentLookup
from holdfast.ports.health_check import CheckResult
from holdfast.ports.journal import Journal
from holdfast.ports.keyring import KeyringStore
from holdfast.ports.memory import MemoryProviders
from holdfast.ports.prices import PriceTable
from holdfast.ports.push import PushService
from holdfast.ports.store import Store
from holdfast.ports.tracing import SpanExporter
from holdfast.storage import data_dir_check
from holdfast.storage.file_store import FileStore
from holdfast.storage.in_memory import SingleNodeWakeups
from holdfast.storage.key_file import KeyFile
from holdfast.storage.sqlite import DataDir, backup, open_embedded
from holdfast.storage.wakeup_transport import PeerNotifier
from holdfast.system import RandomIds, SystemClock

WrapStorage = Callable[[Store, Journal], tuple[Store, Journal]]
"""Wraps the storage that the engine uses, for tests that inject faults."""
Copy = Callable[[Path, backup.Report], backup.BackupSummary]  # Makes a backup. Blocks.


@dataclass(frozen=True, slots=True)
class Node:
    """An engine with its storage. Run `engine.run` in a task group; close the node after it has returned."""

    engine: Engine
    store: Store
    journal: Journal
    directory: DataDir
    wakeups: PeerNotifier | None = None
    copy: Copy | None = None

    async def close(self) -> None:
        if self.wakeups is not None:
            await self.wakeups.close()
        await self.journal.close()
        await self.store.close()
        self.directory.close()


async def open_node(
    config: Config,
    agents: AgentLookup,
    settings: EngineSettings,
    wrap_storage: WrapStorage = lambda store, journal: (store, journal),
    memory: MemoryProviders | None = None,
    span_exporter: SpanExporter | None = None,
    prices: PriceTable | None = None,
    push: PushService | None = None,
) -> Node:
    if config.store_url is None:
        path = config.data_dir
        return await open_embedded_node(path, agents, settings, wrap_storage, memory, span_exporter, prices, push)
    from holdfast.app import cluster

    return await cluster.open_node(config, agents, settings, wrap_storage, memory, span_exporter, prices, push)


async def open_embedded_node(
    path: Path,
    agents: AgentLookup,
    settings: EngineSettings | None = None,
    wrap_storage: WrapStorage = lambda store, journal: (store, journal),
    memory: MemoryProviders | None = None,
    span_exporter: SpanExporter | None = None,
    prices: PriceTable | None = None,
    push: PushService | None = None,
) -> Node:
    """Opens the embedded default, SQLite in a directory whose lock is the lease, or raises StorageError."""
    clock = SystemClock()
    directory, store, journal = open_embedded(path, clock)
    wrapped_store, wrapped_journal = wrap_storage(store, journal)
    engine = Engine(
        store=wrapped_store,
        journal=wrapped_journal,
        wakeups=SingleNodeWakeups(),
        agents=agents,
        clock=clock,
        ids=RandomIds(),
        settings=settings,
        files=FileStore(directory.files),
        workspaces=WorkspaceDirectories(path),
        memory=memory,
        span_exporter=span_exporter,
        prices=prices,
        push=push,
    )
    return Node(engine, store, journal, directory, copy=partial(backup.copy, directory.path))


def open_keys(config: Config) -> KeyringStore:
    """The keyring for a command: every read goes to storage."""
    if config.store_url is None:
        return KeyFile(config.data_dir)
    from holdfast.app import cluster

    return cluster.keys(config)


@contextmanager
def watched_keys(config: Config) -> Iterator[KeyringStore]:
    """The keyring for a server, which reads it at every request."""
    if config.store_url is None:
        yield KeyFile(config.data_dir)
        return
    from holdfast.app import cluster

    with closing(cluster.keys(config)) as keys:
        keys.start_following()
        yield keys


def examine(config: Config) -> Sequence[CheckResult]:
    if config.store_url is None:
        return data_dir_check.examine(config.data_dir)
    from holdfast.app import cluster

    return cluster.examine(config)


def engine_settings(config: Config) -> EngineSettings:
    cluster = config.store_url is not None
    return EngineSettings(
        lease_time=config.lease_time,
        lease_renewal=config.lease_renewal,
        # A node that died announces nothing: the other nodes find its runs when they sweep.
        sweep_interval=min(SWEEP, config.lease_time / 2) if cluster else SWEEP,
        retention=config.retention_days * DAY,
        drain_time=config.drain,
        max_runs=config.max_runs,
        titles=config.titles != "off",
        recovery=RecoveryPolicy(auto_continue=config.auto_continue),
    )


def tune_gc() -> None:
    """Call once in a server process, after its imports: it changes garbage collection for the whole process.

    Every event in a tail counts towards the collector's default threshold of 700 objects. With 1,000 runs, collections
    took 4 to 9 µs per token, mostly over objects that live as long as the process. Freezing those and raising the
    threshold removes that cost."""
    gc.freeze()
    gc.set_threshold(25_000, 20, 50)
    gc.enable()
