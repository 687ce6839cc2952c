"""Section X: a process that is gone leaves its runs to be settled from the journal, once, and to be continued.

`crash` makes storage deaf to an engine and takes it away; `tests/crash` does the same to real processes.
"""

from collections.abc import Awaitable, Callable

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted import Call, Hang, Meet, Say, Think, Tokens
from holdfast.core.errors import HoldfastError
from holdfast.core.events import Entry
from holdfast.core.ids import LOCAL
from holdfast.core.parts import Reasoning, Text, Tool
from holdfast.core.recovery import Policy
from holdfast.core.run import Run
from holdfast.core.transcript import fold
from holdfast.ports import SessionQuery
from tests.engine.checks import check_idle, check_one_end
from tests.harness import (
    GUARD,
    AnyWorld,
    Fuse,
    Hold,
    Running,
    Script,
    World,
    appends,
    collect,
    crash_at,
    running,
    texts,
)

pytestmark = pytest.mark.anyio

BUSY: Script = [Think("well "), Say("one "), Call("a", result=1), Say("two "), Call("b", result=2), Say("three")]


# ---- X1 ----


async def listen(it: Running, run: Run, got: list[Entry]) -> None:
    """A client that keeps what it is shown until the connection breaks."""
    try:
        async with it.service.watch(run.id) as subscription:
            while (entries := await subscription.next()) is not None:
                got.extend(entries)
    except HoldfastError:
        pass


async def live_until(fuse: Fuse, world: World) -> tuple[Run | None, list[Entry]]:
    """A turn in a process whose storage dies at some call: the run if it was accepted, and what a client was shown."""
    got: list[Entry] = []
    run: Run | None = None
    async with running(BUSY, world, tap=fuse, poll=5.0) as it, anyio.create_task_group() as tg:
        try:
            run = await it.send(await it.new_session(), key="k")
            tg.start_soon(listen, it, run, got)
            with anyio.fail_after(GUARD):
                while not fuse.blown.is_set() and (await it.row(run.id)).is_open:
                    await checkpoint()
        except HoldfastError:
            assert fuse.blown.is_set()
        await it.crash()
        tg.cancel_scope.cancel()
    return run, got


@pytest.mark.parametrize("done", [False, True], ids=["not-done", "done"])
async def test_whatever_was_shown_survives_a_crash_at_any_call(done: bool) -> None:
    """X1: the process dies at its first, second, … call to storage; all that a client was shown is there, in order."""
    statuses: set[str] = set()
    for at in range(1, 1000):
        world, fuse = World(), Fuse(at, done)
        run, got = await live_until(fuse, world)
        if run is not None:
            async with running(BUSY, world) as it:
                status = (await it.ended(run.id)).status
                assert (await it.events(run.id))[: len(got)] == got
                await check_one_end(it, run, status)
                assert len(await it.shown(run.session_id)) == 2
                await check_idle(it, run.session_id)
                statuses.add(status)
        if not fuse.blown.is_set():
            break
    assert statuses == {"complete", "interrupted"}


async def test_what_a_client_received_is_in_the_transcript(world: AnyWorld) -> None:
    """X1: a process dies in mid-stream; text, tools and reasoning that a client had are in the message after it."""
    async with running([Think("hm"), Call("a", result=[1]), Tokens(3000), Meet("here"), Hang()], world) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        await it.reached("here")
        async with it.service.watch(run.id) as subscription:
            seen: list[Entry] = []
            with anyio.fail_after(GUARD):
                while "t2999 " not in texts(fold(seen).parts):
                    seen += await subscription.next() or ()
        await it.crash()
    async with running((), world) as it:
        assert (await it.events(run.id))[: len(seen)] == seen
        assert [entry.seq for entry in await it.events(run.id)] == list(range(1, len(seen) + 2))
        message = await it.answer(sid)
        assert message.parts == fold(seen).parts
        assert texts(message.parts) == "".join(f"t{n} " for n in range(3000))


