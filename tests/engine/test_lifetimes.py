"""Section L: a detached run outlives its clients, an attached one ends with its client, a subscriber is a cursor."""

import contextlib
import tracemalloc

import anyio
import pytest
from anyio.abc import TaskStatus
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted_agent import Action, CallTool, Hang, Meet, Say, ScriptedAgent, Think
from holdfast.core.errors import CursorAheadError, InvalidInputError, NotFoundError, StorageUnavailableError
from holdfast.core.events import Entry, TextDelta
from holdfast.core.ids import OwnerId, RunId
from holdfast.core.parts import TextPart
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.core.run import Lifetime
from holdfast.core.transcript import fold
from holdfast.ports.agent import AgentOutput, Turn
from tests.engine.checks import check_idle, check_one_end, check_saved_once
from tests.harness import AnyWorld, Running, Script, SqliteWorld, World, running, texts
from tests.storage_interceptors import GUARD, Both, Hold, appends, calls

pytestmark = pytest.mark.anyio

AUTO = RecoveryPolicy(auto_continue=True)
HOUR = 3600.0
HALF: Script = [Say("half "), Meet("here"), Say("whole")]


# ---- L1, L2: detached ----


async def test_a_detached_run_goes_on_when_every_client_has_left(world: AnyWorld) -> None:
    """L1: clients leave in mid-stream, by closing and by being cancelled; the run completes and is saved once, and so
    does one that was still queued."""
    async with running(HALF, world) as it:
        run = await it.send()
        assert run.lifetime == "detached"
        await it.collect(run.id, until=2)
        with anyio.CancelScope() as scope:
            async with it.engine.subscriptions.watch(run.id, after=2) as subscription:
                scope.cancel()
                await subscription.next()
        await it.reached("here")
        assert it.agent.upstreams == 1
        queued = await it.send(run)
        it.release("here")
        for each in (run, queued):
            await it.until(each.id, "complete")
            assert texts((await it.stored(each.message_id)).parts) == "half whole"
            await check_saved_once(it, each, "complete")


class BreaksWhenStopped(ScriptedAgent):
    """Answers its cancellation with an error of its own."""

    async def run(self, turn: Turn, out: AgentOutput) -> str | None:
        try:
            return await super().run(turn, out)
        except anyio.get_cancelled_exc_class():
            raise RuntimeError("the connection was closed in the middle of a chunk") from None


async def test_an_upstream_that_breaks_when_it_is_stopped_does_not_make_a_failure(world: AnyWorld) -> None:
    """L2: the agent answers its cancellation with an error of its own: the run was stopped, and is cancelled."""
    async with running(BreaksWhenStopped(HALF), world) as it:
        run = await it.send_to_gate()
        assert (await it.engine.runs.cancel(run.id)).error is None
        assert await it.outcome(run) == ("cancelled", "requested")
        assert await it.answer_text(run) == "half "
        await check_saved_once(it, run, "cancelled")


@pytest.mark.parametrize("agent", [ScriptedAgent, BreaksWhenStopped])
async def test_a_cancelled_engine_leaves_nothing_to_the_next_process(memory: World, agent: type[ScriptedAgent]) -> None:
    """L2: the task that runs the engine is cancelled: its runs are sealed and settled before it is gone, also if an
    agent answers that with an error of its own."""
    with anyio.fail_after(5):
        async with running(agent(HALF), memory) as it:
            run = await it.send_to_gate()
            it.scope.cancel()
    row = await it.row(run.id)
    assert (row.status, row.reason, row.error) == ("interrupted", "shutdown", None)
    assert texts((await it.stored(run.message_id)).parts) == "half "
    await check_saved_once(it, run, "interrupted")


async def test_an_engine_that_stops_waits_for_what_a_reader_ends(memory: World) -> None:
    """L2: a reader is in the middle of ending a run of a node that is gone: the engine is not gone before it has."""
    hold = Hold(calls("journal.fence"))
    async with (
        running([Say("half"), Meet("here"), Hang()], memory, cluster=True) as gone,
        running((), memory, cluster=True, max_runs=0, tap=hold) as heir,
        anyio.create_task_group() as readers,
    ):
        run = await gone.send_to_gate()
        await gone.crash()
        memory.clock.advance(HOUR)
        readers.start_soon(heir.engine.messages.page, run.session_id)
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
            heir.engine.stop()
            await anyio.wait_all_tasks_blocked()
            assert not heir.finished.is_set()
            hold.go.set()
            await heir.finished.wait()
        assert not (await heir.row(run.id)).is_open


