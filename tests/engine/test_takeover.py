"""Leases, the fence and takeover: several nodes on one store (`cluster`), whose clock judges the leases."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import trio
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted import Call, Hang, Meet, Say, ScriptedAgent, Tokens
from holdfast.core.events import Entry, TextDelta
from holdfast.core.ids import LOCAL, NodeId
from holdfast.core.parts import Text, Tool
from holdfast.core.recovery import Policy
from holdfast.core.run import Run
from holdfast.core.transcript import fold
from holdfast.ports import Out, SessionQuery, Turn, Wake
from holdfast.storage.memory import MemoryWakeups
from holdfast.testing import FaultyWakeups
from tests.engine.checks import check_idle, check_one_end, check_saved_once
from tests.harness import GUARD, Freehand, Hold, Running, Script, World, appends, collect, follow, running, texts

pytestmark = pytest.mark.anyio

HALF: Script = [Say("half "), Meet("here"), Say("late"), Call("t"), Hang()]
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
    run = await worker.send(await worker.new_session())
    await worker.reached("here")
    await collect(worker.service, run.id, until=2)
    return run


# ---- the fence ----


async def test_a_late_worker_cannot_append_after_takeover(memory: World) -> None:
    """X1: the lease lapsed and another node ended the run: what its worker says after that reaches no one."""
    async with two_nodes(memory) as (worker, other):
        run = await begun(worker)
        memory.clock.advance(LAPSE)
        await other.tick()
        settled = await other.row(run.id), await other.stored(run.message_id), await other.events(run.id)
        assert settled[0].status == "interrupted"
        assert settled[1].parts == (Text("half "),)
        assert settled[0].epoch > 1
        worker.release("here")
        with anyio.fail_after(GUARD):
            while worker.engine.supervisor.executing:
                await checkpoint()
        assert worker.agent.upstreams == 0
        assert worker.agent.effects == []
        await worker.tick()
        after = await other.row(run.id), await other.stored(run.message_id), await other.events(run.id)
        assert after == settled
        await check_saved_once(other, run, "interrupted")


async def test_a_worker_that_was_fenced_is_stopped_in_the_middle_of_an_await(memory: World) -> None:
    """C7: a worker whose append is refused by the fence stops at once, not when its upstream next says something."""
    async with two_nodes(memory, [Say("half "), Meet("here"), Say("late"), Hang()]) as (worker, other):
        await begun(worker)
        memory.clock.advance(LAPSE)
        await other.tick()
        worker.release("here")
        with anyio.fail_after(GUARD):
            while worker.agent.upstreams:
                await checkpoint()


async def test_a_late_end_does_not_overwrite_the_takeover(memory: World) -> None:
    """C6: the worker completes after another node sealed the run as interrupted: the first end counts."""
    async with two_nodes(memory, [Say("half "), Meet("here"), Say("whole")]) as (worker, other):
        run = await begun(worker)
        memory.clock.advance(LAPSE)
        await other.tick()
        worker.release("here")
        with anyio.fail_after(GUARD):
            while worker.engine.supervisor.executing:
                await checkpoint()
        await worker.tick()
        await check_saved_once(other, run, "interrupted")
        assert texts((await other.answer(run.session_id)).parts) == "half "


async def test_the_worker_was_faster(memory: World) -> None:
    """C6: the worker sealed the run before the takeover's fence: its end is settled, whoever does it."""
    hold = Hold(appends("run.complete"), when="after")
    async with (
        running([Say("whole")], memory, cluster=True, tap=hold) as worker,
        running((), memory, cluster=True, max_runs=0) as other,
    ):
        run = await worker.send(await worker.new_session())
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
        memory.clock.advance(LAPSE)
        await other.tick()
        await check_saved_once(other, run, "complete")
        hold.go.set()
        with anyio.fail_after(GUARD):
            while worker.engine.supervisor.executing:
                await checkpoint()
        await check_saved_once(other, run, "complete")


async def test_two_nodes_that_take_over_at_once_end_the_run_once(memory: World) -> None:
    """X3: of several nodes that find a dead run, one ends it."""
    async with running(HALF, memory, cluster=True) as worker:
        run = await begun(worker)
        await worker.crash()
    async with (
        running((), memory, cluster=True, max_runs=0) as one,
        running((), memory, cluster=True, max_runs=0) as two,
    ):
        memory.clock.advance(LAPSE)
        async with anyio.create_task_group() as tg:
            for node in (one, two, one, two):
                tg.start_soon(node.tick)
                tg.start_soon(node.service.session, run.session_id)
        await check_saved_once(one, run, "interrupted")
        await check_idle(two, run.session_id)


