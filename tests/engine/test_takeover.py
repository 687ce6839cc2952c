"""Leases, the fence and takeover: several nodes on one store (`cluster`), whose clock decides about leases."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import trio
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted_agent import CallTool, Hang, Meet, Say, SayTokens
from holdfast.core.errors import AppendRefusedError
from holdfast.core.events import Entry, TextDelta
from holdfast.core.ids import NodeId, RunId
from holdfast.core.parts import TextPart
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.core.run import Run
from holdfast.core.transcript import fold
from holdfast.ports.wakeups import Wake
from holdfast.storage.in_memory import InMemoryWakeups
from holdfast.testing import FaultyWakeups
from tests.engine.checks import check_one_end, check_saved_once
from tests.harness import Running, Script, World, running, texts
from tests.storage_interceptors import Hold, appends, calls

pytestmark = pytest.mark.anyio

HALF: Script = [Say("half "), Meet("here"), Say("late"), CallTool("t"), Hang()]
LAPSE = 31.0
"""Longer than a lease."""
HOUR = 3600.0


@asynccontextmanager
async def two_nodes(world: World, script: Script = HALF, **changes: Any) -> AsyncIterator[tuple[Running, Running]]:
    """One that executes, and one that only looks."""
    async with (
        running(script, world, cluster=True, **changes) as worker,
        running((), world, cluster=True, max_runs=0, **changes) as other,
    ):
        yield worker, other


async def begun(worker: Running) -> Run:
    """A run that the worker executes; it has said something and stands at the gate."""
    run = await worker.send_to_gate()
    await worker.collect(run.id, until=2)
    return run


# ---- the fence ----


SCRIPTS: dict[str, Script] = {
    "says more": HALF,
    "waits for its upstream": [Say("half "), Meet("here"), Say("late"), Hang()],
    "completes": [Say("half "), Meet("here"), Say("whole")],
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
async def test_a_late_worker_cannot_append_after_takeover(memory: World, script: Script) -> None:
    """X1, C6, C7: the lease lapsed and another node ended the run: what its worker says after that, also that it is
    complete, reaches no one, and the worker stops at once, not when its upstream next says something."""
    async with two_nodes(memory, script) as (worker, other):
        run = await begun(worker)
        memory.clock.advance(LAPSE)
        await other.tick()
        settled = await other.row(run.id), await other.stored(run.message_id), await other.events(run.id)
        assert (settled[0].status, settled[0].epoch > 1) == ("interrupted", True)
        assert settled[1].parts == (TextPart("half "),)
        worker.release("here")
        await worker.idle()
        assert (worker.agent.upstreams, worker.agent.effects) == (0, [])
        await worker.tick()
        assert (await other.row(run.id), await other.stored(run.message_id), await other.events(run.id)) == settled
        await check_saved_once(other, run, "interrupted")


@pytest.mark.parametrize("held_at", ["append", "settling"])
async def test_the_worker_was_faster(memory: World, held_at: str) -> None:
    """C6: the worker sealed the run before the takeover's fence: its end is settled once, whoever does it, also if the
    worker comes to it afterwards."""
    sealing = Hold(appends("run.complete"), when="after")
    hold = sealing if held_at == "append" else Hold(calls("store.transact", "_settle"))
    async with (
        running([Say("whole")], memory, cluster=True, tap=hold) as worker,
        running((), memory, cluster=True, max_runs=0) as other,
    ):
        run = await worker.send()
        await hold.held()
        memory.clock.advance(LAPSE)
        await other.tick()
        await check_saved_once(other, run, "complete")
        hold.go.set()
        await worker.idle()
        await check_saved_once(other, run, "complete")


async def test_a_run_that_goes_on_stays_held_while_others_are_ended(memory: World) -> None:
    """X2: of the runs of a node that is gone one is continued, and executed before the others are ended: it is not
    taken for a run that nobody executes."""
    async with running([Say("a "), Meet("here")], memory, cluster=True) as gone:
        goes_on = await gone.send_and_see(2)
        ends = await gone.send(lifetime="attached")
        hold = Hold(lambda call, args: call == "journal.fence" and ends.id in args[0])
        script: Script = [Say("a "), Meet("here"), Say("b")]
        async with running(
            script, memory, cluster=True, tap=hold, recovery=RecoveryPolicy(auto_continue=True)
        ) as successor:
            await gone.crash()
            memory.clock.advance(LAPSE)
            async with anyio.create_task_group() as tg:
                tg.start_soon(successor.tick)
                await successor.reached("here")
                hold.go.set()
            before = await successor.row(goes_on.id)
            await successor.tick()
            assert await successor.row(goes_on.id) == before
            successor.release("here")
            assert (await successor.ended(goes_on.id)).status == "complete"
            assert not (await successor.row(ends.id)).is_open


async def test_what_is_put_back_is_claimed_at_once(virtual: World) -> None:
    """X2: with automatic continue another node goes on with the run of one that is gone, without waiting for somebody
    to look by chance, and repeats no tool."""
    async with running([Say("a "), CallTool("t"), Meet("here")], virtual, cluster=True) as gone:
        run = await gone.send_and_see(4)
        await gone.crash()
    script: Script = [Say("a "), CallTool("t"), Say("b")]
    auto = RecoveryPolicy(auto_continue=True)
    async with running(script, virtual, cluster=True, poll_interval=HOUR, recovery=auto) as successor:
        virtual.clock.advance(LAPSE)
        began = trio.current_time()
        await successor.tick()
        assert (await successor.ended(run.id)).status == "complete"
        assert trio.current_time() - began < 60
        assert successor.agent.effects == []
        assert await successor.answer_text(run) == "a b"


# ---- the journal is away at the takeover ----


async def test_without_the_fence_nothing_is_settled(memory: World) -> None:
    """J1: the node that takes over cannot write the fence: the run is pending there, and its journal untouched."""
    async with two_nodes(memory) as (worker, other):
        run = await begun(worker)
        memory.clock.advance(LAPSE)
        other.journal.away = True
        await other.tick()
        row, message = await other.row(run.id), await other.stored(run.message_id)
        assert (row.status, message.recovery, message.parts) == ("interrupted", "pending", ())
        assert await other.types(run.id) == ["run.started", "text.delta"]
        assert (await other.engine.sessions.get(run.session_id)).active_run is None
        other.journal.away = False
        await other.tick()
        assert (await other.stored(run.message_id)).parts == (TextPart("half "),)
        await check_one_end(other, run, "interrupted")


async def test_a_worker_that_was_believed_dead_decides_the_end(memory: World) -> None:
    """J2: the run is shown as pending; its worker lives, does not hear of it and completes it: that is the status."""
    memory.wakeups = deaf = FaultyWakeups(InMemoryWakeups())
    deaf.deaf = True
    async with two_nodes(memory, [Say("half "), Meet("here"), Say("whole")]) as (worker, other):
        run = await begun(worker)
        memory.clock.advance(LAPSE)
        other.journal.away = True
        await other.tick()
        assert (await other.row(run.id)).is_pending
        worker.release("here")
        await worker.idle()
        other.journal.away = False
        await other.tick()
        row = await other.row(run.id)
        assert (row.status, row.is_pending) == ("complete", False)
        assert await other.answer_text(run) == "half whole"
        await check_one_end(other, run, "complete")


# ---- heartbeats, in virtual time ----


async def closed(node: Running) -> None:
    """Until the node has let go of its upstreams, looked at every virtual second."""
    with anyio.fail_after(HOUR):
        while node.agent.upstreams:  # noqa: ASYNC110  virtual time: nobody waits here
            await anyio.sleep(1)


async def test_heartbeats_keep_the_lease(virtual: World) -> None:
    """X2: a living node's run is not taken over, however long it takes and however often the others look."""
    script: Script = [SayTokens(100, rate=0.1)]
    async with two_nodes(virtual, script, sweep_interval=7.0, poll_interval=5.0) as (worker, other):
        run = await worker.send()
        got = await other.collect(run.id, within=HOUR)
        assert got[-1].type == "run.complete"
        assert (await other.ended(run.id)).epoch == 1
        assert texts(fold(got).parts) == "".join(f"t{n} " for n in range(100))


