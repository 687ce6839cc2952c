"""`Store` on PostgreSQL.

A transaction works on one snapshot (REPEATABLE READ), and PostgreSQL aborts one of two that write the same row; it is
retried. That alone would allow write skew: two read the same session and write different rows of it. So every
transaction that writes in a session also writes the session's row in `turnstiles` (`PostgresDialect.enter_session`): of
two in the same session one is retried, and two in different sessions never conflict.

A transaction that loses several times takes an advisory lock that all such losers share, so that they no longer abort
one another.

The server limits every wait for the client but one: between two messages of a transaction, before the Sync message that
ends them. psycopg sends each statement by itself, so a node that stands still or is cut off at that moment would keep
its locks, and nobody could claim its runs. The other nodes look for such transactions and end them.
"""

import hashlib
import time
from collections.abc import Callable
from secrets import token_hex
from typing import Final, TypeVar

import psycopg

from holdfast.core.errors import StorageUnavailableError
from holdfast.core.ids import NodeId
from holdfast.ports.store import Tx
from holdfast.storage.postgres import database_upgrade, schema
from holdfast.storage.postgres.connection import CONFLICTS, TRANSIENT, PostgresConfig, TimedConnection
from holdfast.storage.postgres.dialect import PostgresDialect
from holdfast.storage.sql.tx import SqlTx

T = TypeVar("T")

_ATTEMPTS: Final = 60
_ATTEMPTS_WITHOUT_LOCK: Final = 4
_ATTEMPTS_IF_TRANSIENT: Final = 3
_LOCK: Final = "SELECT set_config('idle_session_timeout', %s, false), pg_advisory_lock(hashtext('holdfast losers'))"
"""With a timeout of its own: it is held outside the transaction too, and a node that stands still must not keep it."""
_UNLOCK: Final = (
    "SELECT pg_advisory_unlock(hashtext('holdfast losers')), set_config('idle_session_timeout', '0', false)"
)
_END_STALLED: Final = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND application_name LIKE 'holdfast%%'
    AND state = 'active' AND wait_event = 'ClientRead' AND xact_start IS NOT NULL
    AND state_change < clock_timestamp() - make_interval(secs => %s)
"""


class PostgresStore:
    def __init__(self, config: PostgresConfig, *, connections: int = 6) -> None:
        """Create or upgrade the schema. Blocks; a StorageError says what is wrong, and then nothing is left open."""
        database_upgrade.create_or_upgrade(config, schema.STORE)
        self.generation = ""
        self.incarnation: NodeId | None = None
        self._idle_timeout = str(int(config.answer_within * 1000))
        self._stall_limit = config.answer_within
        self._next_stall_check = 0.0
        self._pool = config.pool("store", connections, self._read_generation)
        config.connect(self._read_generation).close()
        self.conflicts = 0  # The number of retried transactions

    def free_bytes(self) -> int | None:
        return None

    async def reusable_bytes(self) -> int:
        return 0

    async def transact(self, work: Callable[[Tx], T]) -> T:
        return await self._pool.run(lambda db: self._transact(db, work))

    async def read(self, work: Callable[[Tx], T]) -> T:
        return await self._pool.run(lambda db: self._read(db, work))

    async def close(self) -> None:
        await self._pool.close()

    def _read_generation(self, db: TimedConnection) -> None:
        """A generation belongs to one history of one server: a restored dump, a server restored to an earlier time and
        a promoted standby all restart the numbers of transactions. Each of these breaks the connections, so every new
        connection reads it."""
        db.execute("INSERT INTO meta VALUES ('generation', %s) ON CONFLICT DO NOTHING", (token_hex(6),))
        row = db.execute(
            "SELECT value, (SELECT system_identifier FROM pg_control_system()), "
            "(SELECT timeline_id FROM pg_control_checkpoint()) FROM meta WHERE key = 'generation'"
        ).fetchone()
        self.generation = hashlib.sha256(repr(row).encode()).hexdigest()[:12]

    def _end_stalled_transactions(self, db: TimedConnection) -> None:
        if time.monotonic() >= self._next_stall_check:
            self._next_stall_check = time.monotonic() + self._stall_limit
            db.execute(_END_STALLED, (self._stall_limit,))

    def _read(self, db: TimedConnection, work: Callable[[Tx], T]) -> T:
        self._end_stalled_transactions(db)
        return _attempt(db, work, writes=False)

    def _transact(self, db: TimedConnection, work: Callable[[Tx], T]) -> T:
        self._end_stalled_transactions(db)
        for attempt in range(_ATTEMPTS):
            locks = attempt >= _ATTEMPTS_WITHOUT_LOCK
            try:
                if locks:
                    db.execute(_LOCK, (self._idle_timeout,))
                return _attempt(db, work, writes=True)
            except CONFLICTS:
                self.conflicts += 1
            except TRANSIENT:
                if attempt >= _ATTEMPTS_IF_TRANSIENT:
                    raise
            finally:
                if locks and not db.closed:
                    db.execute(_UNLOCK)
            time.sleep(min(0.001 * attempt, 0.02))
        raise StorageUnavailableError("PostgreSQL: too many transactions change the same rows. Try again in a moment.")


def _attempt(db: TimedConnection, work: Callable[[Tx], T], *, writes: bool) -> T:
    try:
        with db.pipeline() as pipeline:
            dialect = PostgresDialect(db, pipeline, writes=writes)
            value = work(SqlTx(dialect))
            dialect.commit()
    except BaseException:
        if not db.closed:
            try:
                # Not a ROLLBACK statement: this method also clears psycopg's list of prepared statements, which may
                # contain some that the server skipped after the failed one.
                db.rollback()
            except psycopg.Error:
                db.close()
        raise
    return value
