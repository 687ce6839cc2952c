"""The keyring of a cluster: one row, so that every node knows the same password, logins and tokens.

A server keeps a copy in memory, made anew when somebody says that it has changed and every few seconds anyway: who
comes in is asked at each call, and that must not wait for PostgreSQL. While that is away, the copy counts.
"""

import json
import logging
import secrets
from collections.abc import Callable
from threading import Event, Thread
from typing import Final

import psycopg

from holdfast.core.errors import StorageError
from holdfast.ports import Keyring
from holdfast.storage.keys import keyring_from_json, keyring_to_json
from holdfast.storage.postgres import errors, schema
from holdfast.storage.postgres.link import Place, TimedConnection, let_go

log = logging.getLogger("holdfast.storage")

_CHANNEL: Final = "holdfast_keys"
_EVERY: Final = 5.0
_LOOK: Final = 0.2


class PostgresKeys:
    def __init__(self, place: Place) -> None:
        self._place = place
        self._known: Keyring | None = None
        self._closing = Event()
        self._watch: Thread | None = None

    def keep_watch(self) -> None:
        """From now on `read` answers from memory. To be closed."""
        self._known = self.change(lambda ring: ring)  # there is one from now on, and the same for all
        self._watch = Thread(target=self._follow, name="keys", daemon=True)
        self._watch.start()

    def read(self) -> Keyring:
        if self._watch is not None and self._known is not None:
            return self._known
        try:
            with self._place.connect() as db:
                return _read(db) or Keyring(secrets.token_hex(32))
        except psycopg.errors.UndefinedTable:
            return Keyring(secrets.token_hex(32))  # there is nothing yet, and looking makes nothing
        except psycopg.Error as error:
            raise errors.from_postgres(error) from error

    def change(self, work: Callable[[Keyring], Keyring]) -> Keyring:
        schema.prepare(self._place, schema.STORE)
        try:
            with self._place.connect() as db:
                after = _change(db, work)
        except psycopg.Error as error:
            raise errors.from_postgres(error) from error
        self._known = after
        return after

    def close(self) -> None:
        self._closing.set()
        if self._watch is not None:
            self._watch.join()

    def _follow(self) -> None:
        while not self._closing.is_set():
            db: TimedConnection | None = None
            try:
                db = self._place.connect()
                db.execute(f"LISTEN {_CHANNEL}")
                while not self._closing.is_set():
                    self._known = _read(db) or self._known
                    self._wait(db)
            except (psycopg.Error, StorageError):
                log.info("the keyring cannot be read just now; the last one counts", exc_info=True)
                self._closing.wait(1.0)
            finally:
                let_go(db)

    def _wait(self, db: TimedConnection) -> None:
        for _ in range(int(_EVERY / _LOOK)):
            if self._closing.is_set() or list(db.notifies(timeout=_LOOK, stop_after=1)):
                return


def _read(db: TimedConnection) -> Keyring | None:
    row = db.execute("SELECT value FROM meta WHERE key = 'keyring'").fetchone()
    return None if row is None else keyring_from_json(json.loads(row[0]))


def _change(db: TimedConnection, work: Callable[[Keyring], Keyring]) -> Keyring:
    fresh = json.dumps(keyring_to_json(Keyring(secrets.token_hex(32))))
    with db.transaction():
        db.execute("INSERT INTO meta VALUES ('keyring', %s) ON CONFLICT DO NOTHING", (fresh,))
        row = db.execute("SELECT value FROM meta WHERE key = 'keyring' FOR UPDATE").fetchone()
        assert row is not None
        before = keyring_from_json(json.loads(row[0]))
        after = work(before)
        if after != before:
            db.execute("UPDATE meta SET value = %s WHERE key = 'keyring'", (json.dumps(keyring_to_json(after)),))
            db.execute(f"NOTIFY {_CHANNEL}")
    return after
