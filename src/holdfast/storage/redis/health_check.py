"""Checks of the Redis server for `doctor` and the start-up log: version, durability, eviction. Nothing is changed."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import redis

from holdfast.ports.health_check import CheckResult
from holdfast.storage.redis.connection import RedisConfig, from_redis

_GUARANTEES: Final[Mapping[str, str]] = {
    "always": "every event is on disk before it is shown",
    "everysec": "a crash of the machine may lose the last second or two of output; set it to always",
    "no": "a crash of the machine may lose half a minute of output; set it to always",
}
_OLDEST_VERSION: Final = 7


def examine(config: RedisConfig) -> Sequence[CheckResult]:
    try:
        with config.connect() as db:
            return list(_check(db))
    except redis.RedisError as error:
        return [CheckResult("journal", False, str(from_redis(error)))]


def _check(db: redis.Redis) -> Iterator[CheckResult]:
    began = time.perf_counter()
    db.ping()
    took = (time.perf_counter() - began) * 1000
    info: Any = db.info()
    version = str(info.get("redis_version", "0"))
    new_enough = int(version.partition(".")[0]) >= _OLDEST_VERSION
    text = "" if new_enough else f"; {_OLDEST_VERSION} or newer is required"
    yield CheckResult("journal", new_enough, f"Redis {version}, responds in {took:.1f} ms{text}")
    try:
        found: Any = db.config_get("appendonly", "appendfsync", "maxmemory-policy")
    except redis.RedisError:
        yield CheckResult("journal: appendfsync", False, "unknown: this user has no permission for CONFIG GET")
        return
    settings = {_text(name): _text(value) for name, value in found.items()}
    how, appends = settings.get("appendfsync", "no"), settings.get("appendonly") == "yes"
    text = f"{how}: {_GUARANTEES.get(how, 'unknown')}"
    if not appends:
        text = "appendonly is off: a restart loses the output since the last snapshot; set it to yes"
    yield CheckResult("journal: appendfsync", appends and how == "always", text)
    policy = settings.get("maxmemory-policy", "")
    kept = policy == "noeviction"
    advice = "" if kept else ": Redis may evict journals when memory is short; set it to noeviction"
    yield CheckResult("journal: maxmemory-policy", kept, policy + advice)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
