"""§5 Queue: turns sent to a busy session wait outside the tree and join it when they are claimed."""

from collections.abc import Sequence

import pytest

from holdfast.agents.scripted_agent import Action, Crash, Fail, Hang, Meet, Say, ScriptedAgent
from holdfast.core.errors import NotAllowedError, NotFoundError
from holdfast.core.ids import LOCAL, FileId, OwnerId
from holdfast.core.parts import FilePart, TextPart
from holdfast.ports.agent import Turn
from holdfast.ports.store import RunQuery
from tests.engine.checks import check_idle, check_one_end
from tests.harness import AnyWorld, asked, running

pytestmark = pytest.mark.anyio


def first_waits(turn: Turn) -> Sequence[Action]:
    """The turn "first" stops at a gate; every other answers at once."""
    return [Say("part "), Meet("here"), Say("whole")] if asked(turn) == "first" else [Say(f"re: {asked(turn)}")]


async def test_a_queued_turn_is_outside_the_tree(world: AnyWorld) -> None:
    """A3: until it is claimed, a queued turn is listed with its message, and branch, head and search do not have it."""
    async with running(ScriptedAgent(first_waits), world) as it:
        sid = await it.new_session()
        first = await it.send_to_gate(sid, "first")
        head = (await it.session_row(sid)).head
        accepted = await it.engine.runs.submit(sid, [TextPart("second zebra")])
        view = await it.engine.sessions.get(sid)
        assert view.active_run is not None
        assert (view.active_run.id, view.session.head) == (first.id, head)
        assert [(run.id, message) for run, message in view.queued] == [(accepted.run.id, accepted.message)]
        assert (view.queued[0][0].status, view.queued[0][0].in_tree) == ("queued", False)
        assert len(await it.shown(sid)) == 2
        assert (await it.engine.messages.get(first.user_message_id)).siblings == (first.user_message_id,)
        assert await it.engine.sessions.search("zebra") == []
        it.release("here")
        await it.ended(accepted.run.id)
        assert await it.said(sid) == ["first", "part whole", "second zebra", "re: second zebra"]
        assert [hit.view.session.id for hit in await it.engine.sessions.search("zebra")] == [sid]
        await check_idle(it, sid)


async def test_it_joins_at_the_head_of_that_moment(world: AnyWorld) -> None:
    """A3: a queued turn hangs below whatever is shown when it is claimed, not when it was sent."""
    async with running(ScriptedAgent(first_waits), world) as it:
        before = await it.turn(text="before")
        await it.send_to_gate(before, "first")
        queued = await it.send(before, "second")
        await it.engine.sessions.undo(before.session_id)
        assert (await it.ended(queued.id)).status == "complete"
        assert await it.said(before) == ["before", "re: before", "second", "re: second"]
        assert (await it.stored(queued.user_message_id)).parent_id == before.message_id
        await check_idle(it, before)


@pytest.mark.parametrize("end", ["complete", "failed", "crashed", "cancelled", "empty"])
async def test_the_queue_goes_on_whatever_ended_the_run_before(world: AnyWorld, end: str) -> None:
    """A3: a run that completes, fails, breaks, is cancelled or says nothing lets the next one run after it."""
    ends: dict[str, list[Action]] = {
        "complete": [Say("x")],
        "failed": [Say("x"), Fail()],
        "crashed": [Say("x"), Crash()],
        "cancelled": [Say("x"), Hang()],
        "empty": [],
    }

    def script(turn: Turn) -> Sequence[Action]:
        return [Meet("here"), *ends[end]] if asked(turn) == "first" else [Say("next")]

    async with running(ScriptedAgent(script), world) as it:
        first = await it.send_to_gate(text="first")
        queued = await it.send(first, "second")
        it.release("here")
        if end == "cancelled":
            await it.engine.runs.cancel(first.id)
        assert (await it.ended(queued.id)).status == "complete"
        assert (await it.row(first.id)).status == {"crashed": "failed", "empty": "failed"}.get(end, end)
        assert (await it.stored(queued.user_message_id)).parent_id == first.message_id
        await check_idle(it, first)


