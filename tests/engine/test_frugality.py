"""Nobody goes to storage for nothing: each call is a thread woken or a network crossed, and the next token waits."""

from collections import Counter
from typing import Any

import anyio
import pytest

from holdfast.agents.scripted import Meet, Say
from tests.harness import GUARD, Tap, World, running

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
    async with running((), memory, tap=(tap := Tap()), **STILL) as it:
        await calls(tap)
        await it.new_session()
        assert await calls(tap) == {"store.transact": 1}


async def test_the_queue_is_read_once_for_a_run(memory: World) -> None:
    """Accepted and claimed, each in a transaction; what is known to be empty is not looked into again."""
    async with running([Meet("on")], memory, tap=(tap := Tap()), **STILL) as it:
        sid = await it.new_session()
        await calls(tap)
        await it.send(sid)
        await it.reached("on")
        assert (await calls(tap))["store.transact"] == 2
        it.release("on")


async def test_all_queued_runs_are_claimed_though_a_claim_has_room_for_few(
    memory: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has claimed as many as fit looks again at once, and not when the next hint comes."""
    monkeypatch.setattr("holdfast.engine.supervisor._CLAIM_AT_ONCE", 2)
    async with running([Meet("on"), Say("done")], memory, max_runs=1, **STILL) as it:
        first = await it.send(await it.new_session())
        waiting = [await it.send(await it.new_session()) for _ in range(5)]
        await it.reached("on")
        it.release("on")
        for run in (first, *waiting):
            assert (await it.ended(run.id)).status == "complete"


async def test_a_watcher_of_a_waiting_run_reads_it_once(memory: World) -> None:
    async with running([Meet("on")], memory, tap=(tap := Tap()), max_runs=1, **STILL) as it:
        await it.send(await it.new_session())
        await it.reached("on")
        waits = await it.send(await it.new_session())
        await calls(tap)
        run = await it.service.run(waits.id)
        assert run.status == "queued"
        assert await calls(tap) == {"store.read": 1, "journal.heads": 1}
        it.release("on")


async def test_a_change_is_looked_at_once_by_whoever_follows(memory: World) -> None:
    """Also by one who takes changes as they come: between two of them there is no look in vain."""
    async with running((), memory, tap=(tap := Tap()), **STILL) as it, anyio.create_task_group() as tg:
        feed = it.service.watch_changes(None)
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
