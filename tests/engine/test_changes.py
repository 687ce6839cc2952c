"""The change feed: rows written in the changing transaction, read from a cursor, resumable, reset when it must be."""

from collections.abc import Sequence

import anyio
import pytest

from holdfast.agents.scripted import Call, Meet, Say
from holdfast.core.errors import Busy, Invalid, NotAllowed
from holdfast.core.ids import LOCAL, OwnerId
from holdfast.engine.changes import Changes, ChangeSubscription
from holdfast.ports import Change
from holdfast.testing import FaultyWakeups
from tests.harness import GUARD, AnyWorld, Hold, Running, World, running

pytestmark = pytest.mark.anyio

SOMEBODY = OwnerId("somebody")


async def cursor_now(it: Running) -> str:
    _, newest = await it.store.inner.read(lambda tx: tx.change_bounds())
    return f"{it.store.generation}-{newest}"


async def next_of(feed: ChangeSubscription) -> Changes:
    with anyio.fail_after(GUARD):
        found = await feed.next()
    assert found is not None
    return found


async def since(it: Running, cursor: str) -> list[Change]:
    """All that is in the feed after the cursor, without waiting for more."""
    n = int(cursor.rpartition("-")[2])
    last = int((await cursor_now(it)).rpartition("-")[2])
    found: list[Change] = []
    feed = it.service.watch_changes(cursor)
    while n < last:
        changes = await next_of(feed)
        assert not changes.reset
        found += changes.items
        n = int(changes.cursor.rpartition("-")[2])
    return found


def said(changes: Sequence[Change]) -> list[tuple[str, str | None]]:
    return [(change.kind, change.status) for change in changes]


async def test_a_turn_is_told_step_by_step(world: AnyWorld) -> None:
    """P7: creation, acceptance, each status of the run, the question and its answer are in the feed, in order."""
    async with running([Say("a"), Call("t", asks=True), Say("b")], world) as it:
        start = await cursor_now(it)
        sid = await it.new_session()
        run = await it.send(sid)
        await it.until(run.id, "waiting")
        question = await it.question(run.id)
        await it.service.decide(run.id, question.id, "once")
        await it.ended(run.id)
        changes = await since(it, start)
        assert {change.session_id for change in changes} == {sid}
        assert [change.status for change in changes if change.kind == "run.changed"] == [
            "queued",
            "running",
            "waiting",
            "queued",
            "running",
            "complete",
        ]
        approvals = [change for change in changes if change.kind == "approval.changed"]
        assert [change.status for change in approvals] == ["waiting", "once"]
        assert {(change.run_id, change.approval_id) for change in approvals} == {(run.id, question.id)}
        assert changes[0].kind == "session.changed"
        numbers = [change.n for change in changes]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


async def test_edits_and_deletion_are_told(world: AnyWorld) -> None:
    """P7: a rename, an undo and a deletion reach other tabs; reads and heartbeats do not."""
    async with running([Say("a")], world) as it:
        sid = await it.new_session()
        await it.turn(sid)
        start = await cursor_now(it)
        await it.service.session(sid)
        await it.service.messages(sid)
        assert await since(it, start) == []
        await it.service.amend(sid, {"title": "x"})
        await it.service.undo(sid)
        await it.service.delete(sid)
        assert said(await since(it, start)) == [
            ("session.changed", None),
            ("session.changed", None),
            ("session.deleted", None),
        ]


async def test_a_refused_change_is_not_told(world: AnyWorld) -> None:
    """P7: rows are written in the changing transaction: what was not done is not in the feed."""
    async with running([Meet("here"), Say("a")], world) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        await it.reached("here")
        start = await cursor_now(it)
        with pytest.raises(Busy):
            await it.send(sid, on_busy="reject")
        with pytest.raises(NotAllowed):
            await it.service.redo(sid)
        with pytest.raises(NotAllowed):
            await it.service.recover(run.id)
        assert await since(it, start) == []


async def test_a_cursor_resumes_exactly_where_it_was(world: AnyWorld) -> None:
    """L5: whatever the point of interruption, also a restart, the feed goes on without a gap or a repeat."""
    async with running([Say("a")], world) as it:
        start = await cursor_now(it)
        for _ in range(3):
            await it.turn(await it.new_session())
        whole = await since(it, start)
        generation = it.store.generation
    async with running([Say("a")], world) as it:
        for at, change in enumerate(whole):
            assert await since(it, f"{generation}-{change.n}") == whole[at + 1 :]
        assert await since(it, start) == whole


