"""Section L: a detached run outlives its clients, an attached one is its connection, and a client is a cursor."""

import tracemalloc
from collections.abc import Sequence

import anyio
import pytest
from anyio.abc import TaskStatus
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted import Action, Call, Hang, Meet, Say, ScriptedAgent, Think, Tokens
from holdfast.core.errors import CursorAhead, Invalid, NotFound, StorageUnavailable
from holdfast.core.events import Entry, TextDelta
from holdfast.core.ids import OwnerId, RunId
from holdfast.core.parts import Text
from holdfast.core.recovery import Policy
from holdfast.core.run import Lifetime, Run
from holdfast.core.transcript import fold
from holdfast.ports import Out, Turn
from tests.engine.checks import check_idle, check_one_end, check_saved_once
from tests.harness import (
    GUARD,
    AnyWorld,
    Freehand,
    Hold,
    Running,
    Script,
    SqliteWorld,
    World,
    appends,
    collect,
    crash_at,
    follow,
    running,
    texts,
)

pytestmark = pytest.mark.anyio

AUTO = Policy(auto_continue=True)
HALF: Script = [Say("half "), Meet("here"), Say("whole")]


async def let_go_of(it: Running) -> None:
    """Until nothing is executed any more."""
    with anyio.fail_after(GUARD):
        while it.agent.upstreams or it.engine.supervisor.executing:
            await checkpoint()


# ---- L1, L2: detached ----


async def test_a_detached_run_goes_on_when_every_client_has_left(world: AnyWorld) -> None:
    """L1: clients leave in mid-stream, by closing and by being cancelled; the run completes and is saved once."""
    async with running(HALF, world) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        assert run.lifetime == "detached"
        await collect(it.service, run.id, until=2)
        with anyio.CancelScope() as scope:
            async with it.service.watch(run.id, after=2) as subscription:
                scope.cancel()
                await subscription.next()
        await it.reached("here")
        assert it.agent.upstreams == 1
        it.release("here")
        await it.until(run.id, "complete")
        assert texts((await it.answer(sid)).parts) == "half whole"
        await check_saved_once(it, run, "complete")


async def test_a_detached_run_needs_no_client_at_all(world: AnyWorld) -> None:
    """L1: nobody ever watches, and the answer is there."""
    async with running([Say("whole")], world) as it:
        run = await it.send(await it.new_session())
        await it.until(run.id, "complete")
        await check_saved_once(it, run, "complete")


async def test_an_explicit_stop_saves_the_partial_once_as_cancelled(world: AnyWorld) -> None:
    """L2: a stopped run is cancelled, and its partial saved exactly once."""
    async with running(HALF, world) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        await it.reached("here")
        await it.service.cancel(run.id)
        it.release("here")
        assert texts((await it.answer(sid)).parts) == "half "
        await check_saved_once(it, run, "cancelled")


async def test_shutdown_saves_the_partial_once_as_interrupted(world: AnyWorld) -> None:
    """L2: an orderly stop seals what still runs as interrupted, and the next process finds nothing left to do."""
    async with running(HALF, world) as it:
        run = await it.send(await it.new_session())
        await it.reached("here")
        await it.shut_down()
        assert (await it.row(run.id)).reason == "shutdown"
        await check_saved_once(it, run, "interrupted")
    async with running((), world) as it:
        assert texts((await it.answer(run.session_id)).parts) == "half "
        await check_saved_once(it, run, "interrupted")
        await check_idle(it, run.session_id)


async def test_a_cancelled_engine_still_saves_its_runs(world: AnyWorld) -> None:
    """L2: the task that runs the engine is cancelled: its runs are sealed and settled all the same, at once."""
    with anyio.fail_after(5):
        async with running(HALF, world) as it:
            run = await it.send(await it.new_session())
            await it.reached("here")
            it.scope.cancel()
    async with running((), world, max_runs=0) as it:
        row = await it.row(run.id)
        assert (row.status, row.reason) == ("interrupted", "shutdown")
        assert texts((await it.answer(run.session_id)).parts) == "half "
        await check_saved_once(it, run, "interrupted")


