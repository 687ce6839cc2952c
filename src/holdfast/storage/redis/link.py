"""A connection as the adapters want it: limited in time, and nothing is sent twice behind our back."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from holdfast.core.errors import StorageError, StorageFull, StorageUnavailable
from holdfast.core.values import dataclass
from holdfast.storage.threads import Away, Worker

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RedisPlace:
    url: str
    name: str = "holdfast"
    answer_within: float = 10.0

    def connect(self, *, answer_within: float | None = None) -> redis.Redis:
        """Raises what Redis raises. A call that failed is not repeated: it may have been done."""
        return redis.Redis.from_url(
            self.url,
            socket_timeout=answer_within or self.answer_within,
            socket_connect_timeout=5.0,
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),
            client_name=self.name.replace(" ", "-"),
            single_connection_client=True,
        )


def from_redis(error: redis.RedisError) -> StorageError:
    if isinstance(error, redis.exceptions.OutOfMemoryError):
        return StorageFull(f"Redis has no memory left: {error}. Give it more, or shorten retention_days.")
    if isinstance(error, redis.exceptions.ResponseError) and not isinstance(error, redis.exceptions.ReadOnlyError):
        return StorageError(f"Redis: {error}.")
    return StorageUnavailable(f"Redis cannot be used: {error}.")


class RedisLane:
    """A thread with a connection of its own."""

    def __init__(self, name: str, place: RedisPlace) -> None:
        self._place = place
        self._db: redis.Redis | None = None
        self._away = Away()
        self._worker = Worker(name)

    @property
    def waiting(self) -> int:
        return self._worker.waiting

    async def run(self, work: Callable[[redis.Redis], T]) -> T:
        asked_at = monotonic()
        return await self._worker.call(lambda: self._with(work, asked_at))

    def submit(self, work: Callable[[redis.Redis], T]) -> "asyncio.Future[T]":
        """For a caller that does not wait."""
        asked_at = monotonic()
        return self._worker.submit(lambda: self._with(work, asked_at))

    async def reconnect(self) -> None:
        await self._worker.call(self._reconnect)

    async def close(self) -> None:
        await self._worker.close(self._disconnect)

    def _reconnect(self) -> None:
        self._disconnect()
        self._with(lambda db: db.ping(), monotonic())

    def _with(self, work: Callable[[redis.Redis], T], asked_at: float) -> T:
        try:
            return work(self._connected(asked_at) if self._db is None else self._db)
        except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError) as error:
            self._disconnect()
            raise from_redis(error) from error
        except redis.RedisError as error:
            raise from_redis(error) from error

    def _connected(self, asked_at: float) -> redis.Redis:
        self._away.check(asked_at)
        try:
            self._db = self._place.connect()
        except redis.RedisError as error:
            self._away.note(from_redis(error))
            raise
        return self._db

    def _disconnect(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()