async def test_a_run_is_executed_by_one_node(memory: World) -> None:
    """X5: nodes that claim at the same time share the work; no turn is executed twice."""
    script: Script = [Call("t"), Say("done")]
    async with running(script, memory, cluster=True) as one, running(script, memory, cluster=True) as two:
        runs = [await one.send(await one.new_session()) for _ in range(20)]
        for run in runs:
            assert (await two.ended(run.id)).status == "complete"
            await check_saved_once(one, run, "complete")
        assert len(one.agent.effects) + len(two.agent.effects) == 20


async def test_a_lapsed_lease_is_continued_elsewhere_if_that_is_on(memory: World) -> None:
    """X2: with automatic continue another node goes on with the run of one that is gone, and repeats no tool."""
    async with running([Say("a "), Call("t"), Meet("here")], memory, cluster=True) as gone:
        run = await gone.send(await gone.new_session())
        await collect(gone.service, run.id, until=4)
        await gone.crash()
    memory.clock.advance(LAPSE)
    script: Script = [Say("a "), Call("t"), Say("b")]
    async with running(script, memory, cluster=True, recovery=Policy(auto_continue=True)) as heir:
        assert (await heir.ended(run.id)).status == "complete"
        assert heir.agent.effects == []
        assert texts((await heir.answer(run.session_id)).parts) == "a b"


async def test_a_run_that_goes_on_stays_held_while_others_are_ended(memory: World) -> None:
    """X2: of the runs of a node that is gone one is continued, and executed before the others are ended: it is not
    taken for a run that nobody executes."""
    async with running([Say("a "), Meet("here")], memory, cluster=True) as gone:
        goes_on = await gone.send(await gone.new_session())
        await collect(gone.service, goes_on.id, until=2)
        ends = await gone.send(await gone.new_session(), lifetime="attached")
        hold = Hold(lambda call, args: call == "journal.fence" and ends.id in args[0])
        script: Script = [Say("a "), Meet("here"), Say("b")]
        async with running(script, memory, cluster=True, tap=hold, recovery=Policy(auto_continue=True)) as heir:
            await gone.crash()
            memory.clock.advance(LAPSE)
            async with anyio.create_task_group() as tg:
                tg.start_soon(heir.tick)
                await heir.reached("here")
                hold.go.set()
            before = await heir.row(goes_on.id)
            await heir.tick()
            assert await heir.row(goes_on.id) == before
            heir.release("here")
            assert (await heir.ended(goes_on.id)).status == "complete"
            assert not (await heir.row(ends.id)).is_open


async def test_what_is_put_back_is_claimed_at_once(virtual: World) -> None:
    """X2: a run that goes on by itself does not wait for somebody to look by chance, on whatever node there is room."""
    async with running([Say("a "), Meet("here")], virtual, cluster=True) as gone:
        run = await gone.send(await gone.new_session())
        await collect(gone.service, run.id, until=2)
        await gone.crash()
    auto = Policy(auto_continue=True)
    async with running([Say("a "), Say("b")], virtual, cluster=True, poll=HOUR, recovery=auto) as heir:
        virtual.clock.advance(LAPSE)
        began = trio.current_time()
        await heir.tick()
        assert (await heir.ended(run.id)).status == "complete"
        assert trio.current_time() - began < 60


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
        assert (await other.service.session(run.session_id)).active_run is None
        other.journal.away = False
        await other.tick()
        assert (await other.stored(run.message_id)).parts == (Text("half "),)
        await check_one_end(other, run, "interrupted")


async def test_a_worker_that_was_believed_dead_decides_the_end(memory: World) -> None:
    """J2: the run is shown as pending; its worker lives, does not hear of it and completes it: that is the status."""
    memory.wakeups = deaf = FaultyWakeups(MemoryWakeups())
    deaf.deaf = True
    async with two_nodes(memory, [Say("half "), Meet("here"), Say("whole")]) as (worker, other):
        run = await begun(worker)
        memory.clock.advance(LAPSE)
        other.journal.away = True
        await other.tick()
        assert (await other.row(run.id)).is_pending
        worker.release("here")
        with anyio.fail_after(GUARD):
            while worker.engine.supervisor.executing:
                await checkpoint()
        other.journal.away = False
        await other.tick()
        row = await other.row(run.id)
        assert (row.status, row.is_pending) == ("complete", False)
        assert texts((await other.answer(run.session_id)).parts) == "half whole"
        await check_one_end(other, run, "complete")


# ---- heartbeats, in virtual time ----


