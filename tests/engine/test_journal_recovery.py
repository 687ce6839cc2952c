"""Section J: the journal was unavailable when an orphaned run was ended; its output is recovered later or given up."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from holdfast.agents.scripted_agent import CallTool, Hang, Meet, Say
from holdfast.core.errors import NotAllowedError, NotFoundError
from holdfast.core.events import Entry
from holdfast.core.ids import OwnerId
from holdfast.core.parts import TextPart, ToolPart
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.core.run import Recovery, Run
from holdfast.core.session import Message
from holdfast.ports.journal import Append
from tests.engine.checks import check_idle, check_one_end
from tests.harness import AnyWorld, Running, Script, SqliteWorld, World, crash_at, crash_before_settling, running
from tests.journal_damage import WAYS, tear
from tests.storage_interceptors import GUARD, Hold, Tap, calls

pytestmark = pytest.mark.anyio

DAY = 24 * 3600.0
SPOKEN: Script = [Say("one "), CallTool("a", result=1), Say("two"), Meet("here"), Hang()]
PARTS = (TextPart("one "), ToolPart("a", "tool", None, "done", 1, duration_ms=0), TextPart("two"))
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
    await check_idle(it, run)


def touched(tap: Tap) -> list[str]:
    return [call for call in tap.seen if call.startswith("journal.")]


# ---- J1 ----


async def test_a_journal_that_does_not_answer_is_not_waited_for(world: AnyWorld) -> None:
    """J1: a fence that hangs holds up neither the start nor the reader beyond its time."""
    run = await lost(world)
    async with running((), world, tap=Hold(calls("journal.fence"), every=True), fence_wait=0.05) as it:
        await check_pending(it, run)
        await it.crash()
    async with running((), world) as it:
        await check_recovered(it, run)


async def test_an_open_message_of_an_unreadable_journal_has_no_parts(world: AnyWorld) -> None:
    """J1: while a run is open and its journal cannot be read, its message is shown without parts."""
    async with running([Say("one"), Meet("here"), Hang()], world) as it:
        run = await it.send_and_see(2)
        it.journal.away = True
        answer = await it.answer(run)
        assert (answer.id, answer.status, answer.parts) == (run.message_id, "streaming", ())
        it.journal.away = False


# ---- J2 ----


LOOKS: dict[str, Callable[[Running, Run], Awaitable[object]]] = {
    "session": lambda it, run: it.engine.sessions.get(run.session_id),
    "messages": lambda it, run: it.answer(run),
    "run": lambda it, run: it.engine.runs.get(run.id),
    "sweep": lambda it, run: it.tick(),
}


@pytest.mark.parametrize("look", LOOKS)
async def test_a_later_look_recovers_the_output(world: AnyWorld, look: str) -> None:
    """J2: the journal is back, and the next reader is shown text and finished tools, recovered, without bookkeeping."""
    run = await lost(world)
    async with running((), world, journal_away=True) as it:
        await it.engine.sessions.get(run.session_id)
        await check_pending(it, run)
        it.journal.away = False
        shown = await LOOKS[look](it, run)
        assert not isinstance(shown, Message) or shown.parts == PARTS
        assert not isinstance(shown, Run) or shown.recovery == Recovery("recovered")
        await check_recovered(it, run)
    async with running((), world) as it:
        await check_recovered(it, run)


async def test_a_look_that_was_left_is_taken_up_though_another_run_is_being_claimed(memory: World) -> None:
    """J3: a reader left in the middle of its look. The next tick looks, whatever else this process is about to hold."""
    run = await lost(memory)
    async with running((), memory, tap=(hold := Hold(calls("journal.fence"), armed=False)), journal_away=True) as it:
        await check_pending(it, run)
        it.journal.away, hold.armed = False, True
        async with anyio.create_task_group() as readers:
            readers.start_soon(it.engine.sessions.get, run.session_id)
            await hold.held()
            readers.cancel_scope.cancel()
        hold.armed = False
        assert (await it.row(run.id)).lease is not None
        async with it.engine.local_runs.claiming():
            await it.engine.sweeper.retry_pending()
        await check_recovered(it, run)


async def test_the_journals_own_end_decides_the_status(world: AnyWorld) -> None:
    """J2: the run had completed before its process died; when the journal is back, it is shown as complete."""
    run = await crash_before_settling(world, SPOKEN[:3])
    async with running((), world, journal_away=True) as it:
        await check_pending(it, run)
        it.journal.away = False
        await it.engine.sessions.get(run.session_id)
        await check_recovered(it, run, "complete")


async def test_a_cancelled_run_is_recovered_as_cancelled(world: AnyWorld) -> None:
    """J2: a cancel that was stored before the process died is what the journal is sealed with."""
    async with running(SPOKEN, world, cancel_wait=0.0) as it:
        run = await it.send_and_see(5)
        it.journal.away = True
        await it.engine.runs.cancel(run.id)
        await it.crash()
    async with running((), world, journal_away=True) as it:
        it.journal.away = False
        await it.engine.sessions.get(run.session_id)
        assert await it.outcome(run) == ("cancelled", "requested")
        assert (await it.answer(run)).parts == PARTS


# ---- J3 ----


async def test_readers_at_the_same_time_cause_one_attempt(world: AnyWorld) -> None:
    """J3: one reader looks; the others return at once with what is there."""
    run = await lost(world)
    async with running((), world, journal_away=True, tap=(hold := Hold(calls("journal.fence"), armed=False))) as it:
        it.journal.away, hold.armed = False, True
        hold.seen.clear()
        async with anyio.create_task_group() as tg:
            tg.start_soon(it.engine.sessions.get, run.session_id)
            with anyio.fail_after(GUARD):
                await hold.reached.wait()
                for _ in range(5):
                    answer = await it.answer(run)
                    assert (answer.recovery, answer.parts) == ("pending", ())
                    await it.engine.sessions.get(run.session_id)
                    await it.engine.runs.get(run.id)
                await it.tick()
            assert touched(hold) == ["journal.fence"]
            hold.go.set()
        await check_recovered(it, run)
        assert hold.seen.count("journal.fence") == 1


async def test_readers_on_two_nodes_cause_one_attempt(memory: World) -> None:
    """J3: also across the nodes of a cluster."""
    async with running(SPOKEN, memory, cluster=True) as gone:
        run = await gone.send_and_see(5)
        await gone.crash()
    memory.clock.advance(100)
    hold = Hold(calls("journal.fence"), armed=False)
    other = Tap()
    async with (
        running((), memory, cluster=True, journal_away=True, tap=hold) as one,
        running((), memory, cluster=True, journal_away=True, tap=other) as two,
    ):
        one.journal.away, two.journal.away, hold.armed = False, False, True
        other.seen.clear()
        async with anyio.create_task_group() as tg:
            tg.start_soon(one.engine.sessions.get, run.session_id)
            with anyio.fail_after(GUARD):
                await hold.reached.wait()
                assert (await two.answer(run)).recovery == "pending"
                await two.tick()
            assert "journal.fence" not in other.seen
            hold.go.set()
        assert (await two.answer(run)).parts == PARTS


# ---- J4 ----


async def test_a_journal_that_is_still_arriving_uses_up_no_attempts(world: AnyWorld) -> None:
    """J4: however often it is read while it cannot be, over restarts too, the recovery stays pending, then succeeds."""
    run, since = await lost(world), world.clock.now()
    for _ in range(3):
        async with running((), world, journal_away=True) as it:
            for _ in range(4):
                world.clock.advance(600)
                await it.engine.sessions.get(run.session_id)
                await it.answer(run)
                await it.tick()
            assert (await it.row(run.id)).recovery == Recovery("pending", since=since, attempts=0)
            await check_pending(it, run)
            await it.crash()
    async with running((), world) as it:
        await check_recovered(it, run)


# ---- J5 ----


async def test_a_sealed_journal_without_output_is_given_up_after_some_attempts(world: AnyWorld) -> None:
    """J5: each look at a readable journal without output is an attempt; the last one makes the notice neutral."""
    run = await silent(world)
    async with running((), world, journal_away=True, tap=(tap := Tap())) as it:
        await check_pending(it, run)
        it.journal.away = False
        for attempts in (1, 2):
            await it.engine.sessions.get(run.session_id)
            recovery = (await it.row(run.id)).recovery
            assert recovery is not None
            assert (recovery.state, recovery.attempts) == ("pending", attempts)
        await it.engine.sessions.get(run.session_id)
        row, message = await it.row(run.id), await it.stored(run.message_id)
        assert (row.recovery, row.lease) == (Recovery("none"), None)
        assert (message.status, message.recovery, message.parts) == ("interrupted", "none", ())
        tap.seen.clear()
        await it.engine.sessions.get(run.session_id)
        await it.engine.runs.get(run.id)
        await it.tick()
        assert touched(tap) == []
    async with running((), world) as it:
        assert (await it.row(run.id)).recovery == Recovery("none")
        await check_idle(it, run)


async def test_the_maximum_of_attempts_can_be_set(world: AnyWorld) -> None:
    """J5: with a maximum of one, the first empty look is the last."""
    run = await silent(world)
    async with running((), world, journal_away=True, recovery=RecoveryPolicy(max_attempts=1)) as it:
        it.journal.away = False
        await it.engine.sessions.get(run.session_id)
        assert (await it.stored(run.message_id)).recovery == "none"


# ---- J6 ----


async def test_an_explicit_recover_looks_again(world: AnyWorld) -> None:
    """J6: given up, `recover` begins the search anew, which a later reader ends; then there is nothing to recover."""
    run = await lost(world)
    async with running((), world, journal_away=True) as it:
        world.clock.advance(DAY + 1)
        await it.engine.sessions.get(run.session_id)
        assert (await it.row(run.id)).recovery == Recovery("none")
        with pytest.raises(NotFoundError):
            await it.engine.runs.recover(run.id, OwnerId("somebody"))
        still = await it.engine.runs.recover(run.id)
        assert still.is_pending
        assert (await it.stored(run.message_id)).recovery == "pending"
        it.journal.away = False
        await it.engine.sessions.get(run.session_id)
        await check_recovered(it, run)
        with pytest.raises(NotAllowedError):
            await it.engine.runs.recover(run.id)


async def test_a_recover_is_not_undone_by_a_look_that_was_about_to_give_up(world: AnyWorld) -> None:
    """J6: a reader found the recovery too old; an explicit `recover` comes before it can say so, and stands."""
    run = await lost(world)
    hold = Hold(calls("store.transact", "_attempt"), when="after", armed=False)
    async with running((), world, journal_away=True, tap=hold) as it:
        world.clock.advance(DAY + 1)
        hold.armed = True
        async with anyio.create_task_group() as tg:
            tg.start_soon(it.engine.sessions.get, run.session_id)
            await hold.held()
            assert (await it.engine.runs.recover(run.id)).is_pending
            hold.go.set()
        await check_pending(it, run)
        it.journal.away = False
        await it.engine.sessions.get(run.session_id)
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
        assert (await it.engine.runs.recover(run.id)).recovery == Recovery("recovered")
        await check_recovered(it, run)


# ---- J7 ----


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("late", [False, True], ids=["at once", "late"])
async def test_a_torn_record_loses_itself_alone(sqlite: SqliteWorld, how: str, late: bool) -> None:
    """J7: the last record of a dead run is damaged: all before it is in the transcript, and the run is settled, also
    if the journal was away and comes back like this."""
    run = await lost(sqlite)
    tear(sqlite.path / "journal.db", run.id, how)
    async with running((), sqlite, journal_away=late) as it:
        if late:
            await check_pending(it, run)
            it.journal.away = False
        answer = await it.answer(run)
        assert (answer.recovery, answer.parts) == ("recovered" if late else None, PARTS[:2])
        await check_one_end(it, run, "interrupted")
        await check_idle(it, run)


async def test_a_torn_end_is_sealed_again(sqlite: SqliteWorld) -> None:
    """J7: it was the terminal event that tore: the run is interrupted, with all that was said."""
    run = await crash_before_settling(sqlite, SPOKEN[:3])
    tear(sqlite.path / "journal.db", run.id, "half")
    async with running((), sqlite) as it:
        assert (await it.answer(run)).parts == PARTS
        await check_one_end(it, run, "interrupted")


async def test_a_run_goes_on_after_a_torn_record(sqlite: SqliteWorld) -> None:
    """J7: automatic continue takes up a run from its last good event, and says the torn one again."""
    run = await lost(sqlite)
    tear(sqlite.path / "journal.db", run.id, "half")
    async with running(SPOKEN[:3], sqlite, recovery=RecoveryPolicy(auto_continue=True)) as it:
        assert (await it.ended(run.id)).status == "complete"
        assert (await it.answer(run)).parts == PARTS
        assert it.agent.effects == []
        assert [entry.seq for entry in await it.events(run.id)] == list(range(1, len(await it.events(run.id)) + 1))


async def test_damage_to_one_run_leaves_the_others_whole(sqlite: SqliteWorld) -> None:
    """J7: a torn record of one run touches no other run."""
    async with running(SPOKEN, sqlite) as it:
        first = await it.send_to_gate()
        second = await it.send()
        with anyio.fail_after(GUARD):
            while len(await it.events(second.id)) < 5 or len(await it.events(first.id)) < 5:
                await anyio.lowlevel.checkpoint()
        await it.crash()
    tear(sqlite.path / "journal.db", first.id, "half")
    async with running((), sqlite) as it:
        parts = {(await it.answer(run)).parts for run in (first, second)}
        assert parts == {PARTS, PARTS[:2]}


async def test_an_event_that_cannot_be_read_leaves_the_others_whole(world: AnyWorld) -> None:
    """J7: a whole record that this version cannot read (a newer one wrote it) touches no other run: theirs are settled,
    its own session can be read and used, and the output is sought until that is given up."""
    strange = Entry(3, b'id: 3\nevent: tool.started\ndata: {"call":"t"}\n\n')
    async with running([Say("half "), Meet("here"), Hang()], world) as it:
        bad, good = [await it.send() for _ in range(2)]
        for run in (bad, good):
            await it.collect(run.id, until=2)
        await it.journal.inner.append([Append(bad.id, 1, [strange])])
        assert (await it.answer(bad)).parts == ()
        await it.crash()
    async with running([Say("fine")], world) as it:
        assert (await it.stored(good.message_id)).parts == (TextPart("half "),)
        await check_one_end(it, good, "interrupted")
        message = await it.answer(bad)
        assert (message.status, message.recovery, message.parts) == ("interrupted", "pending", ())
        assert (await it.turn(bad)).status == "complete"