async def test_without_a_cursor_the_feed_begins_now(world: AnyWorld) -> None:
    """L5: a new subscriber is told what happens from then on, and when it happens."""
    first_look = Hold(
        lambda call, args: call == "store.read" and "ChangeSubscription" in args[0].__qualname__,
        when="after",
        armed=False,
    )
    async with running([Say("a")], world, tap=first_look, poll=GUARD) as it:
        await it.turn(await it.new_session())
        got: list[Changes] = []

        async def subscriber() -> None:
            got.append(await next_of(it.service.watch_changes(None)))

        async with anyio.create_task_group() as tg:
            first_look.armed = True
            tg.start_soon(subscriber)
            with anyio.fail_after(GUARD):
                await first_look.reached.wait()
            first_look.go.set()
            sid = await it.new_session()
        assert [(change.kind, change.session_id) for change in got[0].items] == [("session.changed", sid)]


async def test_a_cursor_of_another_generation_is_reset(world: AnyWorld) -> None:
    """L5: after a restored backup numbers mean other things: the subscriber is told to read the lists again."""
    async with running([Say("a")], world) as it:
        sid = await it.new_session()
        feed = it.service.watch_changes("another-1")
        reset = await next_of(feed)
        assert (reset.reset, reset.items, reset.cursor) == (True, (), await cursor_now(it))
        await it.service.amend(sid, {"title": "x"})
        after = await next_of(feed)
        assert (after.reset, said(after.items)) == (False, [("session.changed", None)])


async def test_a_cursor_that_is_too_old_is_reset(world: AnyWorld) -> None:
    """L5: rows beyond what is kept are gone: a subscriber that missed some is reset, one that missed none is not."""
    async with running([Say("a")], world, keep_changes=5) as it:
        old = await cursor_now(it)
        sid = await it.new_session()
        for n in range(10):
            await it.service.amend(sid, {"title": str(n)})
        await it.tick()
        newest = int((await cursor_now(it)).rpartition("-")[2])
        reset = await next_of(it.service.watch_changes(old))
        assert (reset.reset, reset.cursor) == (True, await cursor_now(it))
        assert len(await since(it, f"{it.store.generation}-{newest - 5}")) == 5
        assert (await next_of(it.service.watch_changes(f"{it.store.generation}-{newest - 6}"))).reset


async def test_a_cursor_from_the_future_is_reset(world: AnyWorld) -> None:
    """L5: a number that was never given out, as after losing the newest rows, is not waited for."""
    async with running([Say("a")], world) as it:
        await it.new_session()
        ahead = int((await cursor_now(it)).rpartition("-")[2]) + 1
        assert (await next_of(it.service.watch_changes(f"{it.store.generation}-{ahead}"))).reset


@pytest.mark.parametrize("cursor", ["", "7", "-", "g1-", "g1-x", "g1-٣"])
async def test_nonsense_is_no_cursor(memory: World, cursor: str) -> None:
    """L5: a text that is no cursor is refused at once."""
    async with running([Say("a")], memory) as it:
        with pytest.raises(Invalid):
            it.service.watch_changes(cursor)


async def test_the_feed_is_ones_own(world: AnyWorld) -> None:
    """L5: nobody is told of somebody else's sessions."""
    async with running([Say("a")], world) as it:
        start = await cursor_now(it)
        theirs = await it.service.create_session(SOMEBODY)
        mine = await it.service.create_session(LOCAL)
        found = await next_of(it.service.watch_changes(start))
        assert [change.session_id for change in found.items] == [mine.id]
        found = await next_of(it.service.watch_changes(start, SOMEBODY))
        assert [change.session_id for change in found.items] == [theirs.id]


async def test_lost_hints_only_delay_the_feed(memory: World) -> None:
    """L7: a change made on another node whose hint got lost is told all the same."""
    memory.wakeups = deaf = FaultyWakeups(memory.wakeups)
    deaf.deaf = True
    async with running((), memory, cluster=True) as one, running((), memory, cluster=True) as two:
        feed = two.service.watch_changes(await cursor_now(two))
        sid = await one.new_session()
        assert [change.session_id for change in (await next_of(feed)).items] == [sid]


async def test_a_thousand_changes_come_in_pages(memory: World) -> None:
    """L6: a subscriber far behind is given everything, a bounded piece at a time."""
    async with running((), memory) as it:
        start = await cursor_now(it)
        sid = await it.new_session()
        for n in range(1200):
            await it.service.amend(sid, {"title": str(n)})
        first = await next_of(it.service.watch_changes(start))
        assert len(first.items) <= 500
        assert len(await since(it, start)) == 1201