async def test_a_client_resumes_over_a_crash(world: AnyWorld) -> None:
    """X1: a client that comes back with the last id it saw gets exactly the rest, to the terminal event."""
    async with running([Say("a"), Call("t"), Say("b"), Meet("here"), Hang()], world) as it:
        run = await it.send(await it.new_session())
        await it.reached("here")
        seen = await collect(it.service, run.id, until=3)
        await it.crash()
    async with running((), world) as it:
        rest = await collect(it.service, run.id, after=seen[-1].seq)
        assert rest[-1].type == "run.interrupted"
        assert [*seen, *rest] == await it.events(run.id)


# ---- X2 ----


async def crashed(world: AnyWorld) -> Run:
    """A run whose process is gone. It had said something and was using a tool."""
    async with running([Say("half an "), Call("a", result="ok"), Say("answer"), Meet("here"), Hang()], world) as it:
        sid = await it.new_session()
        file = await it.add_file()
        accepted = await it.service.submit(sid, [Text("question"), file])
        await it.reached("here")
        await collect(it.service, accepted.run.id, until=5)
        await it.crash()
    return accepted.run


async def test_nothing_is_shown_as_running_when_the_next_process_begins(world: AnyWorld) -> None:
    """X2: a new process has settled what the last one left before it serves anybody."""
    run = await crashed(world)
    async with running((), world) as it:
        assert (await it.row(run.id)).status == "interrupted"
        assert (await it.stored(run.message_id)).status == "interrupted"
        assert [r.status for r in await it.service.runs()] == ["interrupted"]
        (view,) = await it.service.sessions(SessionQuery(LOCAL))
        assert view.active_run is None


async def read_session(it: Running, run: Run) -> object:
    view = await it.service.session(run.session_id)
    return view.active_run


async def read_messages(it: Running, run: Run) -> object:
    return [m for m in await it.shown(run.session_id) if m.status == "streaming"]


async def read_message(it: Running, run: Run) -> object:
    return (await it.service.message(run.message_id)).message.status == "streaming"


async def read_run(it: Running, run: Run) -> object:
    return (await it.service.run(run.id)).is_open


async def read_events(it: Running, run: Run) -> object:
    return (await collect(it.service, run.id))[-1].type != "run.interrupted"


async def read_sessions(it: Running, run: Run) -> object:
    return [view for view in await it.service.sessions(SessionQuery(LOCAL)) if view.active_run]


async def read_runs(it: Running, run: Run) -> object:
    return [found for found in await it.service.runs() if found.is_open]


Read = Callable[[Running, Run], Awaitable[object]]
READS: list[Read] = [
    read_session,
    read_messages,
    read_message,
    read_run,
    read_events,
    read_sessions,
    read_runs,
]


@pytest.mark.parametrize("says_running", READS)
async def test_reading_settles_a_run_whose_node_is_gone(memory: World, says_running: Read) -> None:
    """X2: a node of a cluster is gone and nobody has swept: whoever reads is not shown a running run."""
    async with running((), memory, cluster=True, max_runs=0) as reader:
        async with running([Say("part"), Meet("here"), Hang()], memory, cluster=True) as gone:
            run = await gone.send(await gone.new_session())
            await gone.reached("here")
            await gone.crash()
        memory.clock.advance(1000)
        assert not await says_running(reader, run)


async def test_a_lease_that_is_still_good_is_left_alone(memory: World) -> None:
    """X2: reading and sweeping end no run whose lease has not lapsed."""
    async with running([Say("part"), Meet("here"), Hang()], memory, cluster=True) as owner:
        run = await owner.send(await owner.new_session())
        await owner.reached("here")
        async with running((), memory, cluster=True) as other:
            memory.clock.advance(29)
            await other.tick()
            assert (await other.service.session(run.session_id)).active_run is not None
        assert (await owner.row(run.id)).status == "running"


# ---- X3, X4 ----


async def test_settling_keeps_question_and_partial_with_one_notice(world: AnyWorld) -> None:
    """X3: after a crash the question with timestamp and file, the partial and one notice are there; nothing runs."""
    started = world.clock.now()
    run = await crashed(world)
    world.clock.advance(3600)
    async with running([Say("more")], world) as it:
        question, answer = await it.shown(run.session_id)
        assert question.created_at == started
        assert [type(part).__name__ for part in question.parts] == ["Text", "File"]
        assert (answer.status, answer.reason, answer.recovery) == ("interrupted", "process-gone", None)
        assert answer.parts == (
            Text("half an "),
            Tool("a", "tool", None, "done", "ok", duration_ms=0),
            Text("answer"),
        )
        await check_one_end(it, run, "interrupted")
        await check_idle(it, run.session_id)
        after = await it.turn(run.session_id, "next", on_busy="reject")
        assert (await it.stored(after.user_message_id)).parent_id == run.message_id