async def test_an_engine_that_has_stopped_takes_over_no_run(memory: World) -> None:
    """L2: a cancel that arrives when nothing can be written to the journal any more is recorded, and the next process
    ends the run; the stopped one does not take a lease that it could not use."""
    ask = CallTool("c1", asks=True)
    hold = Hold(calls("store.read", "stop_requested"))
    async with running([ask], memory, tap=hold) as it, anyio.create_task_group() as clients:
        run = await it.send()
        await it.until(run.id, "waiting")
        await it.idle()
        clients.start_soon(it.engine.runs.cancel, run.id)
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
            it.engine.stop()
            await it.finished.wait()
            hold.go.set()
            await anyio.wait_all_tasks_blocked()
        row = await it.row(run.id)
        assert (row.status, row.lease, row.cancel_requested) == ("waiting", None, True)
        clients.cancel_scope.cancel()
    async with running((), memory) as heir:
        assert (await heir.row(run.id)).status == "cancelled"


async def test_a_cancelled_engine_ends_what_waits_for_its_own_earlier_life(memory: World) -> None:
    """L2: a run was parked, answered and claimed anew while the execution that parked it was still leaving: the next
    one, which waits for that, is ended as well."""
    question = Hold(appends("approval.requested"))
    parking = Hold(calls("store.transact", "park"), when="after", armed=False)
    script: list[Action] = [Say("half"), CallTool("t", "shell", asks=True), Hang()]
    async with running(script, memory, tap=Both(question, parking), poll_interval=GUARD) as it:
        run = await it.send()
        with anyio.fail_after(GUARD):
            await question.reached.wait()
            asked = await it.question(run.id)
            parking.armed = True
            question.go.set()
            await parking.reached.wait()
            await it.engine.runs.decide(run.id, asked.id, "once")
            while (await it.row(run.id)).epoch < 2:
                await anyio.lowlevel.checkpoint()
            await anyio.wait_all_tasks_blocked()
            it.scope.cancel()
            parking.go.set()
    row = await it.row(run.id)
    assert (row.status, row.reason, row.epoch) == ("interrupted", "shutdown", 2)
    assert it.agent.effects == []
    await check_saved_once(it, run, "interrupted")


async def test_shutdown_leaves_what_has_not_begun_to_the_next_process(world: AnyWorld) -> None:
    """L2: queued turns are neither begun nor ended by a stopping server."""
    async with running(HALF, world, drain_time=GUARD) as it:
        first = await it.send_to_gate()
        queued = await it.send(first, "next")
        await it.draining()
        it.release("here")
        await it.shut_down()
        assert (await it.row(first.id)).status == "complete"
        assert (await it.row(queued.id)).status == "queued"
        assert len(it.agent.turns) == 1
    async with running([Say("now")], world) as it:
        assert (await it.ended(queued.id)).status == "complete"


async def test_streams_end_when_the_server_stops(world: AnyWorld) -> None:
    """L2: whoever watches a run or the changes is let go when the server stops, and does not hold it up."""
    async with running([Say("half "), CallTool("t", asks=True)], world) as it:
        run = await it.send()
        await it.until(run.id, "waiting")
        got: list[Entry] = []

        async def watch_changes() -> None:
            changes = it.engine.subscriptions.watch_changes(f"{it.store.generation}-0")
            while await changes.next() is not None:
                pass

        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as tg:
                await tg.start(it.follow, run.id, got)
                tg.start_soon(watch_changes)
                await it.shut_down()
        assert got[-1].type == "approval.requested"
        assert (await it.row(run.id)).status == "waiting"


# ---- L3: attached ----


