"""The engine makes no needless storage calls: each one wakes a thread or crosses the network."""

from collections import Counter
from typing import Any

import anyio
import pytest

from holdfast.agents.scripted_agent import Meet, Say
from holdfast.core.errors import StorageError
from holdfast.core.parts import TextPart
from holdfast.core.run import Run
from holdfast.engine.notifications import PushChoices
from holdfast.testing import Fault
from tests.engine.push_services import RecordingPush
from tests.harness import World, running
from tests.memory_providers import ProviderTable, RecordingProvider
from tests.storage_interceptors import GUARD, Both, Hold, Tap, calls

pytestmark = pytest.mark.anyio

SLOW = 3600.0
"""Seconds between looks that nobody asked for: none happens in a test."""
STILL: dict[str, Any] = {"poll_interval": SLOW, "sweep_interval": SLOW}


async def calls_since(tap: Tap) -> Counter[str]:
    """Since the last time, when everybody is at rest."""
    await anyio.wait_all_tasks_blocked()
    found = Counter(tap.seen)
    tap.seen.clear()
    return found


async def test_a_new_session_is_one_transaction(memory: World) -> None:
    """There is nothing to claim in it and nothing to remember, so nobody looks."""
    providers = ProviderTable({"a": RecordingProvider("a")}, "a")
    async with running((), memory, tap=(tap := Tap()), memory=providers, **STILL) as it:
        await calls_since(tap)
        await it.new_session()
        assert await calls_since(tap) == {"store.transact": 1}


async def test_a_turn_is_two_writes_and_one_read(memory: World) -> None:
    """Accepted and claimed in one transaction, loaded in one read, settled in one transaction, for a watcher too: what
    one step knows, the next is told, and what is known to be empty is not looked into again."""
    providers = ProviderTable({"a": RecordingProvider("a")}, "a")
    async with running([Meet("on"), Say("done")], memory, tap=(tap := Tap()), memory=providers, **STILL) as it:
        sid = await it.new_session()
        await calls_since(tap)
        run = await it.send_to_gate(sid, gate="on")
        found = await calls_since(tap)
        assert (found["store.transact"], found["store.read"]) == (1, 1)
        it.release("on")
        await it.until(run.id, "complete")
        found = await calls_since(tap)
        assert (found["store.transact"], found["journal.append"]) == (1, 1)  # the last words and the end are one append
        assert not found["journal.read"]


async def test_an_attached_turn_reads_no_more(memory: World) -> None:
    """Its client subscribes, is sent everything and leaves without another look at the storage."""
    async with running([Say("done")], memory, tap=(tap := Tap()), **STILL) as it:
        sid = await it.new_session()
        await calls_since(tap)
        accepted = await it.engine.runs.submit(sid, [TextPart("hi")], lifetime="attached")
        async with it.engine.connections.attached(accepted.run.id):
            subscription = it.engine.feed.subscribe_new(accepted.run.id)
            while await subscription.next() is not None:
                pass
            subscription.close()
        found = await calls_since(tap)
        assert (found["store.transact"], found["store.read"]) == (2, 1)
        assert not found["journal.read"] + found["journal.heads"]


async def test_a_run_that_must_wait_is_claimed_when_there_is_room(memory: World) -> None:
    """A node without room accepts the run as queued, and claims it as soon as another has ended."""
    async with running([Meet("on"), Say("done")], memory, max_runs=1, **STILL) as it:
        await it.send_to_gate(gate="on")
        waits = await it.send()
        assert (await it.row(waits.id)).status == "queued"
        it.release("on")
        await it.until(waits.id, "complete")


async def test_a_run_of_unknown_acceptance_is_executed_if_it_was_stored(memory: World) -> None:
    """A3: the commit that accepted and claimed a run is reported as failed: nobody started it, so the claim loop
    does."""
    async with running([Say("done")], memory, poll_interval=SLOW, sweep_interval=SLOW) as it:
        sid = await it.new_session()
        it.store.plan = {("transact", it.store.calls["transact"] + 1): Fault("doubt")}
        with pytest.raises(StorageError):
            await it.engine.runs.submit(sid, [TextPart("hi")], key="once")
        run = (await it.engine.runs.submit(sid, [TextPart("hi")], key="once")).run
        row = await it.until(run.id, "complete")
        assert row.epoch == 1


