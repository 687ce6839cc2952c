"""One PostgreSQL for a session of tests; each test finds it empty."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
import redis

from holdfast.storage.postgres import PostgresConfig, database_upgrade, schema
from holdfast.storage.redis import RedisConfig
from tests.servers import PostgresServer, RedisServer


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with closing(PostgresServer()) as server:
        server.start()
        database_upgrade.create_or_upgrade(PostgresConfig(server.url()), schema.STORE)
        database_upgrade.create_or_upgrade(PostgresConfig(server.url(), "holdfast_journal"), schema.JOURNAL)
        yield server


@pytest.fixture
def place(postgres: PostgresServer) -> PostgresConfig:
    _empty(postgres.url(), "holdfast")
    with psycopg.connect(postgres.url(), autocommit=True) as db:
        db.execute("INSERT INTO holdfast.changes_floor DEFAULT VALUES")
    return PostgresConfig(postgres.url())


@pytest.fixture
def journal_place(postgres: PostgresServer) -> PostgresConfig:
    _empty(postgres.url(), "holdfast_journal")
    return PostgresConfig(postgres.url(), "holdfast_journal")


def _empty(url: str, schema: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        # The newest first: a table refers only to earlier ones.
        tables = (
            "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r' ORDER BY oid DESC"
        )
        found = db.execute(tables, (schema,)).fetchall()
        # Not TRUNCATE, which makes a new file for each table and index.
        db.execute("; ".join(f"DELETE FROM {schema}.{name}" for (name,) in found if name != "version").encode())


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    with closing(RedisServer()) as server:
        yield server.start()


@pytest.fixture
def redis_place(redis_server: RedisServer) -> RedisConfig:
    with redis.Redis(port=redis_server.port) as db:
        db.flushall()
    return RedisConfig(redis_server.url)
