"""Servers that cannot be reached, and connections that are lost while they carry hints."""

import itertools
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import anyio
import psycopg
import pytest
import redis

from holdfast.core.errors import StorageUnavailableError
from holdfast.core.ids import RunId
from holdfast.ports.wakeups import Wake
from holdfast.storage import wakeup_transport
from holdfast.storage.postgres import PostgresConfig, PostgresWakeups
from holdfast.storage.postgres.connection import TimedConnection
from holdfast.storage.redis import RedisConfig, RedisWakeups
from holdfast.testing.contracts.samples import GUARD, NODE
from holdfast.testing.contracts.wakeups import until

pytestmark = pytest.mark.anyio

SAID = Wake("appended", RunId("run_1"))


def end_connections(place: PostgresConfig, how: str) -> None:
    """Those whose last statement was like that."""
    with psycopg.connect(place.url, autocommit=True) as db:
        ended = db.execute(
            "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND application_name = %s AND query LIKE %s",
            (place.name, how),
        ).fetchone()
    assert ended is not None
    assert ended[0] == 1


@asynccontextmanager
async def postgres(place: PostgresConfig) -> AsyncIterator[PostgresWakeups]:
    wakeups = PostgresWakeups(place)
    try:
        yield wakeups
    finally:
        await wakeups.close()


async def test_whoever_listens_looks_again_when_the_line_was_lost(place: PostgresConfig) -> None:
    """L7: what was said meanwhile is gone, and of which run nobody knows: everything is looked at, at once."""
    async with postgres(place) as wakeups, wakeups.listen(NODE) as listener:
        await wakeups.notify(NODE, [SAID])
        await until(listener, {SAID})
        end_connections(place, "LISTEN%")
        await until(listener, {Wake("queue"), Wake("changed"), Wake("control"), Wake("appended")})
        await wakeups.notify(NODE, [SAID])
        await until(listener, {SAID})


async def test_a_hint_is_not_lost_with_a_line_that_rested(place: PostgresConfig) -> None:
    """L7: the connection that speaks went while nobody spoke: the next hint goes through another."""
    async with postgres(place) as wakeups, wakeups.listen(NODE) as listener:
        await wakeups.notify(NODE, [SAID])
        await until(listener, {SAID})
        end_connections(place, "%pg_notify%")
        again = Wake("control", RunId("run_2"))
        await wakeups.notify(NODE, [again])
        await until(listener, {again})


class Restarting(RedisConfig):
    """Cannot be reached when a connection is made for the second time to listen."""

    attempts = itertools.count(1)

    def connect(self) -> redis.Redis:
        if threading.current_thread().name == "redis-listener" and next(self.attempts) == 2:
            raise redis.exceptions.ConnectionError("it is being restarted")
        return RedisConfig.connect(self)


@pytest.mark.parametrize("kind", [RedisConfig, Restarting])
async def test_whoever_follows_looks_again_when_redis_was_away(
    redis_place: RedisConfig, place: PostgresConfig, kind: type[RedisConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """L7: Redis says that journals have grown; what it said while it could not be heard is looked for, once it can be
    reached again."""
    monkeypatch.setattr(wakeup_transport, "_RETRY_DELAY", 0.0)
    wakeups = RedisWakeups(kind(redis_place.url), PostgresWakeups(place))
    try:
        async with wakeups.listen(NODE) as listener:
            await wakeups.notify(NODE, [SAID])
            await until(listener, {SAID})
            with redis.Redis.from_url(redis_place.url) as db:
                db.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            await until(listener, {Wake("appended")})
            await wakeups.notify(NODE, [SAID])
            await until(listener, {SAID})
    finally:
        await wakeups.close()


class Line:
    """Attempts to connect wait here, and then fail."""

    def __init__(self) -> None:
        self.attempts = 0
        self.give_up = threading.Event()

    def fail(self, error: Exception) -> NoReturn:
        self.attempts += 1
        self.give_up.wait(GUARD)
        raise error


class FarPostgres(PostgresConfig):
    line = Line()

    def connect(self, first: Callable[[TimedConnection], None] | None = None) -> TimedConnection:
        self.line.fail(StorageUnavailableError("no answer"))


class FarRedis(RedisConfig):
    line = Line()

    def connect(self) -> redis.Redis:
        self.line.fail(redis.exceptions.TimeoutError("no answer"))


@pytest.mark.parametrize("far", [FarPostgres, FarRedis])
async def test_a_queue_before_a_lost_server_does_not_fail_one_by_one(
    far: type[FarPostgres] | type[FarRedis], monkeypatch: pytest.MonkeyPatch
) -> None:
    """L6: each attempt takes seconds when bytes go nowhere; a hundred callers are told after one, and the next caller
    tries again."""
    line = Line()
    monkeypatch.setattr(far, "line", line)
    lane: Any = far("").worker("test")
    told: list[str] = []

    async def call() -> None:
        try:
            await lane.run(lambda db: db.ping())
        except StorageUnavailableError as error:
            told.append(str(error))

    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(call)
            while lane.waiting < 100:
                await anyio.lowlevel.checkpoint()
            line.give_up.set()
        assert line.attempts == 1
        assert len(told) == 100
        assert all("no answer" in text for text in told)
        await call()
    assert line.attempts == 2
    await lane.close()
