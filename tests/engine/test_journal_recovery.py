"""Section J: the journal was away when a dead run was ended. The output is sought until it is found or given up."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import pytest

from holdfast.agents.scripted import Call, Hang, Meet, Say
from holdfast.core.errors import NotAllowed, NotFound
from holdfast.core.events import Entry
from holdfast.core.ids import OwnerId
from holdfast.core.parts import Text, Tool
from holdfast.core.recovery import Policy
from holdfast.core.run import Recovery, Run
from holdfast.ports import Append
from tests.engine.checks import check_idle, check_one_end
from tests.harness import (
    GUARD,
    AnyWorld,
    Hold,
    Running,
    Script,
    SqliteWorld,
    Tap,
    World,
    appends,
    collect,
    crash_at,
    running,
    texts,
)
from tests.torn import WAYS, tear

pytestmark = pytest.mark.anyio

DAY = 24 * 3600.0
SPOKEN: Script = [Say("one "), Call("a", result=1), Say("two"), Meet("here"), Hang()]
PARTS = (Text("one "), Tool("a", "tool", None, "done", 1, duration_ms=0), Text("two"))
"""What the journal of a run that followed `SPOKEN` to its fifth event holds."""


async def lost(world: AnyWorld) -> Run:
    """A dead run with output."""
    return await crash_at(world, SPOKEN, seen=5)


async def silent(world: AnyWorld) -> Run:
    """A dead run that had said nothing."""
    return await crash_at(world, [Meet("here"), Hang()], seen=1)


async def check_pending(it: Running, run: Run) -> None:
    row, message = await it.row(run.id), await it.stored(run.message_id)
    assert (row.status, message.status, message.recovery, message.parts) == (
        "interrupted",
        "interrupted",
        "pending",
        (),
    )
    assert row.recovery is not None
    assert (row.recovery.state, row.lease) == ("pending", None)


async def check_recovered(it: Running, run: Run, status: str = "interrupted") -> None:
    """The output is there, and nothing is left of the search for it."""
    row, message = await it.row(run.id), await it.stored(run.message_id)
    assert (message.status, message.recovery, message.parts) == (status, "recovered", PARTS)
    assert row.recovery == Recovery("recovered")
    assert row.lease is None
    assert list(await it.store.inner.read(lambda tx: tx.pending_runs(10))) == []
    await check_one_end(it, run, status)
    await check_idle(it, run.session_id)


def fences(call: str, _: Sequence[Any]) -> bool:
    return call == "journal.fence"


def touched(tap: Tap) -> list[str]:
    return [call for call in tap.seen if call.startswith("journal.")]


# ---- J1 ----


async def test_a_journal_that_is_away_leaves_a_pending_notice_and_a_usable_session(world: AnyWorld) -> None:
    """J1: the journal cannot be read when the dead run is settled: its notice says pending, and the session goes on."""
    run = await lost(world)
    async with running([Say("fine")], world, journal_away=True, storage_patience=GUARD) as it:
        question, answer = await it.shown(run.session_id)
        assert texts(question.parts) == "hello"
        assert answer.id == run.message_id
        await check_pending(it, run)
        assert (await it.service.session(run.session_id)).active_run is None
        await it.service.amend(run.session_id, {"title": "still here"})
        more = await it.send(run.session_id, "and now?", on_busy="reject")
        assert (await it.stored(more.user_message_id)).parent_id == run.message_id
        it.journal.away = False
        assert (await it.ended(more.id)).status == "complete"


async def test_a_journal_that_does_not_answer_is_not_waited_for(world: AnyWorld) -> None:
    """J1: a fence that hangs holds up neither the start nor the reader beyond its time."""
    run = await lost(world)
    hold = Hold(fences, every=True)
    async with running((), world, tap=hold, fence_wait=0.05) as it:
        await check_pending(it, run)
        await it.crash()
    async with running((), world) as it:
        await check_recovered(it, run)


async def test_recovery_is_not_spoken_of_when_the_journal_was_readable_at_once(world: AnyWorld) -> None:
    """J1: a dead run that could be settled at once has no recovery at all."""
    run = await lost(world)
    async with running((), world) as it:
        assert (await it.row(run.id)).recovery is None
        assert (await it.answer(run.session_id)).recovery is None


async def test_an_open_message_of_an_unreadable_journal_has_no_parts(world: AnyWorld) -> None:
    """J1: while a run is open and its journal cannot be read, its message is shown without parts."""
    async with running([Say("one"), Meet("here"), Hang()], world) as it:
        run = await it.send(await it.new_session())
        await it.reached("here")
        it.journal.away = True
        answer = await it.answer(run.session_id)
        assert (answer.id, answer.status, answer.parts) == (run.message_id, "streaming", ())
        it.journal.away = False


# ---- J2 ----


async def read_session(it: Running, run: Run) -> None:
    await it.service.session(run.session_id)


async def read_messages(it: Running, run: Run) -> None:
    assert (await it.answer(run.session_id)).parts == PARTS


async def read_run(it: Running, run: Run) -> None:
    assert (await it.service.run(run.id)).recovery == Recovery("recovered")


async def sweep(it: Running, run: Run) -> None:
    await it.tick()


@pytest.mark.parametrize("look", [read_session, read_messages, read_run, sweep])
async def test_a_later_look_recovers_the_output(
    world: AnyWorld, look: Callable[[Running, Run], Awaitable[None]]
) -> None:
    """J2: the journal is back, and the next reader is shown text and finished tools, recovered, without bookkeeping."""
    run = await lost(world)
    async with running((), world, journal_away=True) as it:
        await it.service.session(run.session_id)
        await check_pending(it, run)
        it.journal.away = False
        await look(it, run)
        await check_recovered(it, run)
    async with running((), world) as it:
        await check_recovered(it, run)


async def test_a_look_that_was_left_is_taken_up_though_another_run_is_being_claimed(memory: World) -> None:
    """J3: a reader left in the middle of its look. The next tick looks, whatever else this process is about to hold."""
    run = await lost(memory)
    hold = Hold(lambda call, _: call == "journal.fence", armed=False)
    async with running((), memory, tap=hold, journal_away=True) as it:
        await check_pending(it, run)
        it.journal.away, hold.armed = False, True
        async with anyio.create_task_group() as readers:
            readers.start_soon(it.service.session, run.session_id)
            with anyio.fail_after(GUARD):
                await hold.reached.wait()
            readers.cancel_scope.cancel()
        hold.armed = False
        assert (await it.row(run.id)).lease is not None
        it.engine.settler.claiming += 1
        await it.tick()
        it.engine.settler.claiming -= 1
        await check_recovered(it, run)


async def test_the_journals_own_end_decides_the_status(world: AnyWorld) -> None:
    """J2: the run had completed before its process died; when the journal is back, it is shown as complete."""
    hold = Hold(appends("run.complete"), when="after")
    async with running(SPOKEN[:3], world, tap=hold) as it:
        run = await it.send(await it.new_session())
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
        it.store.away = True
        hold.go.set()
        await it.crash()
    async with running((), world, journal_away=True) as it:
        await check_pending(it, run)
        it.journal.away = False
        await it.service.session(run.session_id)
        await check_recovered(it, run, "complete")


async def test_a_cancelled_run_is_recovered_as_cancelled(world: AnyWorld) -> None:
    """J2: a cancel that was stored before the process died is what the journal is sealed with."""
    async with running(SPOKEN, world, cancel_wait=0.0) as it:
        run = await it.send(await it.new_session())
        await collect(it.service, run.id, until=5)
        it.journal.away = True
        await it.service.cancel(run.id)
        await it.crash()
    async with running((), world, journal_away=True) as it:
        it.journal.away = False
        await it.service.session(run.session_id)
        row = await it.row(run.id)
        assert (row.status, row.reason) == ("cancelled", "requested")
        assert (await it.answer(run.session_id)).parts == PARTS


async def test_a_recovered_run_can_be_continued_and_a_pending_one_not(world: AnyWorld) -> None:
    """J2: continuing waits for the output, so that nothing of it is said or done twice."""
    run = await lost(world)
    async with running([*SPOKEN[:3], Say(" three")], world, journal_away=True) as it:
        with pytest.raises(NotAllowed):
            await it.service.continue_run(run.id)
        it.journal.away = False
        more = await it.service.continue_run(run.id)
        assert (await it.ended(more.run.id)).status == "complete"
        assert texts((await it.answer(run.session_id)).parts) == "one two three"
        assert it.agent.effects == []


# ---- J3 ----


async def test_readers_at_the_same_time_cause_one_attempt(world: AnyWorld) -> None:
    """J3: one reader looks; the others return at once with what is there."""
    run = await lost(world)
    hold = Hold(fences, armed=False)
    async with running((), world, journal_away=True, tap=hold) as it:
        it.journal.away, hold.armed = False, True
        hold.seen.clear()
        async with anyio.create_task_group() as tg:
            tg.start_soon(it.service.session, run.session_id)
            with anyio.fail_after(GUARD):
                await hold.reached.wait()
                for _ in range(5):
                    answer = await it.answer(run.session_id)
                    assert (answer.recovery, answer.parts) == ("pending", ())
                    await it.service.session(run.session_id)
                    await it.service.run(run.id)
                await it.tick()
            assert touched(hold) == ["journal.fence"]
            hold.go.set()
        await check_recovered(it, run)
        assert hold.seen.count("journal.fence") == 1


async def test_readers_on_two_nodes_cause_one_attempt(memory: World) -> None:
    """J3: also across the nodes of a cluster."""
    async with running(SPOKEN, memory, cluster=True) as gone:
        run = await gone.send(await gone.new_session())
        await collect(gone.service, run.id, until=5)
        await gone.crash()
    memory.clock.advance(100)
    hold = Hold(fences, armed=False)
    other = Tap()
    async with (
        running((), memory, cluster=True, journal_away=True, tap=hold) as one,
        running((), memory, cluster=True, journal_away=True, tap=other) as two,
    ):
        one.journal.away, two.journal.away, hold.armed = False, False, True
        other.seen.clear()
        async with anyio.create_task_group() as tg:
            tg.start_soon(one.service.session, run.session_id)
            with anyio.fail_after(GUARD):
                await hold.reached.wait()
                assert (await two.answer(run.session_id)).recovery == "pending"
                await two.tick()
            assert "journal.fence" not in other.seen
            hold.go.set()
        assert (await two.answer(run.session_id)).parts == PARTS


# ---- J4 ----


async def test_a_journal_that_is_still_arriving_uses_up_no_attempts(world: AnyWorld) -> None:
    """J4: however often it is read while it cannot be, the recovery stays pending, and then succeeds."""
    run = await lost(world)
    async with running((), world, journal_away=True) as it:
        since = world.clock.now()
        for _ in range(8):
            world.clock.advance(600)
            await it.service.session(run.session_id)
            await it.answer(run.session_id)
            await it.tick()
        assert (await it.row(run.id)).recovery == Recovery("pending", since=since, attempts=0)
        await check_pending(it, run)
        it.journal.away = False
        await it.service.session(run.session_id)
        await check_recovered(it, run)


async def test_pending_survives_restarts(world: AnyWorld) -> None:
    """J4: nor do restarts while the journal is away use up anything."""
    run = await lost(world)
    for _ in range(5):
        async with running((), world, journal_away=True) as it:
            await check_pending(it, run)
            await it.crash()
    async with running((), world) as it:
        await check_recovered(it, run)


# ---- J5 ----


async def test_a_sealed_journal_without_output_is_given_up_after_some_attempts(world: AnyWorld) -> None:
    """J5: each look at a readable journal without output is an attempt; the last one makes the notice neutral."""
    run = await silent(world)
    tap = Tap()
    async with running((), world, journal_away=True, tap=tap) as it:
        await check_pending(it, run)
        it.journal.away = False
        for attempts in (1, 2):
            await it.service.session(run.session_id)
            recovery = (await it.row(run.id)).recovery
            assert recovery is not None
            assert (recovery.state, recovery.attempts) == ("pending", attempts)
        await it.service.session(run.session_id)
        row, message = await it.row(run.id), await it.stored(run.message_id)
        assert (row.recovery, row.lease) == (Recovery("none"), None)
        assert (message.status, message.recovery, message.parts) == ("interrupted", "none", ())
        tap.seen.clear()
        await it.service.session(run.session_id)
        await it.service.run(run.id)
        await it.tick()
        assert touched(tap) == []
    async with running((), world) as it:
        assert (await it.row(run.id)).recovery == Recovery("none")
        await check_idle(it, run.session_id)


async def test_the_maximum_of_attempts_can_be_set(world: AnyWorld) -> None:
    """J5: with a maximum of one, the first empty look is the last."""
    run = await silent(world)
    async with running((), world, journal_away=True, recovery=Policy(max_attempts=1)) as it:
        it.journal.away = False
        await it.service.session(run.session_id)
        assert (await it.stored(run.message_id)).recovery == "none"


# ---- J6 ----


async def test_past_the_age_the_notice_is_neutral_without_a_look(world: AnyWorld) -> None:
    """J6: a recovery that is too old is given up without touching the journal."""
    run = await lost(world)
    tap = Tap()
    async with running((), world, journal_away=True, tap=tap) as it:
        it.journal.away = False
        world.clock.advance(DAY + 1)
        tap.seen.clear()
        answer = await it.answer(run.session_id)
        assert (answer.status, answer.recovery, answer.parts) == ("interrupted", "none", ())
        assert (await it.row(run.id)).recovery == Recovery("none")
        await it.tick()
        assert [call for call in touched(tap) if call != "journal.purge"] == []
        assert len(await it.events(run.id)) == 5


async def test_an_explicit_recover_looks_again(world: AnyWorld) -> None:
    """J6: given up, the journal is kept, and `recover` finds the output after all."""
    run = await lost(world)
    async with running((), world, journal_away=True) as it:
        world.clock.advance(DAY + 1)
        await it.service.session(run.session_id)
        assert (await it.row(run.id)).recovery == Recovery("none")
        with pytest.raises(NotFound):
            await it.service.recover(run.id, OwnerId("somebody"))
        still = await it.service.recover(run.id)
        assert still.is_pending
        assert (await it.stored(run.message_id)).recovery == "pending"
        it.journal.away = False
        assert (await it.service.recover(run.id)).recovery == Recovery("recovered")
        await check_recovered(it, run)
        with pytest.raises(NotAllowed):
            await it.service.recover(run.id)


async def test_a_recover_that_found_the_journal_away_is_followed_up(world: AnyWorld) -> None:
    """J6: an explicit `recover` begins the search anew, so that a later reader finds what it did not."""
    run = await lost(world)
    async with running((), world, journal_away=True) as it:
        world.clock.advance(DAY + 1)
        await it.tick()
        await it.service.recover(run.id)
        it.journal.away = False
        await it.service.session(run.session_id)
        await check_recovered(it, run)


async def test_a_recover_is_not_undone_by_a_look_that_was_about_to_give_up(world: AnyWorld) -> None:
    """J6: a reader found the recovery too old; an explicit `recover` comes before it can say so, and stands."""
    run = await lost(world)
    hold = Hold(
        lambda call, args: call == "store.transact" and "_look" in getattr(args[0], "__qualname__", ""),
        when="after",
        armed=False,
    )
    async with running((), world, journal_away=True, tap=hold) as it:
        world.clock.advance(DAY + 1)
        hold.armed = True
        async with anyio.create_task_group() as tg:
            tg.start_soon(it.service.session, run.session_id)
            with anyio.fail_after(GUARD):
                await hold.reached.wait()
            assert (await it.service.recover(run.id)).is_pending
            hold.go.set()
        await check_pending(it, run)
        it.journal.away = False
        await it.service.session(run.session_id)
        await check_recovered(it, run)


async def test_the_journal_of_a_run_that_was_given_up_is_kept(world: AnyWorld) -> None:
    """J6: retention is for settled journals; one that was given up unread can still be recovered much later."""
    run = await lost(world)
    async with running((), world, journal_away=True) as it:
        world.clock.advance(DAY + 1)
        await it.tick()
        it.journal.away = False
        world.clock.advance(60 * DAY)
        await it.tick()
        assert (await it.service.recover(run.id)).recovery == Recovery("recovered")
        await check_recovered(it, run)


async def test_there_is_nothing_to_recover_of_a_settled_run(world: AnyWorld) -> None:
    """J6: `recover` is for runs whose output was sought; of any other it is refused."""
    async with running([Say("ok")], world) as it:
        run = await it.turn(await it.new_session())
        with pytest.raises(NotAllowed):
            await it.service.recover(run.id)


# ---- J7 ----

tears = pytest.mark.parametrize("how", WAYS)


@tears
async def test_a_torn_record_loses_itself_alone(sqlite: SqliteWorld, how: str) -> None:
    """J7: the last record of a dead run is damaged: all before it is in the transcript, and the run is settled."""
    run = await lost(sqlite)
    tear(sqlite.path / "journal.db", run.id, how)
    async with running((), sqlite) as it:
        assert (await it.answer(run.session_id)).parts == PARTS[:2]
        await check_one_end(it, run, "interrupted")
        await check_idle(it, run.session_id)


@tears
async def test_a_torn_record_is_no_obstacle_to_a_late_recovery(sqlite: SqliteWorld, how: str) -> None:
    """J7: the journal was away and comes back damaged: what is good of it is recovered."""
    run = await lost(sqlite)
    tear(sqlite.path / "journal.db", run.id, how)
    async with running((), sqlite, journal_away=True) as it:
        await check_pending(it, run)
        it.journal.away = False
        answer = await it.answer(run.session_id)
        assert (answer.recovery, answer.parts) == ("recovered", PARTS[:2])


async def test_a_torn_end_is_sealed_again(sqlite: SqliteWorld) -> None:
    """J7: it was the terminal event that tore: the run is interrupted, with all that was said."""
    hold = Hold(appends("run.complete"), when="after")
    async with running(SPOKEN[:3], sqlite, tap=hold) as it:
        run = await it.send(await it.new_session())
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
        it.store.away = True
        hold.go.set()
        await it.crash()
    tear(sqlite.path / "journal.db", run.id, "half")
    async with running((), sqlite) as it:
        assert (await it.answer(run.session_id)).parts == PARTS
        await check_one_end(it, run, "interrupted")


async def test_a_run_goes_on_after_a_torn_record(sqlite: SqliteWorld) -> None:
    """J7: automatic continue takes up a run from its last good event, and says the torn one again."""
    run = await lost(sqlite)
    tear(sqlite.path / "journal.db", run.id, "half")
    async with running(SPOKEN[:3], sqlite, recovery=Policy(auto_continue=True)) as it:
        assert (await it.ended(run.id)).status == "complete"
        assert (await it.answer(run.session_id)).parts == PARTS
        assert it.agent.effects == []
        assert [entry.seq for entry in await it.events(run.id)] == list(range(1, len(await it.events(run.id)) + 1))


async def test_damage_to_one_run_leaves_the_others_whole(sqlite: SqliteWorld) -> None:
    """J7: a torn record of one run touches no other run."""
    async with running(SPOKEN, sqlite) as it:
        first = await it.send(await it.new_session())
        await it.reached("here")
        second = await it.send(await it.new_session())
        with anyio.fail_after(GUARD):
            while len(await it.events(second.id)) < 5 or len(await it.events(first.id)) < 5:
                await anyio.lowlevel.checkpoint()
        await it.crash()
    tear(sqlite.path / "journal.db", first.id, "half")
    async with running((), sqlite) as it:
        parts = {(await it.answer(run.session_id)).parts for run in (first, second)}
        assert parts == {PARTS, PARTS[:2]}


async def test_an_event_that_cannot_be_read_leaves_the_others_whole(world: AnyWorld) -> None:
    """J7: a whole record that this version cannot read (a newer one wrote it) touches no other run: theirs are settled,
    its own session can be read and used, and the output is sought until that is given up."""
    strange = Entry(3, b'id: 3\nevent: tool.started\ndata: {"call":"t"}\n\n')
    async with running([Say("half "), Meet("here"), Hang()], world) as it:
        bad, good = [await it.send(await it.new_session()) for _ in range(2)]
        for run in (bad, good):
            await collect(it.service, run.id, until=2)
        await it.journal.inner.append([Append(bad.id, 1, [strange])])
        assert (await it.answer(bad.session_id)).parts == ()
        await it.crash()
    async with running([Say("fine")], world) as it:
        assert (await it.stored(good.message_id)).parts == (Text("half "),)
        await check_one_end(it, good, "interrupted")
        message = await it.answer(bad.session_id)
        assert (message.status, message.recovery, message.parts) == ("interrupted", "pending", ())
        assert (await it.turn(bad.session_id)).status == "complete"
