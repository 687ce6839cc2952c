"""A connection as the adapters want it: limited in time, and nothing is sent twice behind our back."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from holdfast.core.errors import StorageError, StorageFull, StorageUnavailable
from holdfast.storage.threads import Worker

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RedisPlace:
    url: str
    name: str = "holdfast"
    answer_within: float = 10.0

    def connect(self, *, answer_within: float | None = None) -> redis.Redis:
        """Connects at the first call. A call that failed is not repeated: it may have been done."""
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
        self._worker = Worker(name)

    @property
    def waiting(self) -> int:
        return self._worker.waiting

    async def run(self, work: Callable[[redis.Redis], T]) -> T:
        return await self._worker.call(lambda: self._with(work))

    def submit(self, work: Callable[[redis.Redis], T]) -> "asyncio.Future[T]":
        """For a caller that does not wait."""
        return self._worker.submit(lambda: self._with(work))

    async def reconnect(self) -> None:
        await self._worker.call(self._reconnect)

    async def close(self) -> None:
        await self._worker.close(self._disconnect)

    def _reconnect(self) -> None:
        self._disconnect()
        self._with(lambda db: db.ping())

    def _with(self, work: Callable[[redis.Redis], T]) -> T:
        try:
            if self._db is None:
                self._db = self._place.connect()
            return work(self._db)
        except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError) as error:
            self._disconnect()
            raise from_redis(error) from error
        except redis.RedisError as error:
            raise from_redis(error) from error

    def _disconnect(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()
