"""The in-process reference passes every suite on both event loops."""

from contextlib import nullcontext

import anyio
import pytest

from holdfast.core.ids import LOCAL, NodeId, RunId
from holdfast.core.session import Session
from holdfast.ports.store import Change, Tx
from holdfast.ports.wakeups import Wake
from holdfast.storage.in_memory import InMemoryJournal, InMemoryStore, InMemoryWakeups
from holdfast.testing import FakeClock
from holdfast.testing.contracts import (
    JournalContract,
    MakeJournal,
    MakeStore,
    MakeWakeups,
    StoreContract,
    WakeupsContract,
    opening,
)
from holdfast.testing.contracts.samples import GUARD, SID, session


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def make_store(self) -> MakeStore:
        store = InMemoryStore(FakeClock())
        return opening(lambda: store)


class TestMemoryJournal(JournalContract):
    @pytest.fixture
    def make_journal(self) -> MakeJournal:
        journal = InMemoryJournal()
        return opening(lambda: journal)


class TestMemoryWakeups(WakeupsContract):
    @pytest.fixture
    def make_wakeups(self) -> MakeWakeups:
        return lambda: nullcontext(InMemoryWakeups())


@pytest.mark.anyio
async def test_the_clock_is_the_one_that_was_given() -> None:
    """`Tx.now` follows the clock between transactions and stands still inside one."""
    clock = FakeClock(100.0)
    store = InMemoryStore(clock)
    assert await store.read(lambda tx: tx.now) == 100.0
    clock.advance(2.5)

    def work(tx: Tx) -> float:
        clock.set(7.0)
        return tx.now

    assert await store.transact(work) == 102.5
    assert await store.read(lambda tx: tx.now) == 7.0


@pytest.mark.anyio
async def test_another_incarnation_sees_the_same_data() -> None:
    """A restart in embedded mode is a view with another node over the same rows and generation."""
    first = InMemoryStore(FakeClock(), incarnation=NodeId("node_1"), generation="g")
    second = first.as_incarnation(NodeId("node_2"))
    await first.transact(lambda tx: tx.put_session(session()))
    await second.transact(lambda tx: tx.add_change(Change("session.changed", LOCAL, SID)))
    found: Session | None = await second.read(lambda tx: tx.session(SID))
    assert found == session()
    assert len(await first.read(lambda tx: tx.changes(0, 9))) == 1
    assert (first.incarnation, second.incarnation) == ("node_1", "node_2")
    assert first.generation == second.generation == "g"


@pytest.mark.anyio
async def test_pending_hints_are_bounded() -> None:
    """L6: a listener that never listens holds the newest hints up to the limit, and none that its own node gave, which
    acted on it before."""
    wakeups = InMemoryWakeups(limit=3)
    wakes = [Wake("appended", RunId(f"run_{n}")) for n in range(10)]
    async with wakeups.listen(NodeId("node_1")) as listener:
        for wake in wakes:
            await wakeups.notify(NodeId("node_2"), [wake])
        await wakeups.notify(NodeId("node_1"), [Wake("queue")])
        with anyio.fail_after(GUARD):
            assert set(await listener.next()) == set(wakes[7:])


@pytest.mark.anyio
async def test_a_listener_that_has_left_is_forgotten() -> None:
    """L6: nothing is gathered for a listener whose context has ended."""
    wakeups = InMemoryWakeups()
    async with wakeups.listen(NodeId("node_1")) as listener:
        pass
    await wakeups.notify(NodeId("node_2"), [Wake("queue")])
    heard: list[Wake] = []

    async def wait() -> None:
        heard.extend(await listener.next())

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert heard == []
