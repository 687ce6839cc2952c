"""Redis 7 or newer, or Valkey, as a journal for high rates: streams with explicit ids. Read journal.py first.

What a commit is worth is the server's `appendfsync`: `always` is what every other adapter promises; with `everysec` a
crash of the machine may take the last second of what was shown. `checkup.py` says what this server is set to.
"""

from holdfast.storage.redis.journal import RedisJournal
from holdfast.storage.redis.link import RedisPlace
from holdfast.storage.redis.wakeups import RedisWakeups

__all__ = ["RedisJournal", "RedisPlace", "RedisWakeups"]