@pytest.mark.parametrize("cancelled", [False, True], ids=["leaves", "request cancelled"])
async def test_an_attached_run_ends_the_moment_its_client_goes(world: AnyWorld, cancelled: bool) -> None:
    """L3: the upstream is cancelled in the middle of an await, and the partial saved once with its reason, also if the
    task that holds the connection is cancelled, as servers do it."""
    async with running([Say("half "), Meet("here"), Hang()], world) as it:
        run = await it.send(lifetime="attached")
        with anyio.CancelScope() as request:
            async with it.engine.connections.attached(run.id):
                await it.reached("here")
                assert it.agent.upstreams == 1
                if cancelled:
                    request.cancel()
                    await checkpoint()
        assert it.agent.upstreams == 0
        assert await it.outcome(run) == ("cancelled", "disconnected")
        answer = await it.answer(run)
        assert (answer.reason, texts(answer.parts)) == ("disconnected", "half ")
        await check_saved_once(it, run, "cancelled")
        await check_idle(it, run)


async def test_an_attached_run_ends_while_it_is_still_queued(world: AnyWorld) -> None:
    """L3: the client goes before its turn has begun: it never runs, never joins the tree, and says why."""
    async with running(HALF, world) as it:
        first = await it.send_to_gate()
        queued = await it.send(first, "second", lifetime="attached")
        async with it.engine.connections.attached(queued.id):
            pass
        row = await it.row(queued.id)
        assert (row.status, row.reason, row.in_tree) == ("cancelled", "disconnected", False)
        it.release("here")
        await it.ended(first.id)
        assert len(it.agent.turns) == 1
        assert len(await it.shown(first)) == 2
        await check_saved_once(it, queued, "cancelled")


async def test_an_attached_run_that_waits_for_a_person_ends_with_its_client(world: AnyWorld) -> None:
    """L3: also while nobody executes it, because it asked a question."""
    async with running([CallTool("t", asks=True)], world) as it:
        run = await it.send(lifetime="attached")
        async with it.engine.connections.attached(run.id):
            await it.until(run.id, "waiting")
        assert await it.outcome(run) == ("cancelled", "disconnected")
        assert it.agent.effects == []


@pytest.mark.parametrize("queued", [False, True], ids=["running", "queued"])
async def test_an_attached_run_ends_even_if_the_store_is_away(world: AnyWorld, queued: bool) -> None:
    """L3: the client goes while the store cannot be reached: its upstream is let go of, a queued run never begins, and
    the cancel is made up for."""
    async with running([Say("half "), Meet("here"), Hang()], world) as it:
        first = await it.send_to_gate() if queued else None
        run = await it.send(first, "mine", lifetime="attached")
        with contextlib.suppress(StorageUnavailableError):
            async with it.engine.connections.attached(run.id):
                await it.reached("here")
                it.store.away = True
        if first is None:
            await it.idle()
        it.store.away = False
        await it.tick()
        if first is not None:
            await it.engine.runs.cancel(first.id)
        await it.ended(run.id)
        assert await it.outcome(run) == ("cancelled", "disconnected")
        assert (len(it.agent.turns), it.agent.upstreams) == (1, 0)
        await check_one_end(it, run, "cancelled")


async def test_an_attached_run_does_not_outlive_its_server(world: AnyWorld) -> None:
    """L3: the connection went with the process: neither a running nor a queued attached run goes on after it."""
    async with running(HALF, world) as it:
        run = await it.send_to_gate(lifetime="attached")
        queued = await it.send(run, "second", lifetime="attached")
        await it.crash()
    async with running([Say("no")], world, recovery=AUTO) as it:
        assert [(await it.row(r.id)).status for r in (run, queued)] == ["interrupted", "cancelled"]
        assert (await it.row(queued.id)).reason == "disconnected"
        assert it.agent.turns == []
        await check_idle(it, run)


# ---- L4 ----

CHAT: list[Action] = [Think("hm"), Say("an answer")]
AGENT: list[Action] = [
    Say("let me look "),
    CallTool("a", result=1),
    Say("there "),
    CallTool("b", result=2),
    Say("done"),
]


@pytest.mark.parametrize("script", [CHAT, AGENT], ids=["chat", "agent"])
@pytest.mark.parametrize("lifetime", ["detached", "attached"])
async def test_a_run_that_completes_is_saved_once_as_complete(
    world: AnyWorld, lifetime: Lifetime, script: list[Action]
) -> None:
    """L4: a completed run is never saved as a partial, also if its client goes right after the end."""
    async with running(script, world) as it:
        run = await it.send(lifetime=lifetime)
        async with it.engine.connections.attached(run.id):
            got = await it.collect(run.id)
            assert got[-1].type == "run.complete"
        settled = await it.ended(run.id)
        assert (settled.finish_reason, settled.reason) == ("stop", None)
        answer = await it.answer(run)
        assert (answer.status, answer.reason, answer.error) == ("complete", None, None)
        assert answer.parts == fold(got).parts
        await check_saved_once(it, run, "complete")


