"""The engine makes no needless storage calls: each one wakes a thread or crosses the network."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from holdfast.agents.scripted import Meet, Say
from holdfast.core.run import Run
from tests.harness import World, running
from tests.memory_providers import ProviderTable, RecordingProvider
from tests.taps import GUARD, Both, Hold, Tap

pytestmark = pytest.mark.anyio

SLOW = 3600.0
"""Seconds between looks that nobody asked for: none happens in a test."""
STILL: dict[str, Any] = {"poll": SLOW, "sweep": SLOW}


async def calls(tap: Tap) -> Counter[str]:
    """Since the last time, when everybody is at rest."""
    await anyio.wait_all_tasks_blocked()
    found = Counter(tap.seen)
    tap.seen.clear()
    return found


async def test_a_new_session_is_one_transaction(memory: World) -> None:
    """There is nothing to claim in it and nothing to remember, so nobody looks."""
    providers = ProviderTable({"a": RecordingProvider("a")}, "a")
    async with running((), memory, tap=(tap := Tap()), memory=providers, **STILL) as it:
        await calls(tap)
        await it.new_session()
        assert await calls(tap) == {"store.transact": 1}


async def test_the_queue_is_read_once_for_a_run(memory: World) -> None:
    """Accepted and claimed, each in a transaction; what is known to be empty is not looked into again."""
    async with running([Meet("on")], memory, tap=(tap := Tap()), **STILL) as it:
        sid = await it.new_session()
        await calls(tap)
        await it.send_to_gate(sid, gate="on")
        assert (await calls(tap))["store.transact"] == 2
        it.release("on")


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
        await calls(tap)
        run = await it.engine.runs.get(waits.id)
        assert run.status == "queued"
        assert await calls(tap) == {"store.read": 1, "journal.heads": 1}
        it.release("on")


async def test_a_change_is_looked_at_once_by_whoever_follows(memory: World) -> None:
    """Also by one who takes changes as they come: between two of them there is no look in vain."""
    async with running((), memory, tap=(tap := Tap()), **STILL) as it, anyio.create_task_group() as tg:
        feed = it.engine.subscriptions.watch_changes(None)
        await feed.begin()
        await calls(tap)
        seen: list[str] = []

        async def follow() -> None:
            while len(seen) < 3:
                found = await feed.next()
                assert found is not None
                seen.extend(change.kind for change in found.items)

        tg.start_soon(follow)
        assert await calls(tap) == {"store.read": 1}
        with anyio.fail_after(GUARD):
            for _ in range(3):
                await it.new_session()
                assert await calls(tap) == {"store.transact": 1, "store.read": 1}
        assert seen == ["session.changed"] * 3


# ---- and yet nobody is told what is over ----


def asks(call: str, where: str) -> Callable[[str, Sequence[Any]], bool]:
    """A call whose work is a function of `where`."""

    def match(made: str, args: Sequence[Any]) -> bool:
        return made == call and where in getattr(args[0], "__qualname__", "")

    return match


async def test_who_has_seen_the_end_is_not_told_that_the_run_goes_on(memory: World) -> None:
    """C7: the row was read before the run was settled, and everything that would show that it is over is gone when the
    answer comes: it is read again."""
    settle = Hold(asks("store.transact", "Settler._settle"))
    read = Hold(asks("store.read", "SettlingReader.read_run"), "after", armed=False)
    claim = Hold(asks("store.transact", "Supervisor._claim_and_start"), armed=False)
    tap = Both(Both(settle, read), claim)
    told: list[Run] = []
    async with running([Meet("on"), Say("done")], memory, tap=tap, **STILL) as it, anyio.create_task_group() as tg:
        run = await it.send_to_gate(gate="on")
        it.release("on")
        assert (await it.collect(run.id))[-1].ends

        async def ask() -> None:
            told.append(await it.engine.runs.get(run.id))

        with anyio.fail_after(GUARD):
            await settle.reached.wait()
            read.armed = claim.armed = True
            tg.start_soon(ask)
            await read.reached.wait()
            settle.go.set()
            await claim.reached.wait()
            assert run.id not in it.engine.local_runs.executing
            read.go.set()
            await anyio.wait_all_tasks_blocked()
            claim.go.set()
    assert [each.status for each in told] == ["complete"]
