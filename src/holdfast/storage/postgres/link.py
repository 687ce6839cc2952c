"""A connection as the adapters want it: limited in time, and with texts that PostgreSQL cannot hold by itself."""

import contextlib
from typing import Any, Final, TypeVar

import psycopg
from psycopg.abc import Buffer, PQGen
from psycopg.adapt import Loader
from psycopg.types.string import StrDumper

from holdfast.core.errors import StorageUnavailable
from holdfast.core.values import dataclass
from holdfast.storage.postgres import errors

R = TypeVar("R")

_OLDEST: Final = 150_000
_TEXT_OID: Final = 25
_MARK, _NUL, _SELF = "\x1a", "\x1a0", "\x1a1"


class Text(StrDumper):
    """PostgreSQL's texts hold no NUL: it is written as two characters, and so is the one that begins those. Lone
    surrogates, which UTF-8 cannot carry, become question marks, as in a journal's frames."""

    def dump(self, obj: str) -> Buffer | None:
        if "\x00" in obj or _MARK in obj:
            obj = obj.replace(_MARK, _SELF).replace("\x00", _NUL)
        return obj.encode("utf-8", "replace")


class LoadedText(Loader):
    def load(self, data: Buffer) -> str:
        text = str(data, "utf-8")
        return text.replace(_NUL, "\x00").replace(_SELF, _MARK) if _MARK in text else text


class TimedConnection(psycopg.Connection[Any]):
    """Waits for no answer longer than its limit: a network that swallows everything looks like a slow server."""

    answer_within: float = 10.0

    def wait(self, gen: PQGen[R], interval: float = 0.1, timeout: float | None = None) -> R:
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.answer_within)
        except psycopg.errors._WaitTimeout:
            self.pgconn.finish()  # whatever it was doing is in doubt, and nobody else may wait for it
            raise psycopg.OperationalError(f"no answer within {self.answer_within:g} seconds") from None


@dataclass(frozen=True, slots=True)
class Place:
    """Where PostgreSQL is, and how a node presents itself there."""

    url: str
    schema: str = "holdfast"
    name: str = "holdfast"
    answer_within: float = 10.0

    def connect(self) -> TimedConnection:
        """Raises StorageUnavailable. A commit that is answered is on disk, whatever the server's default says."""
        try:
            db = TimedConnection.connect(
                self.url,
                autocommit=True,
                connect_timeout=5,
                application_name=self.name,
                keepalives_idle=5,
                keepalives_interval=2,
                keepalives_count=3,
                tcp_user_timeout=int(self.answer_within * 1000),
            )
            db.answer_within = self.answer_within
            try:
                self._set_up(db)
            except BaseException:
                db.close()
                raise
        except psycopg.Error as error:
            raise errors.from_postgres(error) from error
        return db

    def _set_up(self, db: TimedConnection) -> None:
        if db.info.server_version < _OLDEST:
            found = db.info.parameter_status("server_version")
            raise StorageUnavailable(f"PostgreSQL 15 or newer is needed; this one is {found}.")
        db.adapters.register_dumper(str, Text)
        db.adapters.register_loader(_TEXT_OID, LoadedText)
        limit = int(self.answer_within * 1000)
        # A transaction that was begun and left (its node stands still) must not hold up the others for ever. Everything
        # asked here has an index; a plan that was made while a table was small must not scan it when it has grown.
        db.execute(
            f"SET search_path = {self.schema}; SET client_encoding = 'UTF8'; SET synchronous_commit = on; "
            f"SET statement_timeout = {limit}; SET idle_in_transaction_session_timeout = {limit}; "
            f"SET lock_timeout = {limit // 2}; SET enable_seqscan = off; SET jit = off"
        )


def let_go(db: TimedConnection | None) -> None:
    if db is not None:
        with contextlib.suppress(psycopg.Error):
            db.close()
