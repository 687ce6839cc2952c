"""Automatic continue takes up runs that storage stopped: it was away for longer than they could wait for it."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from holdfast.agents.scripted_agent import CallTool, Hang, Meet, Say, ScriptedAgent
from holdfast.core.errors import StorageFullError
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.core.run import Run
from tests.engine.checks import check_idle, check_one_end, check_saved_once
from tests.harness import Running, Script, World, failure, running
from tests.storage_interceptors import Strike, When, appends

pytestmark = pytest.mark.anyio

SCRIPT: Script = [Say("a "), CallTool("t", result=1), Meet("here"), Say("b "), CallTool("u", result=2), Say("c")]
AUTO = RecoveryPolicy(auto_continue=True, max_resumes=1)
PATIENCE = 30.0
POLL = 5.0


async def given_up(it: Running, run: Run) -> None:
    """The journal goes away for longer than the run waits for it."""
    await it.reached("here")
    it.journal.away = True
    it.release("here")
    await not_executing(it)


async def not_executing(it: Running) -> None:
    while it.engine.supervisor.executing:  # noqa: ASYNC110  virtual time: nobody waits here
        await anyio.sleep(1)


async def ended(it: Running, run: Run) -> Run:
    """The run when it has ended. Sweeps as often as a server does, in virtual time."""
    with anyio.fail_after(3600.0):
        while (row := await it.row(run.id)).is_open:
            await anyio.sleep(30.0)
            await it.tick()
    return row


@pytest.mark.parametrize("seconds", [0.0, 600.0], ids=["back before the sweep", "away for long"])
async def test_it_goes_on_where_it_was_stopped(virtual: World, seconds: float) -> None:
    """X2, X5, J4: it is queued again and completes, however long the journal was away: attempts that only wait for it
    use up nothing. No tool runs twice."""
    async with running(SCRIPT, virtual, recovery=AUTO, storage_retry_time=PATIENCE, poll_interval=POLL) as it:
        run = await it.send()
        await given_up(it, run)
        assert (await it.row(run.id)).status == "running"
        with anyio.move_on_after(seconds):
            while True:
                await it.tick()
                assert (await it.row(run.id)).is_open
                await anyio.sleep(30.0)
        it.journal.away = False
        row = await ended(it, run)
        assert (row.status, row.intent, row.error, row.resumes) == ("complete", None, None, 1)
        assert it.agent.effects == ["t", "u"]
        assert await it.answer_text(run) == "a b c"
        await check_saved_once(it, run, "complete")
        await check_idle(it, run)


async def test_a_reader_finds_it_queued(virtual: World) -> None:
    """X2: it is never shown as running while nobody executes it; whoever looks puts it back into the queue."""
    async with running(SCRIPT, virtual, recovery=AUTO, storage_retry_time=PATIENCE, poll_interval=POLL) as it:
        run = await it.send()
        await given_up(it, run)
        it.journal.away = False
        seen = await it.engine.runs.get(run.id)
        assert seen.is_open
        assert seen.status == "queued" or seen.lease is not None
        assert (await it.until(run.id, "complete")).resumes == 1
        assert it.agent.effects == ["t", "u"]


@pytest.mark.parametrize("auto", [True, False])
async def test_what_was_never_written_is_not_lost(virtual: World, auto: bool) -> None:
    """X5: a turn that is sent while the journal is away and is given up before anything was written has an empty
    journal because it had none: continued, its tools need no leave to be repeated, and nothing is said to be lost."""
    policy = RecoveryPolicy(auto_continue=auto)
    script: Script = [Say("a "), CallTool("t", result=1), Say("b")]
    async with running(script, virtual, recovery=policy, storage_retry_time=PATIENCE, poll_interval=POLL) as it:
        it.journal.away = True
        run = await it.send()
        for _ in range(3):
            await not_executing(it)
            if auto:
                await it.tick()
                assert (await it.row(run.id)).is_open
        it.journal.away = False
        row = await ended(it, run)
        assert (row.status, row.recovery) == ("complete" if auto else "failed", None)
        assert it.agent.effects == (["t"] if auto else [])
        assert await it.answer_text(run) == ("a b" if auto else "")
        await check_one_end(it, run, row.status)


async def test_the_stop_of_a_person_counts(virtual: World) -> None:
    """C6: pressed after the run was given up and before it went on, Stop ends it."""
    async with running(
        SCRIPT, virtual, recovery=AUTO, storage_retry_time=PATIENCE, poll_interval=POLL, cancel_wait=0.0
    ) as it:
        run = await it.send()
        await given_up(it, run)
        it.journal.away = False
        intent = (await it.row(run.id)).intent
        assert intent is not None
        assert intent.is_outage
        await it.engine.runs.cancel(run.id)
        await ended(it, run)
        assert await it.outcome(run) == ("cancelled", "requested")
        assert it.agent.effects == ["t"]
        await check_one_end(it, run, "cancelled")


async def test_storage_that_never_takes_it_fails_it_in_the_end(virtual: World) -> None:
    """E1: the journal answers and refuses the same output each time: after as many attempts as automatic continue has,
    the run fails with the reason."""
    refusals = 0

    class Full(Strike):
        async def at(self, when: When, call: str, args: Sequence[Any]) -> None:
            nonlocal refusals
            if when == "before" and self.match(call, args):
                refusals += 1
                raise StorageFullError("The disk is full.")

    full = Full(appends("tool.started"), StorageFullError(""))
    async with running(
        [Say("a "), CallTool("t"), Hang()],
        virtual,
        recovery=AUTO,
        storage_retry_time=PATIENCE,
        poll_interval=POLL,
        tap=full,
    ) as it:
        run = await it.send()
        row = await ended(it, run)
        assert (row.status, row.reason, failure(row).code, row.resumes) == ("failed", "storage", "storage-full", 1)
        assert refusals >= 2
        assert it.agent.effects == []
        await check_one_end(it, run, "failed")


@pytest.mark.parametrize("why", ["off", "attached", "cannot resume"])
async def test_what_may_not_go_on_has_failed(virtual: World, why: str) -> None:
    """E1: as before, with automatic continue off, for attached runs and for agents that cannot resume."""
    policy = RecoveryPolicy(auto_continue=why != "off")
    agent = ScriptedAgent(SCRIPT, can_resume=why != "cannot resume")
    async with running(agent, virtual, recovery=policy, storage_retry_time=PATIENCE, poll_interval=POLL) as it:
        sid = await it.new_session()
        run = await it.send(sid, lifetime="attached" if why == "attached" else "detached")
        async with it.engine.connections.attached(run.id):
            await given_up(it, run)
            it.journal.away = False
            row = await ended(it, run)
        assert (row.status, failure(row).code, row.resumes) == ("failed", "storage-unavailable", 0)