async def test_shutdown_lets_runs_end_by_themselves_for_a_while(world: AnyWorld) -> None:
    """L2: a run that ends within the time of draining is complete, and its clients see the end."""
    async with running(HALF, world, drain=GUARD) as it:
        run = await it.send(await it.new_session())
        got: list[Entry] = []

        async def client() -> None:
            got.extend(await collect(it.service, run.id))

        async with anyio.create_task_group() as tg:
            tg.start_soon(client)
            await it.reached("here")
            await it.draining()
            it.release("here")
        assert got[-1].type == "run.complete"
        await it.shut_down()
        await check_saved_once(it, run, "complete")


async def test_shutdown_leaves_what_has_not_begun_to_the_next_process(world: AnyWorld) -> None:
    """L2: queued turns are neither begun nor ended by a stopping server."""
    async with running(HALF, world, drain=GUARD) as it:
        sid = await it.new_session()
        first = await it.send(sid)
        await it.reached("here")
        queued = await it.send(sid, "next")
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
    async with running([Say("half "), Call("t", asks=True)], world) as it:
        run = await it.send(await it.new_session())
        await it.until(run.id, "waiting")
        got: list[Entry] = []

        async def watch_changes() -> None:
            changes = it.service.watch_changes(f"{it.store.generation}-0")
            while await changes.next() is not None:
                pass

        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as tg:
                await tg.start(follow, it.service, run.id, got)
                tg.start_soon(watch_changes)
                await it.shut_down()
        assert got[-1].type == "approval.requested"
        assert (await it.row(run.id)).status == "waiting"


# ---- L3: attached ----


async def attach(it: Running, run: Run, left: anyio.Event) -> None:
    """A client's connection, open until it is told to go."""
    async with it.service.attached(run.id):
        await left.wait()


async def test_an_attached_run_ends_the_moment_its_client_goes(world: AnyWorld) -> None:
    """L3: the upstream is cancelled in the middle of an await, and the partial saved once with its reason."""
    async with running([Say("half "), Meet("here"), Hang()], world) as it:
        sid = await it.new_session()
        run = await it.send(sid, lifetime="attached")
        async with it.service.attached(run.id):
            await it.reached("here")
            assert it.agent.upstreams == 1
        assert it.agent.upstreams == 0
        row = await it.row(run.id)
        assert (row.status, row.reason) == ("cancelled", "disconnected")
        answer = await it.answer(sid)
        assert (answer.reason, texts(answer.parts)) == ("disconnected", "half ")
        await check_saved_once(it, run, "cancelled")
        await check_idle(it, sid)


async def test_a_cancelled_request_is_a_client_that_went(world: AnyWorld) -> None:
    """L3: the task that holds the connection is cancelled, as servers do it: the run is ended nevertheless."""
    async with running([Say("half "), Meet("here"), Hang()], world) as it:
        run = await it.send(await it.new_session(), lifetime="attached")
        async with anyio.create_task_group() as tg:
            tg.start_soon(attach, it, run, anyio.Event())
            await it.reached("here")
            tg.cancel_scope.cancel()
        row = await it.row(run.id)
        assert (row.status, row.reason) == ("cancelled", "disconnected")
        assert it.agent.upstreams == 0


async def test_an_attached_run_ends_while_it_is_still_queued(world: AnyWorld) -> None:
    """L3: the client goes before its turn has begun: it never runs, never joins the tree, and says why."""
    async with running(HALF, world) as it:
        sid = await it.new_session()
        first = await it.send(sid)
        await it.reached("here")
        queued = await it.send(sid, "second", lifetime="attached")
        async with it.service.attached(queued.id):
            pass
        row = await it.row(queued.id)
        assert (row.status, row.reason, row.in_tree) == ("cancelled", "disconnected", False)
        it.release("here")
        await it.ended(first.id)
        assert len(it.agent.turns) == 1
        assert len(await it.shown(sid)) == 2
        await check_saved_once(it, queued, "cancelled")