async def test_a_tool_in_mid_air_has_an_unknown_outcome(world: AnyWorld) -> None:
    """X3: a tool that had started and not answered is shown as unknown, never as done or not run."""
    async with running([Call("a", takes=3600.0)], world) as it:
        run = await it.send(await it.new_session())
        await collect(it.service, run.id, until=2)
        await it.crash()
    async with running((), world) as it:
        assert (await it.answer(run.session_id)).parts == (Tool("a", "tool", None, "unknown"),)


async def test_a_sealed_journal_is_settled_as_it_was_sealed(world: AnyWorld) -> None:
    """X3: a process that dies between the seal and the settling leaves a complete run, not an interrupted one."""
    hold = Hold(appends("run.complete"), when="after")
    async with running([Say("all of it")], world, tap=hold) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
        it.store.away = True
        hold.go.set()
        await it.crash()
        assert (await it.row(run.id)).status == "running"
    async with running((), world) as it:
        assert (await it.row(run.id)).status == "complete"
        assert texts((await it.answer(sid)).parts) == "all of it"
        await check_one_end(it, run, "complete")


async def test_a_crash_settles_once(world: AnyWorld) -> None:
    """X3: restarts, sweeps and readers after the first settling change nothing more."""
    run = await crashed(world)
    async with running((), world) as it:
        settled = await it.row(run.id), await it.stored(run.message_id), await it.session_row(run.session_id)
        events = await it.events(run.id)
    world.clock.advance(100)
    async with running((), world) as it:
        async with anyio.create_task_group() as tg:
            for _ in range(4):
                tg.start_soon(it.service.session, run.session_id)
                tg.start_soon(it.tick)
        assert (
            await it.row(run.id),
            await it.stored(run.message_id),
            await it.session_row(run.session_id),
        ) == settled
        assert await it.events(run.id) == events


async def everything_shown(it: Running, run: Run) -> object:
    page = await it.service.messages(run.session_id)
    view = await it.service.session(run.session_id)
    listed = await it.service.sessions(SessionQuery(LOCAL))
    return page, view, await it.service.run(run.id), await it.service.message(run.message_id), listed


async def test_the_settled_state_is_the_same_for_every_reader(world: AnyWorld) -> None:
    """X4: the process that settled, the same one asked again, and a fresh one all show the same."""
    run = await crashed(world)
    async with running((), world) as it:
        first = await everything_shown(it, run)
        assert await everything_shown(it, run) == first
        await it.tick()
        assert await everything_shown(it, run) == first
    async with running((), world) as it:
        assert await everything_shown(it, run) == first


async def test_readers_at_the_moment_of_settling_see_one_state(memory: World) -> None:
    """X4: readers that come while a dead run is being settled are all shown it settled."""
    async with running((), memory, cluster=True, max_runs=0) as reader:
        async with running([Say("part"), Meet("here"), Hang()], memory, cluster=True) as gone:
            run = await gone.send(await gone.new_session())
            await gone.reached("here")
            await collect(gone.service, run.id, until=2)
            await gone.crash()
        memory.clock.advance(1000)
        seen: list[tuple[str, str]] = []

        async def read() -> None:
            message = await reader.answer(run.session_id)
            seen.append((message.status, texts(message.parts)))

        async with anyio.create_task_group() as tg:
            for _ in range(8):
                tg.start_soon(read)
        assert seen == [("interrupted", "part")] * 8


# ---- X5 (more of it in test_continue.py) ----


