"""The keyring of a cluster: one row, so that every node has the same password, logins and tokens.

A server keeps a copy in memory, because every request is authenticated and must not wait for PostgreSQL. The copy is
refreshed at every notification of a change and every few seconds; while PostgreSQL is unavailable it stays valid.
"""

import json
import logging
import secrets
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from threading import Event, Thread
from typing import Final, LiteralString

import psycopg

from holdfast.ports.keyring import Keyring
from holdfast.storage.key_file import keyring_from_json
from holdfast.storage.postgres import database_upgrade, schema
from holdfast.storage.postgres.connection import PostgresConfig, TimedConnection, translated

log = logging.getLogger("holdfast.storage")

_CHANNEL: Final = "holdfast_keys"
_REFRESH: Final = 5.0
_POLL: Final = 0.2


class PostgresKeys:
    lag = 1.0

    def __init__(self, config: PostgresConfig) -> None:
        self._config = config
        self._cached: Keyring | None = None
        self._closing = Event()
        self._thread: Thread | None = None

    def start_following(self) -> None:
        """Answer `read` from memory from now on, until `close`."""
        self._cached = self.change(lambda ring: ring)  # created now if necessary, the same for all nodes
        self._thread = Thread(target=self._follow, name="keys", daemon=True)
        self._thread.start()

    def read(self) -> Keyring:
        if self._thread is not None and self._cached is not None:
            return self._cached
        with translated(), self._config.connect() as db:
            try:
                return _read(db) or Keyring(secrets.token_hex(32))
            except psycopg.errors.UndefinedTable:
                return Keyring(secrets.token_hex(32))  # reading creates nothing

    def change(self, work: Callable[[Keyring], Keyring]) -> Keyring:
        database_upgrade.create_or_upgrade(self._config, schema.STORE)
        with translated(), self._config.connect() as db:
            self._cached = after = _change(db, work)
        return after

    def close(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join()

    def _follow(self) -> None:
        failing = False
        while not self._closing.is_set():
            try:
                with closing(self._config.connect()) as db:
                    db.execute(f"LISTEN {_CHANNEL}")
                    while not self._closing.is_set():
                        self._cached = _read(db) or self._cached
                        failing = False
                        self._wait(db)
            except Exception:  # the thread must not end: a revoked token would stay valid here
                if not failing:
                    log.warning("the keyring cannot be read; the cached copy stays in use", exc_info=True)
                failing = True
                self._closing.wait(1.0)

    def _wait(self, db: TimedConnection) -> None:
        for _ in range(int(_REFRESH / _POLL)):
            if self._closing.is_set() or list(db.notifies(timeout=_POLL, stop_after=1)):
                return


def _read(db: TimedConnection, lock: LiteralString = "") -> Keyring | None:
    row = db.execute(f"SELECT value FROM meta WHERE key = 'keyring' {lock}").fetchone()
    return None if row is None else keyring_from_json(json.loads(row[0]))


def _change(db: TimedConnection, work: Callable[[Keyring], Keyring]) -> Keyring:
    fresh = json.dumps(asdict(Keyring(secrets.token_hex(32))))
    with db.transaction():
        db.execute("INSERT INTO meta VALUES ('keyring', %s) ON CONFLICT DO NOTHING", (fresh,))
        before = _read(db, "FOR UPDATE")
        assert before is not None
        after = work(before)
        if after != before:
            db.execute("UPDATE meta SET value = %s WHERE key = 'keyring'", (json.dumps(asdict(after)),))
            db.execute(f"NOTIFY {_CHANNEL}")
    return after