async def closed(node: Running) -> None:
    """Until the node has let go of its upstreams, looked at every virtual second."""
    with anyio.fail_after(HOUR):
        while node.agent.upstreams:  # noqa: ASYNC110  virtual time: nobody waits here
            await anyio.sleep(1)


async def test_heartbeats_keep_the_lease(virtual: World) -> None:
    """X2: a living node's run is not taken over, however long it takes and however often the others look."""
    script: Script = [Tokens(100, rate=0.1)]
    async with two_nodes(virtual, script, sweep=7.0, poll=5.0) as (worker, other):
        run = await worker.send(await worker.new_session())
        got = await collect(other.service, run.id, within=HOUR)
        assert got[-1].type == "run.complete"
        assert (await other.ended(run.id)).epoch == 1
        assert texts(fold(got).parts) == "".join(f"t{n} " for n in range(100))


async def test_a_node_that_cannot_renew_stops_its_runs(virtual: World) -> None:
    """X2: in doubt about its lease a node stops, before the lease lapses and another takes over."""
    async with two_nodes(virtual, [Say("half "), Meet("here"), Hang()], poll=5.0) as (worker, other):
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


async def test_the_run_of_a_node_that_was_cut_off_is_settled_by_another(virtual: World) -> None:
    """X2: the sweep of any other node ends it, without anybody asking."""
    async with two_nodes(virtual, [Say("half "), Meet("here"), Hang()], sweep=10.0, poll=5.0) as (worker, other):
        run = await begun(worker)
        worker.store.away = worker.journal.away = True
        await other.until(run.id, "interrupted", within=120)
        await check_saved_once(other, run, "interrupted")
        worker.store.away = worker.journal.away = False
        await anyio.sleep(120)
        await check_saved_once(other, run, "interrupted")


async def test_an_attached_run_ends_when_the_node_of_its_connection_is_gone(virtual: World) -> None:
    """L3: a run executed on one node for a client of another ends when that other node is gone."""
    async with running([Say("half "), Meet("here"), Hang()], virtual, cluster=True, sweep=10.0, poll=5.0) as worker:
        async with running((), virtual, cluster=True, max_runs=0, poll=5.0) as face:
            run = await face.send(await face.new_session(), lifetime="attached")
            await worker.reached("here")
            await face.crash()
        row = await worker.until(run.id, "cancelled", "interrupted", within=HOUR)
        assert (row.status, row.reason) == ("cancelled", "disconnected")


async def test_a_connection_that_is_held_keeps_an_attached_run(virtual: World) -> None:
    """L3: as long as the client is connected anywhere, its run goes on, also if it is executed elsewhere."""
    script: Script = [Tokens(60, rate=0.1)]
    async with two_nodes(virtual, script, sweep=10.0, poll=5.0) as (_, face):
        run = await face.send(await face.new_session(), lifetime="attached")
        async with face.service.attached(run.id):
            got = await collect(face.service, run.id, within=HOUR)
        assert got[-1].type == "run.complete"


async def test_lost_wakeups_heal_by_looking(virtual: World) -> None:
    """L7: with every hint between nodes lost, turns are claimed, watched, cancelled and answered all the same."""
    deaf = FaultyWakeups(MemoryWakeups())
    deaf.deaf = True
    script: Script = [Say("half "), Call("t", asks=True), Say("more "), Meet("here"), Hang()]
    async with (
        running(script, virtual, cluster=True, wakeups=deaf, poll=5.0, sweep=30.0) as worker,
        running((), virtual, cluster=True, wakeups=deaf, poll=5.0, sweep=30.0, max_runs=0) as face,
    ):
        got: list[str] = []

        async def client() -> None:
            got.extend(entry.type for entry in await collect(face.service, run.id, within=HOUR))

        async def feed() -> None:
            changes = face.service.watch_changes(cursor)
            while "cancelled" not in heard:
                found = await changes.next()
                assert found is not None
                heard.extend(str(change.status) for change in found.items)

        heard: list[str] = []
        newest = (await face.store.inner.read(lambda tx: tx.change_bounds()))[1]
        cursor = f"{face.store.generation}-{newest}"
        run = await face.send(await face.new_session())
        with anyio.fail_after(HOUR):
            async with anyio.create_task_group() as tg:
                tg.start_soon(client)
                tg.start_soon(feed)
                await face.until(run.id, "waiting", within=60)
                await face.service.decide(run.id, (await face.question(run.id)).id, "once")
                with anyio.fail_after(60):
                    await worker.agent.gate("here").reached.wait()
                assert (await face.service.cancel(run.id)).cancel_requested
                await face.until(run.id, "cancelled", within=60)
        assert got == await worker.types(run.id)
        assert worker.agent.effects == ["t"]
        assert {"waiting", "running"} <= set(heard)
        await check_saved_once(face, run, "cancelled")


