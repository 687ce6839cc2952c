"""Redis 7 or newer, or Valkey, as a journal for high rates: streams with explicit ids. Read journal.py first.

The durability of a commit is the server's `appendfsync`: `always` is what every other adapter guarantees; with
`everysec` a crash of the machine may lose the last second. `health_check.py` reports the server's setting.
"""

from holdfast.storage.redis.connection import RedisConfig
from holdfast.storage.redis.journal import RedisJournal
from holdfast.storage.redis.wakeups import RedisWakeups

__all__ = ["RedisConfig", "RedisJournal", "RedisWakeups"]
