"""A look at PostgreSQL from outside, for `doctor` and the start-up log. Nothing is changed."""

import time
from collections.abc import Callable, Iterator, Sequence

import psycopg

from holdfast.core.errors import HoldfastError
from holdfast.storage.postgres import schema
from holdfast.storage.postgres.link import Place, TimedConnection
from holdfast.storage.seen import Seen


def examine(place: Place, journal: Place | None, now: Callable[[], float]) -> Sequence[Seen]:
    """`journal`: where the journal is, if that is PostgreSQL too."""
    found: list[Seen] = []
    for name, each, newest in (("store", place, len(schema.STORE)), ("journal", journal, len(schema.JOURNAL))):
        if each is None:
            continue
        try:
            with each.connect() as db:
                found += [*_server(name, db, now), *_schema(name, db, each, newest)]
                if name == "store":
                    found += _contents(db)
        except (HoldfastError, psycopg.Error) as error:
            found.append(Seen(name, False, str(error)))
    return found


def _server(name: str, db: TimedConnection, now: Callable[[], float]) -> Iterator[Seen]:
    began = time.perf_counter()
    row = db.execute("SELECT extract(epoch FROM clock_timestamp())::double precision").fetchone()
    took = time.perf_counter() - began
    assert row is not None
    version = db.info.parameter_status("server_version")
    yield Seen(name, True, f"PostgreSQL {version} at {db.info.host}, answers in {took * 1000:.1f} ms")
    apart = row[0] - now()
    yield Seen(f"{name}: clock", abs(apart) < 60, f"{abs(apart):.1f} s {'ahead' if apart > 0 else 'behind'}")
    for setting in ("fsync", "full_page_writes"):
        value = _show(db, setting)
        text = "on" if value == "on" else "off: what was shown may be gone after a crash of that machine; set it to on"
        yield Seen(f"{name}: {setting}", value == "on", text)
    standby = _show(db, "synchronous_standby_names")
    copies = f"a commit is on {standby} too" if standby else "a commit is on that server alone"
    yield Seen(f"{name}: durability", True, f"every commit is flushed before it is shown; {copies}")


def _schema(name: str, db: TimedConnection, place: Place, newest: int) -> Iterator[Seen]:
    there = db.execute("SELECT to_regclass(%s)", (f"{place.schema}.version",)).fetchone()
    if there is None or there[0] is None:
        yield Seen(f"{name}: schema", True, f"{place.schema} is not there yet; the first start makes it")
        return
    row = db.execute("SELECT n FROM version").fetchone()
    version = 0 if row is None else row[0]
    yield Seen(f"{name}: schema", version <= newest, f"{place.schema} is of version {version}; this one knows {newest}")


def _contents(db: TimedConnection) -> Iterator[Seen]:
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
    yield Seen("contents", True, f"{sessions} sessions, {messages} messages, {runs} runs")
    yield Seen("open runs", True, str(opened))
    text = "none" if not pending else f"{pending} runs whose output is still being looked for"
    yield Seen("pending recoveries", not pending, text)


def _show(db: TimedConnection, setting: str) -> str:
    row = db.execute("SELECT current_setting(%s)", (setting,)).fetchone()
    return "" if row is None else str(row[0])