async def test_an_attached_run_that_waits_for_a_person_ends_with_its_client(world: AnyWorld) -> None:
    """L3: also while nobody executes it, because it asked a question."""
    async with running([Call("t", asks=True)], world) as it:
        run = await it.send(await it.new_session(), lifetime="attached")
        async with it.service.attached(run.id):
            await it.until(run.id, "waiting")
        row = await it.row(run.id)
        assert (row.status, row.reason) == ("cancelled", "disconnected")
        assert it.agent.effects == []


async def test_an_attached_run_ends_even_if_the_store_is_away(world: AnyWorld) -> None:
    """L3: the client goes while the store cannot be reached: the upstream is let go of, and the cancel made up for."""
    async with running([Say("half "), Meet("here"), Hang()], world) as it:
        run = await it.send(await it.new_session(), lifetime="attached")
        try:
            async with it.service.attached(run.id):
                await it.reached("here")
                it.store.away = True
        except StorageUnavailable:
            pass
        await let_go_of(it)
        it.store.away = False
        await it.tick()
        row = await it.row(run.id)
        assert (row.status, row.reason) == ("cancelled", "disconnected")
        await check_one_end(it, run, "cancelled")


async def test_an_attached_run_that_is_queued_does_not_begin_after_its_client_went(world: AnyWorld) -> None:
    """L3: the client of a queued run goes while the store cannot be reached: it is ended later, not executed."""
    async with running(HALF, world) as it:
        sid = await it.new_session()
        first = await it.send(sid)
        await it.reached("here")
        queued = await it.send(sid, "second", lifetime="attached")
        try:
            async with it.service.attached(queued.id):
                it.store.away = True
        except StorageUnavailable:
            pass
        it.store.away = False
        await it.tick()
        it.release("here")
        await it.ended(first.id)
        row = await it.ended(queued.id)
        assert (row.status, len(it.agent.turns)) == ("cancelled", 1)


async def test_an_attached_run_does_not_outlive_its_server(world: AnyWorld) -> None:
    """L3: the connection went with the process: neither a running nor a queued attached run goes on after it."""
    async with running(HALF, world) as it:
        sid = await it.new_session()
        run = await it.send(sid, lifetime="attached")
        await it.reached("here")
        queued = await it.send(sid, "second", lifetime="attached")
        await it.crash()
    async with running([Say("no")], world, recovery=AUTO) as it:
        assert [(await it.row(r.id)).status for r in (run, queued)] == ["interrupted", "cancelled"]
        assert (await it.row(queued.id)).reason == "disconnected"
        assert it.agent.turns == []
        await check_idle(it, sid)


# ---- L4 ----

CHAT: list[Action] = [Think("hm"), Say("an answer")]
AGENT: list[Action] = [Say("let me look "), Call("a", result=1), Say("there "), Call("b", result=2), Say("done")]


@pytest.mark.parametrize("script", [CHAT, AGENT], ids=["chat", "agent"])
@pytest.mark.parametrize("lifetime", ["detached", "attached"])
async def test_a_run_that_completes_is_saved_once_as_complete(
    world: AnyWorld, lifetime: Lifetime, script: list[Action]
) -> None:
    """L4: a completed run is never saved as a partial, also if its client goes right after the end."""
    async with running(script, world) as it:
        sid = await it.new_session()
        run = await it.send(sid, lifetime=lifetime)
        async with it.service.attached(run.id):
            got = await collect(it.service, run.id)
            assert got[-1].type == "run.complete"
        settled = await it.ended(run.id)
        assert (settled.finish_reason, settled.reason) == ("stop", None)
        answer = await it.answer(sid)
        assert (answer.status, answer.reason, answer.error) == ("complete", None, None)
        assert answer.parts == fold(got).parts
        await check_saved_once(it, run, "complete")


