"""`Store` on PostgreSQL. A transaction works on one snapshot (REPEATABLE READ), and PostgreSQL undoes one of two that
write the same row; it is then done again. That alone would let two through that read the same session and write
different rows of it. So every transaction that writes anything of a session also moves the session's turnstile, one row
(see `PostgresTx._enter`): of two in the same session one is done again, in different sessions neither notices.

Who has lost a few times takes a lock that all such losers take, so that these at least no longer undo one another.
"""

import hashlib
import time
from collections.abc import Callable
from secrets import token_hex
from typing import Final, TypeVar

import psycopg

from holdfast.core.errors import StorageUnavailable
from holdfast.core.ids import NodeId
from holdfast.ports import Tx
from holdfast.storage.postgres import errors, schema
from holdfast.storage.postgres.lanes import Lanes
from holdfast.storage.postgres.link import Place, TimedConnection
from holdfast.storage.postgres.tx import PostgresTx

T = TypeVar("T")

_WRITE: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ"
_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_TRIES: Final = 60
_PATIENT_AFTER: Final = 4
_MAYBE_TRIES: Final = 3
_QUEUE: Final = "SELECT pg_advisory_lock(hashtext('holdfast losers'))"
_LEAVE: Final = "SELECT pg_advisory_unlock(hashtext('holdfast losers'))"


class PostgresStore:
    def __init__(self, place: Place, *, connections: int = 6) -> None:
        """Make or upgrade the schema. Blocks; a StorageError says what is wrong, and then nothing is left open."""
        schema.prepare(place, schema.STORE)
        self._generation = ""
        self._lanes = Lanes("store", place, connections, self._greet)
        with place.connect() as db:
            self._greet(db)
        self.conflicts = 0
        """Transactions that had to be done again."""

    @property
    def generation(self) -> str:
        return self._generation

    @property
    def incarnation(self) -> NodeId | None:
        return None

    def free_bytes(self) -> int | None:
        return None

    async def transact(self, work: Callable[[Tx], T]) -> T:
        return await self._lanes.run(lambda db: self._persist(db, work))

    async def read(self, work: Callable[[Tx], T]) -> T:
        return await self._lanes.run(lambda db: _attempt(db, work, _READ))

    async def close(self) -> None:
        await self._lanes.close()

    def _greet(self, db: TimedConnection) -> None:
        """The generation is of this history of this server: a dump that was restored elsewhere, and a server that was
        taken back in time or replaced by its standby, number transactions anew. Whatever it was, it cost us the
        connection."""
        try:
            db.execute("INSERT INTO meta VALUES ('generation', %s) ON CONFLICT DO NOTHING", (token_hex(6),))
            row = db.execute(
                "SELECT value, (SELECT system_identifier FROM pg_control_system()), "
                "(SELECT timeline_id FROM pg_control_checkpoint()) FROM meta WHERE key = 'generation'"
            ).fetchone()
        except psycopg.Error as error:
            raise errors.from_postgres(error) from error
        self._generation = hashlib.sha256(repr(row).encode()).hexdigest()[:12]

    def _persist(self, db: TimedConnection, work: Callable[[Tx], T]) -> T:
        for attempt in range(_TRIES):
            patient = attempt >= _PATIENT_AFTER
            try:
                if patient:
                    db.execute(_QUEUE)
                return _attempt(db, work, _WRITE)
            except errors.CONFLICTS:
                self.conflicts += 1
            except errors.MAYBE:
                if attempt >= _MAYBE_TRIES:
                    raise
            finally:
                if patient and not db.closed:
                    db.execute(_LEAVE)
            time.sleep(min(0.001 * attempt, 0.02))
        raise StorageUnavailable("PostgreSQL: too many others change the same rows. Try again in a moment.")


def _attempt(db: TimedConnection, work: Callable[[Tx], T], begin: str) -> T:
    try:
        with db.pipeline():
            db.execute(begin.encode(), prepare=False)
            value = work(PostgresTx(db, writes=begin is _WRITE))
            db.execute("COMMIT", prepare=False)
    except BaseException:
        if not db.closed:
            try:
                # Not a ROLLBACK of our own: this one also forgets the statements that psycopg believes to have prepared
                # behind the one that failed. Where there is nothing to undo, none stood behind it.
                db.rollback()
            except psycopg.Error:
                db.close()
        raise
    return value
