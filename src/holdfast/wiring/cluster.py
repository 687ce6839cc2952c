"""Storage that nodes share: the store in PostgreSQL, the journal there or elsewhere. Imported only where it is set, for
its drivers are an extra (`holdfast[cluster]`)."""

import logging
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from anyio import to_thread

from holdfast.config import Config, ConfigError

try:
    from holdfast.storage.postgres import Place, PostgresJournal, PostgresStore, PostgresWakeups
    from holdfast.storage.postgres import checkup as postgres_checkup
    from holdfast.storage.postgres.files import PostgresFiles
    from holdfast.storage.postgres.keys import PostgresKeys
    from holdfast.storage.redis import RedisJournal, RedisPlace, RedisWakeups
    from holdfast.storage.redis import checkup as redis_checkup
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] == "holdfast":
        raise
    raise ConfigError("store_url", f"needs more than is installed ({error}): pip install 'holdfast[cluster]'") from None

from holdfast.agents.chat.workspaces import WorkspaceDirectories
from holdfast.core.ids import NodeId
from holdfast.engine.engine import Engine
from holdfast.engine.settings import DAY, Settings
from holdfast.ports import Agents, Journal, MemoryProviders
from holdfast.storage import disk
from holdfast.storage.hints import Others
from holdfast.storage.seen import Seen
from holdfast.storage.sqlite import DataDir
from holdfast.system import RandomIds, SystemClock
from holdfast.wiring.node import WORKSPACES, Around, Node

log = logging.getLogger("holdfast")

NODE_FILE: Final = "node"
_JOURNAL: Final = "holdfast_journal"


async def open_node(
    config: Config, agents: Agents, settings: Settings, around: Around, memory: MemoryProviders | None = None
) -> Node:
    """The data directory still belongs to one process: it has the node's name, its workspaces, and what commands on
    this machine need."""
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # a pipeline that was broken off is nothing to report
    directory = await to_thread.run_sync(DataDir.open, config.data_dir)
    try:
        name = node_id(config)
        place = store_place(config, name)
        store = await to_thread.run_sync(PostgresStore, place)
        journal = await to_thread.run_sync(open_journal, config, name)
    except BaseException:
        directory.close()
        raise
    for seen in await to_thread.run_sync(examine, config):
        log.log(logging.INFO if seen.ok else logging.WARNING, "%s: %s", seen.what, seen.text)
    wakeups = _open_wakeups(config, place)
    seen_store, seen_journal = around(store, journal)
    engine = Engine(
        store=seen_store,
        journal=seen_journal,
        wakeups=wakeups,
        agents=agents,
        clock=SystemClock(),
        ids=RandomIds(),
        settings=settings,
        files=PostgresFiles(place, config.data_dir),
        workspaces=WorkspaceDirectories(config.data_dir / WORKSPACES),
        node=NodeId(name),
        memory=memory,
    )
    return Node(engine, store, journal, directory, wakeups)


def keys(config: Config) -> PostgresKeys:
    return PostgresKeys(store_place(config, "keys"))


def examine(config: Config) -> Sequence[Seen]:
    redis = _redis_place(config, "doctor")
    journal = _journal_place(config, "doctor") if redis is None else None
    found = postgres_checkup.examine(store_place(config, "doctor"), journal, SystemClock().now)
    return found if redis is None else [*found, *redis_checkup.examine(redis)]


def node_id(config: Config) -> str:
    """The same after a restart: a node then finds at once what it left, and waits for no lease of its own."""
    if config.node_id is not None:
        return config.node_id
    file = config.data_dir / NODE_FILE
    return _remembered(file) or _remember(file)


def _remembered(file: Path) -> str | None:
    try:
        return file.read_text("ascii").strip() or None
    except FileNotFoundError:
        return None


def _remember(file: Path) -> str:
    name = f"node_{secrets.token_hex(8)}"
    disk.write_private(file, f"{name}\n".encode())
    return name


def store_place(config: Config, name: str) -> Place:
    assert config.store_url is not None
    return Place(config.store_url, name=f"holdfast {name}", answer_within=_patience(config))


def _journal_place(config: Config, name: str) -> Place:
    url = config.journal_url or config.store_url
    assert url is not None
    return Place(url, _JOURNAL, name=f"holdfast {name}", answer_within=_patience(config))


def _redis_place(config: Config, name: str) -> RedisPlace | None:
    if config.journal_url is None or config.journal_url.startswith("postgres"):
        return None
    return RedisPlace(config.journal_url, name=f"holdfast-{name}", answer_within=_patience(config))


def _patience(config: Config) -> float:
    """How long an answer may take: a line that is cut should be noticed before the leases lapse."""
    return min(max(config.lease_time / 3, 2.0), 10.0)


def open_journal(config: Config, name: str) -> Journal:
    redis = _redis_place(config, name)
    if redis is None:
        return PostgresJournal(_journal_place(config, name))
    # Erased by the sweeper when retention is over; by itself a day later, if nobody did.
    keep = (config.retention_days + 1) * DAY if config.retention_days > 0 else None
    return RedisJournal(redis, keep=keep)


def _open_wakeups(config: Config, place: Place) -> Others:
    wakeups, redis = PostgresWakeups(place), _redis_place(config, "wakeups")
    return wakeups if redis is None else RedisWakeups(redis, wakeups)