async def test_a_client_that_goes_while_the_end_is_saved_changes_nothing(memory: World) -> None:
    """L4: whatever the moment at which the client of a completing run goes, the run has one end."""

    def script(turn: Turn) -> Sequence[Action]:
        return [Say("an answer"), Meet(texts(turn.input.messages[-1].parts))]

    async with running(ScriptedAgent(script), memory) as it:
        statuses = set()
        for offset in range(30):
            run = await it.send(await it.new_session(), f"gate {offset}", lifetime="attached")
            await it.reached(f"gate {offset}")
            async with it.service.attached(run.id):
                it.release(f"gate {offset}")
                for _ in range(offset):
                    await checkpoint()
            status = (await it.ended(run.id)).status
            await check_saved_once(it, run, status)
            statuses.add(status)
        assert "complete" in statuses
        assert statuses <= {"complete", "cancelled"}


# ---- L5 ----


async def test_a_client_that_reconnects_gets_exactly_the_rest(world: AnyWorld) -> None:
    """L5: from every cursor, after the end: no gap and no duplicate."""
    async with running([Say("a"), Call("x"), Say("b"), Call("y"), Say("c")], world) as it:
        run = await it.turn(await it.new_session())
        whole = await it.events(run.id)
        assert [entry.seq for entry in whole] == list(range(1, len(whole) + 1))
        for after in range(len(whole) + 1):
            assert await collect(it.service, run.id, after) == whole[after:]


@pytest.mark.parametrize("tail", [0, 200, 256 * 1024])
async def test_a_client_that_reconnects_in_mid_stream_misses_nothing(world: AnyWorld, tail: int) -> None:
    """L5: clients that drop and come back while the run streams, whatever is left in memory, see every event once."""

    async def play(turn: Turn, out: Out) -> str | None:
        for n in range(120):
            await out.write(TextDelta(f"{n} "))
            await checkpoint()
        return "stop"

    async with running((), world, agents={"chat": Freehand(play)}, tail=tail) as it:
        run = await it.send(await it.new_session())
        pieces: dict[int, list[Entry]] = {size: [] for size in (1, 2, 5, 1000)}

        async def client(size: int) -> None:
            """Comes back after every `size` events."""
            got = pieces[size]
            while not (got and got[-1].ends):
                last = got[-1].seq if got else 0
                got += (await collect(it.service, run.id, last, until=last + size))[:size]
                await checkpoint()

        async with anyio.create_task_group() as tg:
            for size in pieces:
                tg.start_soon(client, size)
        whole = await it.events(run.id)
        for got in pieces.values():
            assert got == whole
        assert texts(fold(whole).parts) == "".join(f"{n} " for n in range(120))


async def test_a_late_client_gets_everything(world: AnyWorld) -> None:
    """L5: who comes in the middle or after the end is shown the run from its first event."""
    async with running(HALF, world) as it:
        run = await it.send(await it.new_session())
        await it.reached("here")
        got: list[list[Entry]] = [[] for _ in range(20)]
        async with anyio.create_task_group() as tg:
            for each in got:
                await tg.start(follow, it.service, run.id, each)
            it.release("here")
        got.append(await collect(it.service, run.id))
        whole = await it.events(run.id)
        assert got == [whole] * 21
        assert whole[0].type == "run.started"


async def test_a_client_can_wait_for_a_run_that_has_not_begun(world: AnyWorld) -> None:
    """L5: a queued run is watched like any other: nothing comes until it begins, and then everything."""
    async with running(HALF, world) as it:
        sid = await it.new_session()
        await it.send(sid)
        await it.reached("here")
        queued = await it.send(sid, "second")
        got: list[Entry] = []
        async with anyio.create_task_group() as tg:
            await tg.start(follow, it.service, queued.id, got)
            assert got == []
            it.release("here")
        assert got == await it.events(queued.id)


