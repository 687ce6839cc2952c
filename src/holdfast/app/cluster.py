"""Storage that nodes share: the store in PostgreSQL, the journal there or in Redis. The name of a node is decided here
(`node_id`). Imported only if `store_url` is set, because the drivers are an extra (`holdfast[cluster]`)."""

import logging
import secrets
from collections.abc import Sequence
from typing import Final

from anyio import to_thread

from holdfast.config import Config
from holdfast.core.errors import ConfigError

try:
    from holdfast.storage.postgres import PostgresConfig, PostgresJournal, PostgresStore, PostgresWakeups
    from holdfast.storage.postgres import health_check as postgres_check
    from holdfast.storage.postgres.files import PostgresFiles
    from holdfast.storage.postgres.keyring import PostgresKeys
    from holdfast.storage.redis import RedisConfig, RedisJournal, RedisWakeups
    from holdfast.storage.redis import health_check as redis_check
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] == "holdfast":
        raise
    raise ConfigError(
        "store_url", f"needs drivers that are not installed ({error}); run pip install 'holdfast[cluster]'"
    ) from None

from holdfast.agents.chat.workspaces import WorkspaceDirectories
from holdfast.app.storage import Node, WrapStorage
from holdfast.core.ids import NodeId
from holdfast.engine.engine import Engine
from holdfast.engine.settings import DAY, EngineSettings
from holdfast.ports.agent import AgentLookup
from holdfast.ports.health_check import CheckResult
from holdfast.ports.journal import Journal
from holdfast.ports.memory import MemoryProviders
from holdfast.ports.prices import PriceTable
from holdfast.ports.push import PushService
from holdfast.ports.tracing import SpanExporter
from holdfast.storage import filesystem
from holdfast.storage.sqlite import DataDir
from holdfast.storage.wakeup_transport import PeerNotifier
from holdfast.system import RandomIds, SystemClock

log = logging.getLogger("holdfast")

NODE_FILE: Final = "node"
_JOURNAL: Final = "holdfast_journal"


async def open_node(
    config: Config,
    agents: AgentLookup,
    settings: EngineSettings,
    wrap_storage: WrapStorage,
    memory: MemoryProviders | None = None,
    span_exporter: SpanExporter | None = None,
    prices: PriceTable | None = None,
    push: PushService | None = None,
) -> Node:
    """Opens a node on shared storage. It still locks its data directory, which holds the node's name, its workspaces
    and `server.json`."""
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns about every cancelled pipeline
    directory = await to_thread.run_sync(DataDir.open, config.data_dir)
    try:
        name = node_id(config)
        postgres = store_config(config, name)
        store = await to_thread.run_sync(PostgresStore, postgres)
        journal = await to_thread.run_sync(open_journal, config, name)
    except BaseException:
        directory.close()
        raise
    for result in await to_thread.run_sync(examine, config):
        log.log(logging.INFO if result.ok else logging.WARNING, "%s: %s", result.what, result.text)
    wakeups: PeerNotifier = PostgresWakeups(postgres)
    redis = _redis_config(config, "wakeups")
    if redis is not None:
        wakeups = RedisWakeups(redis, wakeups)
    wrapped_store, wrapped_journal = wrap_storage(store, journal)
    engine = Engine(
        store=wrapped_store,
        journal=wrapped_journal,
        wakeups=wakeups,
        agents=agents,
        clock=SystemClock(),
        ids=RandomIds(),
        settings=settings,
        files=PostgresFiles(postgres, config.data_dir),
        workspaces=WorkspaceDirectories(config.data_dir),
        node=NodeId(name),
        memory=memory,
        span_exporter=span_exporter,
        prices=prices,
        push=push,
    )
    return Node(engine, store, journal, directory, wakeups)


def keys(config: Config) -> PostgresKeys:
    return PostgresKeys(store_config(config, "keys"))


def examine(config: Config) -> Sequence[CheckResult]:
    redis = _redis_config(config, "doctor")
    journal = _journal_config(config, "doctor") if redis is None else None
    found = postgres_check.examine(store_config(config, "doctor"), journal, SystemClock().now)
    return found if redis is None else [*found, *redis_check.examine(redis)]


def node_id(config: Config) -> str:
    """The node's name. It survives a restart, so that a node recovers its own runs without waiting for their leases."""
    if config.node_id is not None:
        return config.node_id
    file = config.data_dir / NODE_FILE
    name = file.read_text("ascii").strip() if file.exists() else ""
    if not name:
        name = f"node_{secrets.token_hex(8)}"
        filesystem.write_private(file, f"{name}\n".encode())
    return name


def store_config(config: Config, name: str) -> PostgresConfig:
    assert config.store_url is not None
    return PostgresConfig(config.store_url, name=f"holdfast {name}", answer_within=_answer_timeout(config))


def _journal_config(config: Config, name: str) -> PostgresConfig:
    url = config.journal_url or config.store_url
    assert url is not None
    return PostgresConfig(url, _JOURNAL, name=f"holdfast {name}", answer_within=_answer_timeout(config))


def _redis_config(config: Config, name: str) -> RedisConfig | None:
    if config.journal_url is None or config.journal_url.startswith("postgres"):
        return None
    return RedisConfig(config.journal_url, name=f"holdfast-{name}", answer_within=_answer_timeout(config))


def _answer_timeout(config: Config) -> float:
    """Seconds to wait for an answer, short enough to notice a broken connection before the leases expire."""
    return min(max(config.lease_time / 3, 2.0), 10.0)


def open_journal(config: Config, name: str) -> Journal:
    redis = _redis_config(config, name)
    if redis is None:
        return PostgresJournal(_journal_config(config, name))
    # The sweeper erases a journal when retention ends; Redis expires it a day later in any case.
    keep = (config.retention_days + 1) * DAY if config.retention_days > 0 else None
    return RedisJournal(redis, keep=keep)