async def test_who_leaves_after_the_end_has_cancelled_nothing(memory: World) -> None:
    """L4: the client of an attached run has had its end and leaves before the run is settled."""
    settle = Hold(calls("store.transact", "_settle"))
    async with running([Say("whole")], memory, tap=settle) as it, anyio.create_task_group() as clients:
        sid = await it.new_session()

        async def client() -> None:
            accepted = await it.engine.runs.submit(sid, [TextPart("hi")], lifetime="attached")
            async with it.engine.connections.attached(accepted.run.id):
                assert (await it.collect(accepted.run.id))[-1].ends

        clients.start_soon(client)
        with anyio.fail_after(GUARD):
            await settle.reached.wait()
            await anyio.wait_all_tasks_blocked()
            (run,) = await it.store.inner.read(lambda tx: tx.open_runs(sid))
            assert not run.cancel_requested
            settle.go.set()
        assert ((await it.ended(run.id)).status, run.reason) == ("complete", None)


# ---- L5 ----


@pytest.mark.parametrize("tail", [0, 200, 256 * 1024])
async def test_a_client_that_reconnects_in_mid_stream_misses_nothing(world: AnyWorld, tail: int) -> None:
    """L5: clients that drop and come back while the run streams, whatever is left in memory, see every event once."""

    async def play(turn: Turn, out: AgentOutput) -> str | None:
        for n in range(120):
            await out.write(TextDelta(f"{n} "))
            await checkpoint()
        return "stop"

    async with running(play, world, live_tail_bytes=tail) as it:
        run = await it.send()
        pieces: dict[int, list[Entry]] = {size: [] for size in (1, 2, 5, 1000)}

        async def client(size: int) -> None:
            """Comes back after every `size` events."""
            got = pieces[size]
            while not (got and got[-1].ends):
                last = got[-1].seq if got else 0
                got += (await it.collect(run.id, last, until=last + size))[:size]
                await checkpoint()

        async with anyio.create_task_group() as tg:
            for size in pieces:
                tg.start_soon(client, size)
        whole = await it.events(run.id)
        for got in pieces.values():
            assert got == whole
        assert texts(fold(whole).parts) == "".join(f"{n} " for n in range(120))


async def test_what_comes_while_a_watcher_looks_is_not_missed(virtual: World) -> None:
    """L5: the journal of another node's run grows after a watcher has read it and before it waits: it is told at
    once, and not when it next looks by itself."""
    hold = Hold(calls("journal.read"), when="after", armed=False)
    async with (
        running([Say("half "), Meet("here"), Say("whole"), Hang()], virtual, cluster=True) as worker,
        running((), virtual, cluster=True, max_runs=0, tap=hold, poll_interval=HOUR) as other,
    ):
        run = await worker.send_to_gate()
        await worker.collect(run.id, until=2)
        got: list[Entry] = []

        async def client() -> None:
            got.extend(await other.collect(run.id, after=2, until=3))

        hold.armed = True
        async with anyio.create_task_group() as tg:
            tg.start_soon(client)
            await hold.reached.wait()
            worker.release("here")
            await worker.collect(run.id, until=3)
            await anyio.wait_all_tasks_blocked()
            hold.go.set()
        assert [entry.seq for entry in got] == [3]


async def test_a_client_can_wait_for_a_run_that_has_not_begun(world: AnyWorld) -> None:
    """L5: a queued run is watched like any other: nothing comes until it begins, and then everything."""
    async with running(HALF, world) as it:
        sid = await it.new_session()
        await it.send_to_gate(sid)
        queued = await it.send(sid, "second")
        got: list[Entry] = []
        async with anyio.create_task_group() as tg:
            await tg.start(it.follow, queued.id, got)
            assert got == []
            it.release("here")
        assert got == await it.events(queued.id)