async def test_the_message_says_from_where_to_follow(world: AnyWorld) -> None:
    """L5: the open message is folded up to `last_seq`; what follows that cursor is the rest, and no more."""
    async with running([Say("a "), Call("t"), Say("b "), Meet("here"), Say("c")], world) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        await it.reached("here")
        await collect(it.service, run.id, until=5)
        message = await it.answer(sid)
        assert (message.status, texts(message.parts), message.last_seq) == ("streaming", "a b ", 5)
        it.release("here")
        rest = await collect(it.service, run.id, after=message.last_seq)
        settled = await it.ended(run.id)
        assert fold([*(await it.events(run.id))[:5], *rest]).parts == (await it.answer(sid)).parts
        assert settled.last_seq == (await it.answer(sid)).last_seq == rest[-1].seq


async def test_a_client_at_the_end_is_told_so(world: AnyWorld) -> None:
    """L5: reconnecting with the terminal event's id finds nothing more to come."""
    async with running([Say("a")], world) as it:
        run = await it.turn(await it.new_session())
        async with it.service.watch(run.id, after=run.last_seq) as subscription:
            assert subscription.at_end
            assert await subscription.next() is None
        async with it.service.watch(run.id, after=run.last_seq - 1) as subscription:
            assert not subscription.at_end


async def test_a_cursor_beyond_the_last_event_is_refused(world: AnyWorld) -> None:
    """L5: a client that has seen more than there is starts anew rather than miss what comes (`cursor-ahead`)."""
    async with running(HALF, world) as it:
        run = await it.send(await it.new_session())
        await collect(it.service, run.id, until=2)
        await refuse_ahead(it, run.id, after=3, last=2)
        it.release("here")
        ended = await it.ended(run.id)
        await refuse_ahead(it, run.id, after=ended.last_seq + 1, last=ended.last_seq)
    async with running((), world, max_runs=0) as it:
        queued = await it.send(await it.new_session())
        await refuse_ahead(it, queued.id, after=1, last=0)


async def test_a_negative_cursor_is_refused(world: AnyWorld) -> None:
    """L5: no event has such an id: rather than guess what is meant, say so."""
    async with running([Say("a")], world) as it:
        run = await it.turn(await it.new_session())
        with pytest.raises(Invalid):
            await collect(it.service, run.id, after=-1)


async def refuse_ahead(it: Running, rid: RunId, after: int, last: int) -> None:
    with pytest.raises(CursorAhead) as refused:
        await collect(it.service, rid, after)
    assert (refused.value.after, refused.value.last) == (after, last)


async def test_others_do_not_see_the_run(world: AnyWorld) -> None:
    """L5: a run is watched by its owner alone."""
    async with running([Say("a")], world) as it:
        run = await it.turn(await it.new_session())
        with pytest.raises(NotFound):
            async with it.service.watch(run.id, owner=OwnerId("somebody")):
                pass


async def test_an_unreadable_journal_is_an_error_not_an_empty_stream(world: AnyWorld) -> None:
    """L5: a client of a run whose journal cannot be read is told so before anything is delivered."""
    async with running([Say("a")], world) as it:
        run = await it.turn(await it.new_session())
        await let_go_of(it)
        it.journal.away = True
        with pytest.raises(StorageUnavailable):
            async with it.service.watch(run.id):
                pass
        it.journal.away = False


async def test_a_run_is_watched_over_its_continuation_after_a_crash(world: AnyWorld) -> None:
    """L5: the cursor stays good when the run goes on in another process."""
    run = await crash_at(world, [Say("a "), Call("t"), Meet("here"), Hang()], seen=4)
    async with running([Say("a "), Call("t"), Say("b")], world, recovery=AUTO) as it:
        rest = await collect(it.service, run.id, after=4)
        assert [entry.type for entry in rest] == ["run.resumed", "text.delta", "run.complete"]


# ---- L6 ----