async def test_a_node_that_cannot_renew_stops_its_runs(virtual: World) -> None:
    """X2: in doubt about its lease a node stops, before the lease lapses and another takes over."""
    async with two_nodes(virtual, [Say("half "), Meet("here"), Hang()], poll_interval=5.0) as (worker, other):
        run = await begun(worker)
        worker.store.away = True
        lost_at = trio.current_time()
        await closed(worker)
        lease = (await other.row(run.id)).lease
        assert lease is not None
        assert lease.until is not None
        assert virtual.clock.now() < lease.until
        assert trio.current_time() - lost_at <= 30
        assert await other.types(run.id) == ["run.started", "text.delta"]


async def test_an_attached_run_ends_when_the_node_of_its_connection_is_gone(virtual: World) -> None:
    """L3: a run executed on one node for a client of another ends when that other node is gone."""
    async with running(
        [Say("half "), Meet("here"), Hang()], virtual, cluster=True, sweep_interval=10.0, poll_interval=5.0
    ) as worker:
        async with running((), virtual, cluster=True, max_runs=0, poll_interval=5.0) as face:
            run = await face.send(lifetime="attached")
            await worker.reached("here")
            await face.crash()
        row = await worker.until(run.id, "cancelled", "interrupted", within=HOUR)
        assert (row.status, row.reason) == ("cancelled", "disconnected")


