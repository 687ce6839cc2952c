"""What a journal on this Redis is worth: for `doctor` and the start-up log. Nothing is changed."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import redis

from holdfast.storage.redis.link import RedisPlace, from_redis
from holdfast.storage.seen import Seen

_PROMISES: Final[Mapping[str, str]] = {
    "always": "every event is on its disk before it is shown",
    "everysec": "a crash of its machine may take the last second or two of what was shown; set it to always",
    "no": "a crash of its machine may take half a minute of what was shown; set it to always",
}
_OLDEST: Final = 7


def examine(place: RedisPlace) -> Sequence[Seen]:
    try:
        with place.connect() as db:
            return list(_looks(db))
    except redis.RedisError as error:
        return [Seen("journal", False, str(from_redis(error)))]


def _looks(db: redis.Redis) -> Iterator[Seen]:
    began = time.perf_counter()
    db.ping()
    took = (time.perf_counter() - began) * 1000
    info: Any = db.info()
    version = str(info.get("redis_version", "0"))
    new_enough = int(version.partition(".")[0]) >= _OLDEST
    text = "" if new_enough else f"; {_OLDEST} or newer is needed"
    yield Seen("journal", new_enough, f"Redis {version}, answers in {took:.1f} ms{text}")
    try:
        found: Any = db.config_get("appendonly", "appendfsync", "maxmemory-policy")
    except redis.RedisError:
        yield Seen("journal: appendfsync", False, "this user may not look (CONFIG GET): it cannot be said what is kept")
        return
    settings = {_text(name): _text(value) for name, value in found.items()}
    yield _durability(settings)
    policy = settings.get("maxmemory-policy", "")
    kept = policy == "noeviction"
    advice = "" if kept else ": journals may be thrown away when memory is short; set it to noeviction"
    yield Seen("journal: maxmemory-policy", kept, policy + advice)


def _durability(settings: Mapping[str, str]) -> Seen:
    if settings.get("appendonly") != "yes":
        text = "appendonly is off: when Redis stops, what was shown since its last snapshot is gone; set it to yes"
        return Seen("journal: appendfsync", False, text)
    how = settings.get("appendfsync", "no")
    return Seen("journal: appendfsync", how == "always", f"{how}: {_PROMISES.get(how, 'unknown')}")


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
