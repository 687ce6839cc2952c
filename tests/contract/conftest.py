"""One PostgreSQL for a session of tests; each test finds it empty."""

from collections.abc import Iterator

import psycopg
import pytest
import redis

from holdfast.storage.postgres import Place, schema
from holdfast.storage.redis import RedisPlace
from tests.servers import PostgresServer, RedisServer


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    try:
        server.start()
        schema.prepare(Place(server.url()), schema.STORE)
        schema.prepare(Place(server.url(), "holdfast_journal"), schema.JOURNAL)
        yield server
    finally:
        server.remove()


@pytest.fixture
def place(postgres: PostgresServer) -> Place:
    _empty(postgres.url(), "holdfast")
    with psycopg.connect(postgres.url(), autocommit=True) as db:
        db.execute("INSERT INTO holdfast.changes_floor DEFAULT VALUES")
    return Place(postgres.url())


@pytest.fixture
def journal_place(postgres: PostgresServer) -> Place:
    _empty(postgres.url(), "holdfast_journal")
    return Place(postgres.url(), "holdfast_journal")


def _empty(url: str, schema: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        found = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
        # Not TRUNCATE, which makes a new file for each table and index.
        db.execute("; ".join(f"DELETE FROM {schema}.{name}" for (name,) in found if name != "version").encode())


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    server = RedisServer()
    try:
        yield server.start()
    finally:
        server.remove()


@pytest.fixture
def redis_place(redis_server: RedisServer) -> RedisPlace:
    with redis.Redis(port=redis_server.port) as db:
        db.flushall()
    return RedisPlace(redis_server.url)