async def test_a_cursor_beyond_the_last_event_is_refused(world: AnyWorld) -> None:
    """L5: a client that has seen more than there is starts anew rather than miss what comes (`cursor-ahead`)."""

    async def refused(it: Running, rid: RunId, last: int) -> None:
        with pytest.raises(CursorAheadError) as refusal:
            await it.collect(rid, last + 1)
        assert (refusal.value.after, refusal.value.last) == (last + 1, last)

    async with running(HALF, world) as it:
        run = await it.send_and_see(2)
        await refused(it, run.id, last=2)
        it.release("here")
        ended = await it.ended(run.id)
        await refused(it, run.id, ended.last_seq)
    async with running((), world, max_runs=0) as it:
        await refused(it, (await it.send()).id, last=0)


async def test_a_subscription_begins_at_a_readable_cursor_of_ones_own_run(world: AnyWorld) -> None:
    """L5: at the terminal event there is nothing more to come; a negative cursor, somebody else's run and a journal
    that cannot be read are refused before anything is delivered."""
    async with running([Say("a")], world) as it:
        run, watch = await it.turn(), it.engine.subscriptions.watch
        async with watch(run.id, after=run.last_seq) as at_end, watch(run.id, after=run.last_seq - 1) as before:
            assert (at_end.at_end, await at_end.next(), before.at_end) == (True, None, False)
        with pytest.raises(InvalidInputError):
            await it.collect(run.id, after=-1)
        with pytest.raises(NotFoundError):
            async with watch(run.id, owner=OwnerId("somebody")):
                pass
        await it.idle()
        it.journal.away = True
        with pytest.raises(StorageUnavailableError):
            await it.collect(run.id)
        it.journal.away = False


# ---- L6 ----


CHUNK = "x" * 4096


async def test_a_client_that_never_reads_costs_bounded_memory(sqlite: SqliteWorld) -> None:
    """L6: sixteen megabytes of output, and clients that stopped reading: the process does not hold them."""

    async def play(turn: Turn, out: AgentOutput) -> str | None:
        await out.write(TextDelta("begin"))
        it.agent.gate("begin").reached.set()
        await it.agent.gate("begin").open.wait()
        for _ in range(4096):
            await out.write(TextDelta(CHUNK))
        it.agent.gate("all said").reached.set()
        await anyio.sleep_forever()
        return "stop"

    async def dead_client(*, task_status: TaskStatus[None]) -> None:
        async with it.engine.subscriptions.watch(run.id) as subscription:
            await subscription.next()
            task_status.started()
            await anyio.sleep_forever()

    async with running(play, sqlite, live_tail_bytes=64 * 1024) as it:
        run = await it.send_to_gate(gate="begin")
        async with anyio.create_task_group() as tg:
            for _ in range(20):
                await tg.start(dead_client)
            tracemalloc.start()
            try:
                it.release("begin")
                await it.reached("all said")
                held, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            tg.cancel_scope.cancel()
        assert held < 2 * 1024 * 1024
        await it.engine.runs.cancel(run.id)


async def test_an_agent_waits_when_storage_does_not_keep_up(memory: World) -> None:
    """L6: output that cannot be stored yet is held up to a limit; then the agent waits."""
    written = 0

    async def play(turn: Turn, out: AgentOutput) -> str | None:
        nonlocal written
        while True:
            await out.write(TextDelta(CHUNK))
            written += len(CHUNK)

    async with running(play, memory, tap=(hold := Hold(appends("run.started"))), max_uncommitted=64 * 1024) as it:
        run = await it.send()
        await hold.held()
        await anyio.wait_all_tasks_blocked()
        assert 0 < written <= 2 * 64 * 1024
        hold.go.set()
        await it.engine.runs.cancel(run.id)


async def test_a_client_that_leaves_while_its_run_is_being_claimed_has_left(world: AnyWorld) -> None:
    """L3: the claim is done and nobody knows yet, the client goes, and the store cannot be told: the run stops at once
    all the same."""
    hold = Hold(calls("store.transact", "_claim_and_start"), when="after", armed=False)
    async with running([Say("x"), Hang()], world, tap=hold) as it:
        sid = await it.new_session()
        hold.armed = True
        run = (await it.engine.runs.submit(sid, [TextPart("hi")], lifetime="attached")).run
        async with it.engine.connections.attached(run.id):
            await hold.held()
            it.store.away = True
        it.store.away = False
        hold.go.set()
        ended = await it.ended(run.id)
        assert (ended.status, ended.reason) == ("cancelled", "disconnected")
        assert it.agent.upstreams == 0
