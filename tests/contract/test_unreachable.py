"""A server that cannot be reached, for as long as a connection takes to fail: who came before that is told with it."""

import threading
from typing import Any, NoReturn

import anyio
import pytest
import redis

from holdfast.core.errors import StorageUnavailable
from holdfast.storage.postgres import Place
from holdfast.storage.postgres.lanes import Lane
from holdfast.storage.postgres.link import TimedConnection
from holdfast.storage.redis import RedisPlace
from holdfast.storage.redis.link import RedisLane
from holdfast.testing.contracts.samples import GUARD

pytestmark = pytest.mark.anyio


class Line:
    """Attempts to connect wait here, and then fail."""

    def __init__(self) -> None:
        self.attempts = 0
        self.give_up = threading.Event()

    def fail(self, error: Exception) -> NoReturn:
        self.attempts += 1
        self.give_up.wait(GUARD)
        raise error


class FarPostgres(Place):
    line = Line()

    def connect(self) -> TimedConnection:
        self.line.fail(StorageUnavailable("no answer"))


class FarRedis(RedisPlace):
    line = Line()

    def connect(self, *, answer_within: float | None = None) -> redis.Redis:
        self.line.fail(redis.exceptions.TimeoutError("no answer"))


@pytest.mark.parametrize("far", [FarPostgres, FarRedis])
async def test_a_queue_before_a_lost_server_does_not_fail_one_by_one(
    far: type[FarPostgres] | type[FarRedis], monkeypatch: pytest.MonkeyPatch
) -> None:
    """L6: each attempt takes seconds when bytes go nowhere; a hundred callers are told after one, and the next caller
    tries again."""
    line = Line()
    monkeypatch.setattr(far, "line", line)
    place = far("")
    lane: Any = Lane("test", place) if isinstance(place, Place) else RedisLane("test", place)
    told: list[str] = []

    async def call() -> None:
        try:
            await lane.run(lambda db: db.ping())
        except StorageUnavailable as error:
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
