"""Runs that are claimed when they are accepted, or whose claim the store did not acknowledge: each is executed once."""

import anyio
import pytest

from holdfast.agents.scripted_agent import Meet, Say
from holdfast.core.errors import NotFoundError, StorageError
from holdfast.core.ids import SessionId
from holdfast.core.parts import TextPart
from holdfast.testing import Fault
from tests.harness import World, in_turn, running
from tests.storage_interceptors import GUARD, Hold, calls

pytestmark = pytest.mark.anyio

SLOW = 3600.0
"""Seconds between looks that nobody asked for: none happens in a test."""


async def test_a_queued_run_in_doubt_is_executed_once(memory: World) -> None:
    """A3: the commit that queued it was reported as failed, and the claim loop claims it while it looks for it."""
    script = in_turn([Meet("on"), Say("first")], [Say("second")])
    async with running(script, memory, poll_interval=SLOW, sweep_interval=SLOW, storage_retry_time=SLOW) as it:
        first = await it.send_to_gate(gate="on")
        it.store.plan = {("transact", it.store.calls["transact"] + 1): Fault("doubt")}
        with pytest.raises(StorageError):
            await it.engine.runs.submit(first.session_id, [TextPart("again")], key="k")
        it.release("on")
        queued = (await it.engine.runs.submit(first.session_id, [TextPart("again")], key="k")).run
        assert (await it.until(queued.id, "complete")).epoch == 1
        assert [turn.run.id for turn in it.agent.turns].count(queued.id) == 1


async def test_a_turn_that_is_being_accepted_at_shutdown_is_executed_later(memory: World) -> None:
    """A3 L2: the engine waits for it, and requeues it for the next process."""
    hold = Hold(calls("store.transact", "Runs._accept"), armed=False)
    async with running([Say("done")], memory, tap=hold) as it, anyio.create_task_group() as clients:
        sid = await it.new_session()
        await it.idle()
        hold.armed = True
        clients.start_soon(it.engine.runs.submit, sid, [TextPart("hi")])
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
            it.engine.stop()
            await anyio.wait_all_tasks_blocked()
            assert not it.finished.is_set()
            hold.go.set()
            await it.finished.wait()
        (run,) = await it.store.read(lambda tx: tx.open_runs(sid))
        assert (run.status, run.lease) == ("queued", None)
    async with running([Say("done")], memory) as heir:
        row = await heir.until(run.id, "complete")
        assert row.recovery is None


async def test_room_that_a_claim_may_fill_is_not_given_away(memory: World) -> None:
    """A3: a new turn does not overtake one that is being claimed, nor exceed the number of runs."""
    hold = Hold(calls("store.transact", "_claim_and_start"), armed=False)
    async with running(
        [Meet("on"), Say("done")], memory, tap=hold, max_runs=1, poll_interval=SLOW, sweep_interval=SLOW
    ) as it:
        await it.send_to_gate(gate="on")
        queued = await it.send()
        session = await it.new_session()
        await anyio.wait_all_tasks_blocked()
        hold.armed = True
        it.release("on")
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
            later = await it.send(session)
            assert later.status == "queued"
            hold.go.set()
            await it.until(queued.id, "running", "complete")


async def test_a_settling_in_doubt_has_its_consequences(memory: World) -> None:
    """A3: the commit that settled a run is reported as failed and repeated: the next turn starts at once, and a title
    is asked for."""
    script = in_turn([Meet("on"), Say("first")], [Say("second")])
    async with running(script, memory, poll_interval=SLOW, sweep_interval=SLOW, storage_retry_time=SLOW) as it:
        first = await it.send_to_gate(gate="on")
        queued = await it.send(first)
        await anyio.wait_all_tasks_blocked()
        it.store.plan = {("transact", it.store.calls["transact"] + 1): Fault("doubt")}
        it.release("on")
        await it.until(queued.id, "complete")
        assert {session.id for session in it.engine.settler.untitled} == {first.session_id}


async def test_a_refused_turn_gives_its_place_back_at_once(memory: World) -> None:
    """A3: with the only place reserved, another turn is queued, and starts when the first is refused."""
    hold = Hold(calls("store.transact", "Runs._accept"), armed=False)
    async with running([Say("done")], memory, tap=hold, max_runs=1, poll_interval=SLOW, sweep_interval=SLOW) as it:
        session = await it.new_session()
        await it.idle()
        hold.armed = True

        async def refused() -> None:
            with pytest.raises(NotFoundError):
                await it.engine.runs.submit(SessionId("ses_none"), [TextPart("hi")])

        async with anyio.create_task_group() as clients:
            clients.start_soon(refused)
            with anyio.fail_after(GUARD):
                await hold.reached.wait()
                queued = await it.send(session)
                assert queued.status == "queued"
                hold.go.set()
        await it.until(queued.id, "complete")
