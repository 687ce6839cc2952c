"""Transactions that wait at the same time are committed together, and fail alone."""

import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest

from holdfast.core.errors import NotFoundError, StorageError, StorageUnavailableError
from holdfast.core.ids import LOCAL, SessionId
from holdfast.core.session import Session
from holdfast.ports.store import Tx
from holdfast.storage.sqlite import DataDir, SqliteStore
from holdfast.testing import FakeClock

pytestmark = pytest.mark.anyio

GUARD = 20.0
Work = Callable[[Tx], object]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    data = DataDir.open(tmp_path / "data")
    made = SqliteStore(data, FakeClock())
    yield made
    await made.close()
    data.close()


def session(name: str) -> Session:
    return Session(SessionId(name), LOCAL, 1.0, 1.0)


async def together(store: SqliteStore, *works: Work) -> list[object]:
    """Run these while the writer is busy, so that they wait together; what each returned or raised."""
    begun, may_end = threading.Event(), threading.Event()
    outcomes: list[object] = [None] * len(works)

    def busy(tx: Tx) -> None:
        begun.set()
        may_end.wait(GUARD)

    async def run(at: int, work: Work) -> None:
        try:
            outcomes[at] = await store.transact(work)
        except Exception as error:  # noqa: BLE001 - the outcome under test
            outcomes[at] = error

    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.transact, busy)
            await anyio.to_thread.run_sync(begun.wait, GUARD)
            for at, work in enumerate(works):
                tasks.start_soon(run, at, work)
            await anyio.wait_all_tasks_blocked()
            may_end.set()
    return outcomes


async def names(store: SqliteStore) -> set[str]:
    wanted = [SessionId(name) for name in "abcd"]
    return await store.read(lambda tx: {sid for sid in wanted if tx.session(sid) is not None})


async def test_they_are_committed_at_once(store: SqliteStore, tmp_path: Path) -> None:
    """P1: while the last one runs, nothing of the first can be seen from outside, and then everything."""
    seen: list[int] = []

    def look(tx: Tx) -> None:
        tx.put_session(session("b"))
        with sqlite3.connect(tmp_path / "data" / "holdfast.db") as other:
            seen.append(other.execute("SELECT count(*) FROM sessions").fetchone()[0])
        other.close()

    await together(store, lambda tx: tx.put_session(session("a")), look)
    assert seen == [0]
    assert await names(store) == {"a", "b"}


async def test_one_that_fails_takes_nothing_with_it(store: SqliteStore) -> None:
    """P4: what it wrote is rolled back, and the others are committed; a later one sees what an earlier one wrote."""

    def fail(tx: Tx) -> None:
        tx.put_session(session("b"))
        raise NotFoundError("session", "b")

    found = await together(
        store,
        lambda tx: tx.put_session(session("a")),
        fail,
        lambda tx: (tx.session(SessionId("a")) is not None, tx.session(SessionId("b")) is None),
    )
    assert isinstance(found[1], NotFoundError)
    assert found[2] == (True, True)
    assert await names(store) == {"a"}


async def test_an_error_of_the_database_is_that_of_its_own_transaction(store: SqliteStore) -> None:
    """P4: each is tried by itself then: only the one that cannot be stored fails."""

    def break_rule(tx: Tx) -> None:
        raise sqlite3.IntegrityError("a rule of the schema")

    found = await together(
        store, lambda tx: tx.put_session(session("a")), break_rule, lambda tx: tx.put_session(session("b"))
    )
    assert isinstance(found[1], StorageError)
    assert not isinstance(found[1], StorageUnavailableError)
    assert await names(store) == {"a", "b"}


async def test_a_caller_that_leaves_disturbs_nobody(store: SqliteStore) -> None:
    """A1: the work of a cancelled caller is done with the others."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        with pytest.raises(anyio.get_cancelled_exc_class()):
            await store.transact(lambda tx: tx.put_session(session("a")))
    await store.transact(lambda tx: tx.put_session(session("b")))
    assert await names(store) == {"a", "b"}


async def test_more_than_one_commit_takes_are_all_done(store: SqliteStore) -> None:
    """A1: hundreds that wait together are each answered."""
    done: list[int] = []

    async def run(n: int) -> None:
        await store.transact(lambda tx: tx.put_session(session(f"s{n}")))
        done.append(n)

    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as tasks:
            for n in range(350):
                tasks.start_soon(run, n)
    assert sorted(done) == list(range(350))


async def test_a_closed_store_refuses(tmp_path: Path) -> None:
    """E3: nothing waits for a writer that is gone."""
    data = DataDir.open(tmp_path / "other")
    store = SqliteStore(data, FakeClock())
    await store.transact(lambda tx: tx.put_session(session("a")))
    await store.close()
    with pytest.raises(StorageUnavailableError), anyio.fail_after(GUARD):
        await store.transact(lambda tx: None)
    data.close()