async def test_notifications_cost_a_turn_nothing_that_nobody_wants(memory: World) -> None:
    """While no device has notifications on, nobody looks into the outbox, however many turns end."""
    push, costs = RecordingPush(), []
    for service in (None, push):
        async with running([Say("done")], memory, tap=(tap := Tap()), push=service, **STILL) as it:
            sid = await it.new_session()
            await calls_since(tap)
            for _ in range(3):
                await it.turn(sid)
            costs.append(await calls_since(tap))
            if service is push:
                await it.engine.notifications.subscribe("https://push.example/1", "p", "a", PushChoices(), device="")
                await it.turn(sid)
                await push.count(1)
    assert costs[0] == costs[1]


async def test_all_queued_runs_are_claimed_though_a_claim_takes_few(
    memory: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has claimed as many as it may at once looks again, and not when the next hint comes."""
    monkeypatch.setattr("holdfast.engine.supervisor._CLAIM_AT_ONCE", 2)
    async with running((), memory, max_runs=0) as it:
        runs = [await it.send() for _ in range(5)]
    async with running([Meet("on"), Say("done")], memory, **STILL) as it:
        await anyio.wait_all_tasks_blocked()
        assert [(await it.row(run.id)).status for run in runs] == ["running"] * 5
        it.release("on")


async def test_a_watcher_of_a_waiting_run_reads_it_once(memory: World) -> None:
    """A queued run is read with one call to each storage."""
    async with running([Meet("on")], memory, tap=(tap := Tap()), max_runs=1, **STILL) as it:
        await it.send_to_gate(gate="on")
        waits = await it.send()
        await calls_since(tap)
        run = await it.engine.runs.get(waits.id)
        assert run.status == "queued"
        assert await calls_since(tap) == {"store.read": 1, "journal.heads": 1}
        it.release("on")


async def test_a_change_is_looked_at_once_by_whoever_follows(memory: World) -> None:
    """Also by one who takes changes as they come: between two of them there is no look in vain."""
    async with running((), memory, tap=(tap := Tap()), **STILL) as it, anyio.create_task_group() as tg:
        feed = it.engine.subscriptions.watch_changes(None)
        await feed.begin()
        await calls_since(tap)
        seen: list[str] = []

        async def follow() -> None:
            while len(seen) < 3:
                found = await feed.next()
                assert found is not None
                seen.extend(change.kind for change in found.items)

        tg.start_soon(follow)
        assert await calls_since(tap) == {"store.read": 1}
        with anyio.fail_after(GUARD):
            for _ in range(3):
                await it.new_session()
                assert await calls_since(tap) == {"store.transact": 1, "store.read": 1}
        assert seen == ["session.changed"] * 3


# ---- and yet nobody is told what is over ----


async def test_who_has_seen_the_end_is_not_told_that_the_run_goes_on(memory: World) -> None:
    """C7: the row was read before the run was settled, and everything that would show that it is over is gone when the
    answer comes: it is read again."""
    settle = Hold(calls("store.transact", "Settler._settle"))
    read = Hold(calls("store.read", "SettlingReader.read_run"), "after", armed=False)
    tap = Both(settle, read)
    told: list[Run] = []
    async with running([Meet("on"), Say("done")], memory, tap=tap, **STILL) as it, anyio.create_task_group() as tg:
        run = await it.send_to_gate(gate="on")
        it.release("on")
        assert (await it.collect(run.id))[-1].ends

        async def ask() -> None:
            told.append(await it.engine.runs.get(run.id))

        with anyio.fail_after(GUARD):
            await settle.reached.wait()
            read.armed = True
            tg.start_soon(ask)
            await read.reached.wait()
            settle.go.set()
            await anyio.wait_all_tasks_blocked()
            assert run.id not in it.engine.local_runs.executing
            read.go.set()
    assert [each.status for each in told] == ["complete"]
