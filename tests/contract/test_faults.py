"""The faults do what their plan says: a fault that never strikes would make every simulation pass."""

from collections.abc import Collection
from dataclasses import replace

import anyio
import pytest

from holdfast.core.errors import StorageError, StorageUnavailableError
from holdfast.core.ids import NodeId
from holdfast.ports.journal import JournalHead
from holdfast.ports.store import Tx
from holdfast.ports.wakeups import Wake
from holdfast.storage.in_memory import InMemoryJournal, InMemoryStore, InMemoryWakeups
from holdfast.testing import FakeClock, Fault, FaultyJournal, FaultyStore, FaultyWakeups, Plan
from holdfast.testing.contracts.samples import GUARD, RID, SID, adding, session

pytestmark = pytest.mark.anyio

NODE = NodeId("node_1")


async def heads(journal: FaultyJournal) -> JournalHead:
    return (await journal.inner.heads([RID]))[RID]


async def test_only_the_named_calls_fail() -> None:
    """The nth call of an operation has its fault; calls before and after it go through. A doubtful call has been done,
    and its error is not that of an absent storage."""
    plan: Plan = {
        ("append", 2): Fault("refuse"),
        ("append", 3): Fault("doubt"),
        ("append", 4): Fault("stall"),
        ("fence", 1): Fault("doubt"),
        ("read", 1): Fault("refuse"),
    }
    journal = FaultyJournal(InMemoryJournal(), plan)
    await journal.append([adding(RID, 1, "a")])
    with pytest.raises(StorageUnavailableError):
        await journal.append([adding(RID, 2, "b")])
    assert (await heads(journal)).last_seq == 1
    with pytest.raises(StorageError) as caught:
        await journal.append([adding(RID, 2, "b")])
    assert not isinstance(caught.value, StorageUnavailableError)
    with pytest.raises(StorageError):
        await journal.fence({RID: 4})
    assert await heads(journal) == JournalHead(epoch=4, last_seq=2)
    assert await journal.append([adding(RID, 3, "c", epoch=4)]) == [None]
    with pytest.raises(StorageUnavailableError):
        await journal.read(RID)
    assert [found.seq for found in await journal.read(RID)] == [1, 2, 3]


@pytest.mark.parametrize(("kind", "done"), [("stall", False), ("stall_after", True)])
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_a_stalled_call_outlasts_its_caller(kind: str, done: bool) -> None:
    """A caller that gives up during a stall finds the call not done or done, as planned."""
    fault = Fault("stall" if kind == "stall" else "stall_after", seconds=3600.0)
    journal = FaultyJournal(InMemoryJournal(), {("append", 1): fault})
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(journal.append, [adding(RID, 1, "a")])
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
    assert (await heads(journal)).last_seq == int(done)


async def test_a_journal_that_is_away_answers_nothing_and_comes_back_whole() -> None:
    """While `away` is set every call raises StorageUnavailableError, and the plan's count stands still."""
    journal = FaultyJournal(InMemoryJournal(), {("append", 2): Fault("refuse")})
    await journal.append([adding(RID, 1, "a")])
    journal.away = True
    for call in (lambda: journal.append([adding(RID, 2, "b")]), lambda: journal.fence({RID: 9}), journal.reopen):
        with pytest.raises(StorageUnavailableError):
            await call()
    journal.away = False
    assert await heads(journal) == JournalHead(epoch=1, last_seq=1)
    with pytest.raises(StorageUnavailableError):
        await journal.append([adding(RID, 2, "b")])


async def test_store_faults_leave_nothing_or_all() -> None:
    """A refused transaction has not happened, a doubtful one has, and a read can be refused by itself. `free` overrides
    what the store says of its room."""
    plan: Plan = {("transact", 1): Fault("refuse"), ("transact", 2): Fault("doubt"), ("read", 2): Fault("refuse")}
    store = FaultyStore(InMemoryStore(FakeClock()), plan)
    assert store.free_bytes() is None
    store.free = 0
    assert store.free_bytes() == 0
    with pytest.raises(StorageUnavailableError):
        await store.transact(lambda tx: tx.put_session(session()))
    assert await store.read(lambda tx: tx.session(SID)) is None
    with pytest.raises(StorageError):
        await store.transact(lambda tx: tx.put_session(session()))
    with pytest.raises(StorageUnavailableError):
        await store.read(lambda tx: tx.session(SID))
    assert await store.read(lambda tx: tx.session(SID)) == session()


async def test_a_conflict_runs_the_work_twice_and_keeps_it_once() -> None:
    """The first attempt leaves nothing in the store; the caller gets the second one's value."""
    store = FaultyStore(InMemoryStore(FakeClock()), {("transact", 2): Fault("conflict")})
    await store.transact(lambda tx: tx.put_session(session(version=1)))
    attempts = 0

    def increment(tx: Tx) -> int:
        nonlocal attempts
        attempts += 1
        found = tx.session(SID)
        assert found is not None
        tx.put_session(replace(found, version=found.version + 1))
        return attempts

    assert await store.transact(increment) == 2
    assert await store.read(lambda tx: tx.session(SID)) == session(version=2)


class Notified(InMemoryWakeups):
    """Remembers every notification that got through."""

    def __init__(self) -> None:
        super().__init__()
        self.wakes: list[Wake] = []

    async def notify(self, node: NodeId, wakes: Collection[Wake]) -> None:
        self.wakes += wakes
        await super().notify(node, wakes)


async def test_wakes_are_lost_and_doubled_as_planned() -> None:
    """A lost notification reaches nobody, a doubled one comes twice, and a deaf time loses all."""
    inner = Notified()
    wakeups = FaultyWakeups(inner, {1: "lost", 2: "doubled"})
    lost, doubled, unheard, heard = Wake("queue"), Wake("control", RID), Wake("appended", RID), Wake("changed")
    async with wakeups.listen(NodeId("another")) as listener:
        await wakeups.notify(NODE, [lost])
        await wakeups.notify(NODE, [doubled])
        wakeups.deaf = True
        await wakeups.notify(NODE, [unheard])
        wakeups.deaf = False
        await wakeups.notify(NODE, [heard])
        with anyio.fail_after(GUARD):
            assert set(await listener.next()) == {doubled, heard}
    assert inner.wakes == [doubled, doubled, heard]