async def test_a_queued_turn_can_be_edited_until_it_runs(world: AnyWorld) -> None:
    """A3: a queued message says what it was last made to say; once it is claimed, by others, or with
    files that do not exist or are not ones own, it cannot be edited."""
    async with running(ScriptedAgent(first_waits), world) as it:
        first = await it.send_to_gate(text="first")
        queued = await it.send(first, "secnod")
        with pytest.raises(NotFoundError):
            await it.engine.runs.edit_queued(queued.id, [TextPart("mine")], OwnerId("somebody"))
        theirs = await it.add_file(owner=OwnerId("somebody"))
        for part in (theirs, FilePart(FileId("fil_none"), "x", "text/plain", 1)):
            with pytest.raises(NotFoundError):
                await it.engine.runs.edit_queued(queued.id, [part])
        assert (await it.stored(queued.user_message_id)).parts == (TextPart("secnod"),)
        file = await it.add_file()
        edited = await it.engine.runs.edit_queued(queued.id, [TextPart("second"), file])
        assert (edited.run.id, edited.message.parts) == (queued.id, (TextPart("second"), file))
        assert (await it.engine.sessions.get(first.session_id)).queued[0][1] == edited.message
        with pytest.raises(NotAllowedError):
            await it.engine.runs.edit_queued(first.id, [TextPart("no")])
        it.release("here")
        await it.ended(queued.id)
        assert await it.said(first) == ["first", "part whole", "second", "re: second"]
        with pytest.raises(NotAllowedError):
            await it.engine.runs.edit_queued(queued.id, [TextPart("too late")])


async def test_a_cancelled_queued_turn_never_joins_the_tree(world: AnyWorld) -> None:
    """A3: cancelled while queued, a turn ends at once, is shown on no branch, and the next one runs in its place."""
    async with running(ScriptedAgent(first_waits), world) as it:
        first = await it.send_to_gate(text="first")
        unwanted, wanted = await it.send(first, "unwanted"), await it.send(first, "wanted")
        cancelled = await it.engine.runs.cancel(unwanted.id)
        assert (cancelled.status, cancelled.in_tree) == ("cancelled", False)
        assert await it.types(unwanted.id) == ["run.cancelled"]
        assert [run.id for run, _ in (await it.engine.sessions.get(first.session_id)).queued] == [wanted.id]
        assert (await it.row(first.id)).status == "running"
        it.release("here")
        await it.ended(wanted.id)
        assert await it.said(first) == ["first", "part whole", "wanted", "re: wanted"]
        children = await it.store.inner.read(lambda tx: tx.children(first.session_id, first.message_id))
        assert list(children) == [wanted.user_message_id]
        assert [asked(turn) for turn in it.agent.turns] == ["first", "wanted"]
        assert await it.engine.sessions.search("unwanted") == []
        await check_one_end(it, unwanted, "cancelled")


async def test_what_does_not_fit_stays_queued(world: AnyWorld) -> None:
    """A3: a node executes as many runs as it may, and the others when there is room again."""
    async with running(ScriptedAgent(first_waits), world, max_runs=1) as it:
        one = await it.send_to_gate(text="first")
        two = await it.send(text="elsewhere")
        await it.engine.sessions.update(two.session_id, {"pinned": True})
        assert (await it.row(two.id)).status == "queued"
        assert it.engine.supervisor.executing == 1
        it.release("here")
        assert (await it.ended(two.id)).status == "complete"
        assert (await it.row(one.id)).status == "complete"


async def test_queued_turns_stay_with_a_cleared_session(world: AnyWorld) -> None:
    """O1: clear erases what was said; what is still to be said runs on the empty session."""
    async with running(ScriptedAgent(first_waits), world) as it:
        first = await it.send_to_gate(text="first")
        queued = await it.send(first, "second")
        await it.engine.sessions.clear(first.session_id)
        assert (await it.ended(queued.id)).status == "complete"
        assert await it.said(first) == ["second", "re: second"]
        assert (await it.row(first.id)).status == "cancelled"
        await check_idle(it, first)


async def test_a_deleted_session_takes_its_queue_with_it(world: AnyWorld) -> None:
    """O1: no queued turn of a deleted session is ever executed."""
    async with running(ScriptedAgent(first_waits), world) as it:
        sid = await it.new_session()
        first = await it.send_to_gate(sid, "first")
        queued = await it.send(sid, "second")
        await it.engine.sessions.delete(sid)
        await it.until(first.id, "cancelled")
        await it.until(queued.id, "cancelled")
        await it.tick()
        assert await it.store.inner.read(lambda tx: tx.runs(RunQuery(LOCAL, sid))) == []
        assert [asked(turn) for turn in it.agent.turns] == ["first"]
