"""Chooses where data is stored: in the data directory, or in storage that nodes share. The cluster adapters are
imported only if `store_url` is set, because their drivers are optional."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from holdfast.app import node as embedded
from holdfast.app.node import Node, WrapStorage
from holdfast.config import Config
from holdfast.engine.settings import EngineSettings
from holdfast.ports.agent import AgentLookup
from holdfast.ports.check_result import CheckResult
from holdfast.ports.keyring import KeyringStore
from holdfast.ports.memory import MemoryProviders
from holdfast.storage import data_dir_check
from holdfast.storage.key_file import KeyFile


async def open_node(
    config: Config,
    agents: AgentLookup,
    settings: EngineSettings,
    wrap_storage: WrapStorage = lambda store, journal: (store, journal),
    memory: MemoryProviders | None = None,
) -> Node:
    if config.store_url is None:
        return await embedded.open_node(config.data_dir, agents, settings, wrap_storage=wrap_storage, memory=memory)
    from holdfast.app import cluster

    return await cluster.open_node(config, agents, settings, wrap_storage, memory)


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

    keys = cluster.keys(config)
    keys.start_following()
    try:
        yield keys
    finally:
        keys.close()


def examine(config: Config) -> Sequence[CheckResult]:
    if config.store_url is None:
        return data_dir_check.examine(config.data_dir)
    from holdfast.app import cluster

    return cluster.examine(config)
