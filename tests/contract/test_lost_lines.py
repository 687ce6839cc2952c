"""Connections that carry hints, and that are lost: whoever listens is told to look for himself."""

import itertools
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest
import redis

from holdfast.core.ids import RunId
from holdfast.ports import Wake
from holdfast.storage.postgres import Place, PostgresWakeups
from holdfast.storage.redis import RedisPlace, RedisWakeups
from holdfast.storage.redis import wakeups as redis_wakeups
from holdfast.testing.contracts.samples import NODE
from holdfast.testing.contracts.wakeups import until

pytestmark = pytest.mark.anyio

SAID = Wake("appended", RunId("run_1"))


def end_connections(place: Place, how: str) -> None:
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
async def postgres(place: Place) -> AsyncIterator[PostgresWakeups]:
    wakeups = PostgresWakeups(place)
    try:
        yield wakeups
    finally:
        await wakeups.close()


async def test_whoever_listens_looks_again_when_the_line_was_lost(place: Place) -> None:
    """L7: what was said meanwhile is gone, and of which run nobody knows: everything is looked at, at once."""
    async with postgres(place) as wakeups, wakeups.listen(NODE) as listener:
        await wakeups.notify(NODE, [SAID])
        await until(listener, {SAID})
        end_connections(place, "LISTEN%")
        await until(listener, {Wake("queue"), Wake("changed"), Wake("control"), Wake("appended")})
        await wakeups.notify(NODE, [SAID])
        await until(listener, {SAID})


async def test_a_hint_is_not_lost_with_a_line_that_rested(place: Place) -> None:
    """L7: the connection that speaks went while nobody spoke: the next hint goes through another."""
    async with postgres(place) as wakeups, wakeups.listen(NODE) as listener:
        await wakeups.notify(NODE, [SAID])
        await until(listener, {SAID})
        end_connections(place, "%pg_notify%")
        again = Wake("control", RunId("run_2"))
        await wakeups.notify(NODE, [again])
        await until(listener, {again})


class Restarting(RedisPlace):
    """Cannot be reached when a connection is made for the second time to listen."""

    attempts = itertools.count(1)

    def connect(self, *, answer_within: float | None = None) -> redis.Redis:
        if threading.current_thread().name == "redis-ear" and next(self.attempts) == 2:
            raise redis.exceptions.ConnectionError("it is being restarted")
        return RedisPlace.connect(self, answer_within=answer_within)


@pytest.mark.parametrize("kind", [RedisPlace, Restarting])
async def test_whoever_follows_looks_again_when_redis_was_away(
    redis_place: RedisPlace, kind: type[RedisPlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """L7: Redis says that journals have grown; what it said while it could not be heard is looked for, once it can be
    reached again."""
    monkeypatch.setattr(redis_wakeups, "_PAUSE", 0.0)
    wakeups = RedisWakeups(kind(redis_place.url))
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
