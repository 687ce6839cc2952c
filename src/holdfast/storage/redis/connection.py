"""Connections to Redis: limited in time, and without automatic retries."""

from dataclasses import dataclass

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from holdfast.core.errors import StorageError, StorageFullError, StorageUnavailableError
from holdfast.storage.worker_thread import ConnectionWorker


@dataclass(frozen=True, slots=True)
class RedisConfig:
    url: str
    name: str = "holdfast"
    answer_within: float = 10.0

    def connect(self) -> redis.Redis:
        """Raises RedisError. A failed command is not repeated: it may have been executed."""
        return redis.Redis.from_url(
            self.url,
            socket_timeout=self.answer_within,
            socket_connect_timeout=5.0,
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),
            client_name=self.name.replace(" ", "-"),
            single_connection_client=True,
        )

    def worker(self, name: str) -> ConnectionWorker[redis.Redis]:
        return ConnectionWorker(name, self.connect, redis.RedisError, from_redis)


def from_redis(error: redis.RedisError) -> StorageError:
    if isinstance(error, redis.exceptions.OutOfMemoryError):
        return StorageFullError(f"Redis is out of memory: {error}. Raise maxmemory, or shorten retention_days.")
    if isinstance(error, redis.exceptions.ResponseError) and not isinstance(error, redis.exceptions.ReadOnlyError):
        return StorageError(f"Redis: {error}.")
    return StorageUnavailableError(f"Redis cannot be used: {error}.")
