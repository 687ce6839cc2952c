"""Where things are kept, as the config says: in the data directory, or where other nodes find them too."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from holdfast.config import Config
from holdfast.engine.settings import Settings
from holdfast.ports import Agents, Keys, MemoryProviders
from holdfast.storage import checkup
from holdfast.storage.keys import KeyFile
from holdfast.storage.seen import Seen
from holdfast.wiring import node as embedded
from holdfast.wiring.node import Around, Node


async def open_node(
    config: Config,
    agents: Agents,
    settings: Settings,
    around: Around = lambda store, journal: (store, journal),
    memory: MemoryProviders | None = None,
) -> Node:
    if config.store_url is None:
        return await embedded.open_node(config.data_dir, agents, settings, around=around, memory=memory)
    from holdfast.wiring import cluster

    return await cluster.open_node(config, agents, settings, around, memory)


def keys_of(config: Config) -> Keys:
    """For a command: each read looks."""
    if config.store_url is None:
        return KeyFile(config.data_dir)
    from holdfast.wiring import cluster

    return cluster.keys(config)


@contextmanager
def watched_keys(config: Config) -> Iterator[Keys]:
    """For a server, which asks at every call."""
    if config.store_url is None:
        yield KeyFile(config.data_dir)
        return
    from holdfast.wiring import cluster

    keys = cluster.keys(config)
    keys.keep_watch()
    try:
        yield keys
    finally:
        keys.close()


def examine(config: Config) -> Sequence[Seen]:
    if config.store_url is None:
        return checkup.examine(config.data_dir)
    from holdfast.wiring import cluster

    return cluster.examine(config)