async def test_a_connection_that_is_held_keeps_an_attached_run(virtual: World) -> None:
    """L3: as long as the client is connected anywhere, its run goes on, also if it is executed elsewhere."""
    script: Script = [SayTokens(60, rate=0.1)]
    async with two_nodes(virtual, script, sweep_interval=10.0, poll_interval=5.0) as (_, face):
        run = await face.send(lifetime="attached")
        async with face.engine.connections.attached(run.id):
            got = await face.collect(run.id, within=HOUR)
        assert got[-1].type == "run.complete"


async def test_lost_wakeups_heal_by_looking(virtual: World) -> None:
    """L7: with every hint between nodes lost, turns are claimed, watched, cancelled and answered all the same."""
    deaf = FaultyWakeups(InMemoryWakeups())
    deaf.deaf = True
    script: Script = [Say("half "), CallTool("t", asks=True), Say("more "), Meet("here"), Hang()]
    async with (
        running(script, virtual, cluster=True, wakeups=deaf, poll_interval=5.0, sweep_interval=30.0) as worker,
        running((), virtual, cluster=True, wakeups=deaf, poll_interval=5.0, sweep_interval=30.0, max_runs=0) as face,
    ):
        got: list[str] = []

        async def client() -> None:
            got.extend(entry.type for entry in await face.collect(run.id, within=HOUR))

        async def feed() -> None:
            changes = face.engine.subscriptions.watch_changes(cursor)
            while "cancelled" not in heard:
                found = await changes.next()
                assert found is not None
                heard.extend(str(change.status) for change in found.items)

        heard: list[str] = []
        newest = (await face.store.inner.read(lambda tx: tx.change_bounds()))[1]
        cursor = f"{face.store.generation}-{newest}"
        run = await face.send()
        with anyio.fail_after(HOUR):
            async with anyio.create_task_group() as tg:
                tg.start_soon(client)
                tg.start_soon(feed)
                await face.until(run.id, "waiting", within=60)
                await face.decide(run, "once")
                with anyio.fail_after(60):
                    await worker.agent.gate("here").reached.wait()
                assert (await face.engine.runs.cancel(run.id)).cancel_requested
                await face.until(run.id, "cancelled", within=60)
        assert got == await worker.types(run.id)
        assert worker.agent.effects == ["t"]
        assert {"waiting", "running"} <= set(heard)
        await check_saved_once(face, run, "cancelled")


async def test_a_node_that_missed_hints_looks_at_everything(virtual: World) -> None:
    """L7, C7: while a node could not be heard its run was cancelled elsewhere, and one that it follows went on: told
    that something was missed, it looks, and waits for no tick."""
    deaf = FaultyWakeups(InMemoryWakeups())
    patient: dict[str, Any] = {
        "wakeups": deaf,
        "poll_interval": HOUR,
        "sweep_interval": HOUR,
        "lease_time": 10 * HOUR,
        "cancel_wait": 1.0,
    }
    script: Script = [Say("half "), Meet("here"), Say("more "), Hang()]
    async with two_nodes(virtual, script, **patient) as (worker, other):
        run = await begun(worker)
        got: list[Entry] = []
        async with anyio.create_task_group() as tg:
            await tg.start(other.follow, run.id, got)
            with anyio.fail_after(1.0):
                while len(got) < 2:
                    await checkpoint()
            deaf.deaf = True
            worker.release("here")
            await worker.collect(run.id, until=3)
            assert len(got) == 2
            assert (await other.engine.runs.cancel(run.id)).is_open
            deaf.deaf = False
            await deaf.notify(NodeId("a third"), [Wake("control"), Wake("appended")])
            await worker.until(run.id, "cancelled", within=1.0)
        assert got == await worker.events(run.id)


# ---- L7: any node ----


@pytest.mark.parametrize(("how", "reason"), [("cancel", "requested"), ("undo", "superseded")])
async def test_a_run_is_stopped_through_any_node(memory: World, how: str, reason: str) -> None:
    """L7, O1: cancelled or undone on another node, the upstream is closed where it is open."""
    async with two_nodes(memory, [Say("half "), Meet("here"), Hang()]) as (worker, other):
        run = await begun(worker)
        if how == "cancel":
            assert (await other.engine.runs.cancel(run.id)).status == "cancelled"
        else:
            await other.engine.sessions.undo(run.session_id)
        assert (await other.until(run.id, "cancelled")).reason == reason
        assert worker.agent.upstreams == 0
        assert texts((await other.stored(run.message_id)).parts) == "half "
        await check_saved_once(other, run, "cancelled")


async def test_two_executions_of_a_run_do_not_share_a_commit(memory: World) -> None:
    """After an outage, the output of an execution and of its successor may be committed at the same time: one of them
    counts, and the writer goes on for all other runs."""
    async with running([Say("hello")], memory) as it:
        before, after = (it.engine.writer.buffer(RunId("run_twice"), epoch, 0) for epoch in (1, 2))
        before.add(TextDelta("old"))
        after.add(TextDelta("new"))
        await before.wait_until_durable()
        with pytest.raises(AppendRefusedError):
            await after.wait_until_durable()
        run = await it.send()
        await it.until(run.id, "complete")