async def test_an_interrupted_run_goes_on_where_its_journal_ends(world: AnyWorld) -> None:
    """X5: continued, the answer is whole, and finished tools are not run again."""
    run = await crash_at(world, [*BUSY, Meet("here"), Hang()], seen=8)
    async with running(BUSY, world) as it:
        more = (await it.service.continue_run(run.id)).run
        assert (await it.ended(more.id)).status == "complete"
        answer = await it.answer(run.session_id)
        assert it.agent.effects == []
        assert texts(answer.parts) == "one two three"
        assert answer.parts[0] == Reasoning("well ")
        assert [part.result for part in answer.parts if isinstance(part, Tool)] == [1, 2]


async def test_a_tool_of_unknown_outcome_asks_before_it_runs_again(world: AnyWorld) -> None:
    """X5: an unfinished tool that is not marked safe to repeat is not run again without a decision."""
    script: Script = [Say("a "), Call("t", "pay", {"sum": 1}, takes=3600.0)]
    run = await crash_at(world, script, seen=3)
    quick: Script = [Say("a "), Call("t", "pay", {"sum": 1}, result="paid"), Say("b")]
    async with running(quick, world) as it:
        more = (await it.service.continue_run(run.id)).run
        await it.until(more.id, "waiting")
        assert it.agent.effects == []
        question = await it.question(more.id)
        assert (question.call_id, question.name, question.args) == ("t", "pay", {"sum": 1})
        await it.service.decide(more.id, question.id, "once")
        assert (await it.ended(more.id)).status == "complete"
        assert it.agent.effects == ["t"]
        assert texts((await it.answer(run.session_id)).parts) == "a b"


async def test_a_denied_repeat_is_not_run(world: AnyWorld) -> None:
    """X5: the person says no: the tool does not run again, and the answer goes on without it."""
    run = await crash_at(world, [Say("a "), Call("t", takes=3600.0)], seen=3)
    async with running([Say("a "), Call("t"), Say("b")], world) as it:
        more = (await it.service.continue_run(run.id)).run
        await it.until(more.id, "waiting")
        await it.service.decide(more.id, (await it.question(more.id)).id, "deny")
        assert (await it.ended(more.id)).status == "complete"
        assert it.agent.effects == []
        _, tool, last = (await it.answer(run.session_id)).parts
        assert isinstance(tool, Tool)
        assert (tool.state, last) == ("denied", Text("b"))


async def test_a_tool_that_is_safe_to_repeat_is_repeated(world: AnyWorld) -> None:
    """X5: a tool that says it is safe to repeat runs again without a question."""
    run = await crash_at(world, [Call("t", repeatable=True, takes=3600.0)], seen=2)
    async with running([Call("t", repeatable=True, result="again"), Say("b")], world) as it:
        more = (await it.service.continue_run(run.id)).run
        assert (await it.ended(more.id)).status == "complete"
        assert it.agent.effects == ["t"]
        assert (await it.answer(run.session_id)).parts == (
            Tool("t", "tool", None, "done", "again", duration_ms=0),
            Text("b"),
        )


async def test_a_tool_that_had_not_started_runs_without_a_question(world: AnyWorld) -> None:
    """X5: without `tool.started` it did not run, so running it now is no repetition."""
    run = await crash_at(world, [Say("a "), Meet("here")], seen=2)
    async with running([Say("a "), Call("t", result=7)], world) as it:
        more = (await it.service.continue_run(run.id)).run
        assert (await it.ended(more.id)).status == "complete"
        assert it.agent.effects == ["t"]
        assert len(await it.shown(run.session_id)) == 2


async def test_automatic_continue_shows_the_run_as_queued_and_goes_on(world: AnyWorld) -> None:
    """X2: with automatic continue the same run is queued after the crash, never running, and then completes."""
    run = await crash_at(world, [*BUSY, Meet("here"), Hang()], seen=9)
    on = Policy(auto_continue=True)
    async with running(BUSY, world, max_runs=0, recovery=on) as it:
        assert (await it.service.run(run.id)).status == "queued"
        active = (await it.service.session(run.session_id)).active_run
        assert active is not None
        assert (active.id, active.status) == (run.id, "queued")
        assert texts((await it.answer(run.session_id)).parts) == "one two three"
        await it.crash()
    async with running(BUSY, world, recovery=on) as it:
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == []
        assert texts((await it.answer(run.session_id)).parts) == "one two three"
        assert (await it.types(run.id)).count("run.resumed") == 1
        await check_one_end(it, run, "complete")
