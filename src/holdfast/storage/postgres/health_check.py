"""Checks of the PostgreSQL server for `doctor` and the start-up log. Nothing is changed."""

import time
from collections.abc import Callable, Iterator, Sequence

import psycopg

from holdfast.core.errors import HoldfastError
from holdfast.ports.health_check import CheckResult
from holdfast.storage.postgres import schema
from holdfast.storage.postgres.connection import PostgresConfig, TimedConnection


def examine(config: PostgresConfig, journal: PostgresConfig | None, now: Callable[[], float]) -> Sequence[CheckResult]:
    """Check the store, and the journal if it is on PostgreSQL too."""
    found: list[CheckResult] = []
    for name, each, newest in (("store", config, len(schema.STORE)), ("journal", journal, len(schema.JOURNAL))):
        if each is None:
            continue
        try:
            with each.connect() as db:
                found += [*_server(name, db, now), *_schema(name, db, each, newest)]
                if name == "store":
                    found += _contents(db)
        except (HoldfastError, psycopg.Error) as error:
            found.append(CheckResult(name, False, str(error)))
    return found


def _server(name: str, db: TimedConnection, now: Callable[[], float]) -> Iterator[CheckResult]:
    began = time.perf_counter()
    row = db.execute("SELECT extract(epoch FROM clock_timestamp())::double precision").fetchone()
    took = time.perf_counter() - began
    assert row is not None
    version = db.info.parameter_status("server_version")
    yield CheckResult(name, True, f"PostgreSQL {version} at {db.info.host}, responds in {took * 1000:.1f} ms")
    apart = row[0] - now()
    yield CheckResult(f"{name}: clock", abs(apart) < 60, f"{abs(apart):.1f} s {'ahead' if apart > 0 else 'behind'}")
    for setting in ("fsync", "full_page_writes"):
        value = _show(db, setting)
        text = "on" if value == "on" else "off: a crash of the server's machine may lose saved output; set it to on"
        yield CheckResult(f"{name}: {setting}", value == "on", text)
    standby = _show(db, "synchronous_standby_names")
    copies = f"commits are replicated to {standby}" if standby else "commits are on this server only"
    yield CheckResult(f"{name}: durability", True, f"every commit is flushed to disk before it is shown; {copies}")


def _schema(name: str, db: TimedConnection, config: PostgresConfig, newest: int) -> Iterator[CheckResult]:
    there = db.execute("SELECT to_regclass(%s)", (f"{config.schema}.version",)).fetchone()
    if there is None or there[0] is None:
        yield CheckResult(f"{name}: schema", True, f"{config.schema} does not exist yet; the first start creates it")
        return
    row = db.execute("SELECT n FROM version").fetchone()
    version = 0 if row is None else row[0]
    yield CheckResult(
        f"{name}: schema", version <= newest, f"{config.schema} has version {version}; this one supports {newest}"
    )


def _contents(db: TimedConnection) -> Iterator[CheckResult]:
    there = db.execute("SELECT to_regclass('sessions')").fetchone()
    if there is None or there[0] is None:
        return
    row = db.execute(
        "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM messages), (SELECT count(*) FROM runs), "
        "(SELECT count(*) FROM runs WHERE status IN ('queued', 'running', 'waiting')), "
        "(SELECT count(*) FROM runs WHERE recovery_state = 'pending')"
    ).fetchone()
    assert row is not None
    sessions, messages, runs, opened, pending = row
    yield CheckResult("contents", True, f"{sessions} sessions, {messages} messages, {runs} runs")
    yield CheckResult("open runs", True, str(opened))
    text = "none" if not pending else f"{pending} runs whose output is still being recovered"
    yield CheckResult("pending recoveries", not pending, text)


def _show(db: TimedConnection, setting: str) -> str:
    row = db.execute("SELECT current_setting(%s)", (setting,)).fetchone()
    return "" if row is None else str(row[0])