async def test_a_node_that_missed_hints_looks_at_everything(virtual: World) -> None:
    """L7, C7: while a node could not be heard its run was cancelled elsewhere, and one that it follows went on: told
    that something was missed, it looks, and waits for no tick."""
    deaf = FaultyWakeups(MemoryWakeups())
    patient: dict[str, Any] = {"wakeups": deaf, "poll": HOUR, "sweep": HOUR, "lease_time": 10 * HOUR}
    script: Script = [Say("half "), Meet("here"), Say("more "), Hang()]
    async with two_nodes(virtual, script, **patient) as (worker, other):
        run = await begun(worker)
        got: list[Entry] = []
        async with anyio.create_task_group() as tg:
            await tg.start(follow, other.service, run.id, got)
            with anyio.fail_after(1.0):
                while len(got) < 2:
                    await checkpoint()
            deaf.deaf = True
            worker.release("here")
            await collect(worker.service, run.id, until=3)
            assert len(got) == 2
            assert (await other.service.cancel(run.id)).is_open
            deaf.deaf = False
            await deaf.notify(NodeId("a third"), [Wake("control"), Wake("appended")])
            await worker.until(run.id, "cancelled", within=1.0)
        assert got == await worker.events(run.id)


# ---- L7: any node ----


async def test_a_run_is_watched_and_resumed_through_any_node(memory: World) -> None:
    """L7: a client that moves from node to node sees every event once, live."""

    async def play(turn: Turn, out: Out) -> str | None:
        for n in range(40):
            await out.write(TextDelta(f"{n} "))
            await checkpoint()
        return "stop"

    async with (
        running((), memory, cluster=True, agents={"chat": Freehand(play)}) as worker,
        running((), memory, cluster=True, max_runs=0) as two,
        running((), memory, cluster=True, max_runs=0) as three,
    ):
        run = await two.send(await two.new_session())
        nodes = [worker, two, three]
        got = await collect(two.service, run.id, until=1)
        hop = 0
        while not got[-1].ends:
            hop += 1
            got += await collect(nodes[hop % 3].service, run.id, after=got[-1].seq, until=got[-1].seq + 1)
        assert got == await worker.events(run.id)


async def test_a_run_is_stopped_through_any_node(memory: World) -> None:
    """L7: cancelled on another node, the upstream is closed where it is open, before the answer."""
    async with two_nodes(memory, [Say("half "), Meet("here"), Hang()]) as (worker, other):
        run = await begun(worker)
        answer = await other.service.cancel(run.id)
        assert (answer.status, worker.agent.upstreams) == ("cancelled", 0)
        assert texts((await other.answer(run.session_id)).parts) == "half "
        await check_saved_once(other, run, "cancelled")


async def test_a_question_is_answered_through_any_node(memory: World) -> None:
    """L7: the decision made on one node is taken up on another, also by an agent that kept its task."""
    for can_continue in (True, False):
        agent = ScriptedAgent([Call("t", asks=True), Say("done")], can_continue=can_continue)
        async with (
            running(agent, memory, cluster=True) as worker,
            running(agent, memory, cluster=True, max_runs=0) as other,
        ):
            run = await other.send(await other.new_session())
            await other.until(run.id, "waiting")
            await other.service.decide(run.id, (await other.question(run.id)).id, "once")
            assert (await other.ended(run.id)).status == "complete"
            assert agent.effects == ["t"]
            (part, _) = (await worker.answer(run.session_id)).parts
            assert isinstance(part, Tool)


async def test_an_edit_on_another_node_stops_the_run(memory: World) -> None:
    """O1: undo through a node that does not execute the run ends it where it is executed."""
    async with two_nodes(memory, [Say("half "), Meet("here"), Hang()]) as (worker, other):
        run = await begun(worker)
        await other.service.undo(run.session_id)
        assert (await other.until(run.id, "cancelled")).reason == "superseded"
        assert worker.agent.upstreams == 0


async def test_every_node_shows_the_same(memory: World) -> None:
    """X4: session, list and messages are the same through every node."""
    async with two_nodes(memory, [Say("whole")]) as (worker, other):
        sid = await worker.new_session()
        await worker.turn(sid)
        assert await worker.service.messages(sid) == await other.service.messages(sid)
        assert await worker.service.session(sid) == await other.service.session(sid)
        query = SessionQuery(LOCAL)
        assert await worker.service.sessions(query) == await other.service.sessions(query)
