"""Sums of usage over a long history: what they read depends on their period alone."""

from typing import get_args

import pytest

from holdfast.core.events import Usage
from holdfast.core.ids import LOCAL, SessionId
from holdfast.ports.store import UsageGrouping, UsageQuery
from holdfast.storage.in_memory import InMemoryStore
from holdfast.storage.sql.tables import RUNS
from holdfast.testing.contracts import samples as s
from holdfast.testing.fakes import FakeClock

pytestmark = pytest.mark.anyio

RUN_COUNT = 50_000  # Of a chat history with 100,000 messages
_MINUTE = 60.0


async def test_sums_of_a_period_do_not_read_the_rest_of_the_history() -> None:
    """A budget of a day is checked with every message, so it must not slow down with the years."""
    store = InMemoryStore(FakeClock())
    await s.put(store, s.session(project="garden"))
    run = s.run(model="m", status="complete", usage=Usage(900, 100), settings={"note": "x" * 200})
    row = dict(zip(RUNS.names, RUNS.encode(run), strict=True))
    rows = [tuple({**row, "id": f"run_{n}", "ended_at": n * _MINUTE}.values()) for n in range(RUN_COUNT)]
    store._db.executemany(f"INSERT INTO runs ({RUNS.columns}) VALUES ({RUNS.placeholders})", rows)
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    store._db.set_progress_handler(count, 1000)
    last_hour = UsageQuery(LOCAL, (RUN_COUNT - 60) * _MINUTE, RUN_COUNT * _MINUTE, "project")
    (found,) = await store.read(lambda tx: tx.usage(last_hour))
    assert (found.key, found.runs, found.input_tokens) == ("garden", 60, 60 * 900)
    assert steps < 20
    for by in get_args(UsageGrouping):
        every = UsageQuery(LOCAL, 0.0, 1e12, by)
        sums = await store.read(lambda tx, every=every: tx.usage(every))  # type: ignore[misc]
        assert sum(each.runs for each in sums) == RUN_COUNT


async def test_sums_read_no_rows_of_runs() -> None:
    """Only an index, which has no settings: those of a run may be long, and lie before what it used."""
    store = InMemoryStore(FakeClock())
    for by in get_args(UsageGrouping):
        statements: list[str] = []
        store._db.set_trace_callback(statements.append)
        await store.read(lambda tx, by=by: tx.usage(UsageQuery(LOCAL, 0.0, 1e12, by)))  # type: ignore[misc]
        store._db.set_trace_callback(None)
        (sums,) = [each for each in statements if " runs " in each]
        plan = [step for *_, step in store._db.execute(f"EXPLAIN QUERY PLAN {sums}") if " runs " in step]
        assert plan == ["SEARCH runs USING COVERING INDEX runs_used (owner=? AND ended_at>? AND ended_at<?)"]


async def test_sums_of_a_session_read_its_runs_alone() -> None:
    """The usage of a chat is shown with every answer, so it must not slow down with the number of chats."""
    store = InMemoryStore(FakeClock())
    statements: list[str] = []
    store._db.set_trace_callback(statements.append)
    await store.read(lambda tx: tx.usage(UsageQuery(LOCAL, 0.0, 1e12, session_id=SessionId("ses_1"))))
    store._db.set_trace_callback(None)
    (sums,) = [each for each in statements if " runs " in each]
    plan = [step for *_, step in store._db.execute(f"EXPLAIN QUERY PLAN {sums}") if " runs " in step]
    assert plan == ["SEARCH runs USING INDEX runs_of_session (session_id=?)"]


async def test_erased_runs_take_a_row_per_quarter_of_an_hour_and_not_one_each() -> None:
    """A client that stores nothing has each of its runs erased. Forgetting old ones reads nothing else."""
    store = InMemoryStore(FakeClock())
    runs = [
        s.run(f"run_{n}", model="m", usage=Usage(1, 0, cost), ended_at=10.0 * n)
        for cost in (None, 0.5)
        for n in range(180)
    ]
    for run in runs:
        await s.put(store, run)
        await store.transact(lambda tx, run=run: tx.drop_run(run.id))  # type: ignore[misc]
    count = "SELECT count(*), sum(runs) FROM erased_usage"
    assert store._db.execute(count).fetchone() == (4, 360)  # half an hour, with and without a cost
    plan = [step for *_, step in store._db.execute("EXPLAIN QUERY PLAN DELETE FROM erased_usage WHERE ended_at < 1")]
    assert plan == ["SEARCH erased_usage USING PRIMARY KEY (ended_at<?)"]
    await store.transact(lambda tx: tx.trim_erased_usage(900.0))
    assert store._db.execute(count).fetchone() == (2, 180)