async def test_clients_that_never_read_slow_nobody(world: AnyWorld) -> None:
    """L6: a hundred clients that do not read keep neither the run nor a client that reads from the end."""
    async with running([Meet("here"), Tokens(5000)], world, tail=1024) as it:
        run = await it.send(await it.new_session())
        async with anyio.create_task_group() as tg:

            async def dead_client(*, task_status: TaskStatus[None]) -> None:
                async with it.service.watch(run.id):
                    task_status.started()
                    await anyio.sleep_forever()

            for _ in range(100):
                await tg.start(dead_client)
            it.release("here")
            got = await collect(it.service, run.id)
            assert (await it.ended(run.id)).status == "complete"
            tg.cancel_scope.cancel()
        assert texts(fold(got).parts) == "".join(f"t{n} " for n in range(5000))
        assert it.engine.feed.subscribers == 0


async def test_a_slow_client_is_shown_everything_in_the_end(world: AnyWorld) -> None:
    """L6: a client that lags behind what is kept in memory reads the journal, and misses nothing."""
    async with running([Tokens(2000), Meet("here"), Tokens(2000)], world, tail=256) as it:
        run = await it.send(await it.new_session())
        async with it.service.watch(run.id) as slow:
            got = list(await slow.next() or ())
            it.release("here")
            await it.ended(run.id)
            while entries := await slow.next():
                got += entries
        assert got == await it.events(run.id)


CHUNK = "x" * 4096


async def test_a_client_that_never_reads_costs_bounded_memory(sqlite: SqliteWorld) -> None:
    """L6: sixteen megabytes of output, and clients that stopped reading: the process does not hold them."""

    async def play(turn: Turn, out: Out) -> str | None:
        await out.write(TextDelta("begin"))
        it.agent.gate("begin").reached.set()
        await it.agent.gate("begin").open.wait()
        for _ in range(4096):
            await out.write(TextDelta(CHUNK))
        it.agent.gate("all said").reached.set()
        await anyio.sleep_forever()
        return "stop"

    async def dead_client(*, task_status: TaskStatus[None]) -> None:
        async with it.service.watch(run.id) as subscription:
            await subscription.next()
            task_status.started()
            await anyio.sleep_forever()

    async with running((), sqlite, agents={"chat": Freehand(play)}, tail=64 * 1024) as it:
        run = await it.send(await it.new_session())
        await it.reached("begin")
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
        await it.service.cancel(run.id)


async def test_an_agent_waits_when_storage_does_not_keep_up(memory: World) -> None:
    """L6: output that cannot be stored yet is held up to a limit; then the agent waits."""
    written = 0

    async def play(turn: Turn, out: Out) -> str | None:
        nonlocal written
        while True:
            await out.write(TextDelta(CHUNK))
            written += len(CHUNK)

    hold = Hold(appends("run.started"))
    async with running((), memory, agents={"chat": Freehand(play)}, tap=hold, room=64 * 1024) as it:
        run = await it.send(await it.new_session())
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
        await anyio.wait_all_tasks_blocked()
        assert 0 < written <= 2 * 64 * 1024
        hold.go.set()
        await it.service.cancel(run.id)


async def test_a_client_that_leaves_while_its_run_is_being_claimed_has_left(world: AnyWorld) -> None:
    """L3: the claim is done and nobody knows yet, the client goes, and the store cannot be told: the run stops at once
    all the same."""
    hold = Hold(
        lambda call, args: call == "store.transact" and "_take" in getattr(args[0], "__qualname__", ""),
        when="after",
        armed=False,
    )
    async with running([Say("x"), Hang()], world, tap=hold) as it:
        sid = await it.new_session()
        hold.armed = True
        run = (await it.service.submit(sid, [Text("hi")], lifetime="attached")).run
        async with it.service.attached(run.id):
            with anyio.fail_after(GUARD):
                await hold.reached.wait()
            it.store.away = True
        it.store.away = False
        hold.go.set()
        ended = await it.ended(run.id)
        assert (ended.status, ended.reason) == ("cancelled", "disconnected")
        assert it.agent.upstreams == 0
