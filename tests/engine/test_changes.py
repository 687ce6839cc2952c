"""The change feed: written in the changing transaction, read from a cursor, resumable, and reset when it is too old."""

from collections.abc import Sequence

import anyio
import pytest

from holdfast.agents.scripted_agent import Meet, Say
from holdfast.core.errors import InvalidInputError, NotAllowedError, SessionBusyError
from holdfast.core.ids import LOCAL, OwnerId
from holdfast.engine.change_feed import Changes, ChangeSubscription
from holdfast.ports.store import Change
from tests.harness import AnyWorld, Running, World, running
from tests.storage_interceptors import GUARD, Hold, calls

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
    feed = it.engine.subscriptions.watch_changes(cursor)
    while n < last:
        changes = await next_of(feed)
        assert not changes.reset
        found += changes.items
        n = int(changes.cursor.rpartition("-")[2])
    return found


def said(changes: Sequence[Change]) -> list[tuple[str, str | None]]:
    return [(change.kind, change.status) for change in changes]


async def test_edits_and_deletion_are_told(world: AnyWorld) -> None:
    """P7: a rename, an undo and a deletion reach other tabs; reads and heartbeats do not."""
    async with running([Say("a")], world) as it:
        sid = await it.new_session("hello")
        start = await cursor_now(it)
        await it.engine.sessions.get(sid)
        await it.engine.messages.page(sid)
        assert await since(it, start) == []
        await it.engine.sessions.update(sid, {"title": "x"})
        await it.engine.sessions.undo(sid)
        await it.engine.sessions.delete(sid)
        assert said(await since(it, start)) == [
            ("session.changed", None),
            ("session.changed", None),
            ("session.deleted", None),
        ]


async def test_a_refused_change_is_not_told(world: AnyWorld) -> None:
    """P7: rows are written in the changing transaction: what was not done is not in the feed."""
    async with running([Meet("here"), Say("a")], world) as it:
        run = await it.send_to_gate()
        start = await cursor_now(it)
        with pytest.raises(SessionBusyError):
            await it.send(run, on_busy="reject")
        with pytest.raises(NotAllowedError):
            await it.engine.sessions.redo(run.session_id)
        with pytest.raises(NotAllowedError):
            await it.engine.runs.recover(run.id)
        assert await since(it, start) == []


async def test_without_a_cursor_the_feed_begins_now(world: AnyWorld) -> None:
    """L5: a new subscriber is told what happens from then on, and when it happens."""
    first_look = Hold(calls("store.read", "ChangeSubscription"), when="after", armed=False)
    async with running([Say("a")], world, tap=first_look, poll_interval=GUARD) as it:
        await it.turn()
        got: list[Changes] = []

        async def subscriber() -> None:
            got.append(await next_of(it.engine.subscriptions.watch_changes(None)))

        async with anyio.create_task_group() as tg:
            first_look.armed = True
            tg.start_soon(subscriber)
            await first_look.held()
            first_look.go.set()
            sid = await it.new_session()
        assert [(change.kind, change.session_id) for change in got[0].items] == [("session.changed", sid)]


async def test_a_cursor_that_does_not_fit_is_reset(world: AnyWorld) -> None:
    """L5: a cursor of rows that are no longer kept, of another generation (a restored backup), or of a number that was
    never given out makes the subscriber read the lists again; one that missed nothing goes on."""
    async with running([Say("a")], world, keep_changes=5) as it:
        old, sid, watch = await cursor_now(it), await it.new_session(), it.engine.subscriptions.watch_changes
        for n in range(10):
            await it.engine.sessions.update(sid, {"title": str(n)})
        await it.tick()
        generation, newest = it.store.generation, int((await cursor_now(it)).rpartition("-")[2])
        assert len(await since(it, f"{generation}-{newest - 5}")) == 5
        for cursor in ("another-1", f"{generation}-{newest - 6}", f"{generation}-{newest + 1}", old):
            reset = await next_of(watch(cursor))
            assert (reset.reset, reset.items, reset.cursor) == (True, (), await cursor_now(it))
        await next_of(feed := watch("another-1"))
        await it.engine.sessions.update(sid, {"title": "x"})
        after = await next_of(feed)
        assert (after.reset, said(after.items)) == (False, [("session.changed", None)])


@pytest.mark.parametrize("cursor", ["", "7", "-", "g1-", "g1-x", "g1-٣"])
async def test_nonsense_is_no_cursor(memory: World, cursor: str) -> None:
    """L5: a text that is no cursor is refused at once."""
    async with running([Say("a")], memory) as it:
        with pytest.raises(InvalidInputError):
            it.engine.subscriptions.watch_changes(cursor)


async def test_the_feed_is_ones_own(world: AnyWorld) -> None:
    """L5: nobody is told of somebody else's sessions."""
    async with running([Say("a")], world) as it:
        start = await cursor_now(it)
        theirs = await it.engine.sessions.create(SOMEBODY)
        mine = await it.engine.sessions.create(LOCAL)
        found = await next_of(it.engine.subscriptions.watch_changes(start))
        assert [change.session_id for change in found.items] == [mine.id]
        found = await next_of(it.engine.subscriptions.watch_changes(start, SOMEBODY))
        assert [change.session_id for change in found.items] == [theirs.id]


async def test_a_thousand_changes_come_in_pages(memory: World) -> None:
    """L6: a subscriber far behind is given everything, a bounded piece at a time."""
    async with running((), memory) as it:
        start = await cursor_now(it)
        sid = await it.new_session()
        for n in range(1200):
            await it.engine.sessions.update(sid, {"title": str(n)})
        first = await next_of(it.engine.subscriptions.watch_changes(start))
        assert len(first.items) <= 500
        assert len(await since(it, start)) == 1201
