"""Section X: the runs of a dead process are settled from their journals, once, and can be continued.

`crash` cuts an engine off from its storage and stops it; `tests/crash` kills real processes.
"""

from dataclasses import replace

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted_agent import Action, CallTool, Hang, Meet, Say, Think
from holdfast.core.errors import HoldfastError
from holdfast.core.events import Decision, Entry, StepStarted, TextDelta, Usage
from holdfast.core.ids import LOCAL
from holdfast.core.parts import TextPart, ToolPart
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.core.run import Run
from holdfast.core.transcript import fold
from holdfast.ports.agent import AgentOutput, Turn
from holdfast.ports.store import RunQuery, SessionQuery
from tests.engine.checks import check_idle, check_one_end
from tests.harness import AnyWorld, Running, Script, World, asked, crash_at, crash_before_settling, running
from tests.storage_interceptors import GUARD, Fuse

pytestmark = pytest.mark.anyio

BUSY: Script = [
    Think("well "),
    Say("one "),
    CallTool("a", result=1),
    Say("two "),
    CallTool("b", result=2),
    Say("three"),
]


# ---- X1 ----


async def listen(it: Running, run: Run, got: list[Entry]) -> None:
    """A client that keeps what it is shown until the connection breaks."""
    try:
        async with it.engine.subscriptions.watch(run.id) as subscription:
            while (entries := await subscription.next()) is not None:
                got.extend(entries)
    except HoldfastError:
        pass


async def live_until(fuse: Fuse, world: World) -> tuple[Run | None, list[Entry]]:
    """A turn in a process whose storage dies at some call: the run if it was accepted, and what a client was shown."""
    got: list[Entry] = []
    run: Run | None = None
    async with running(BUSY, world, tap=fuse, poll_interval=5.0) as it, anyio.create_task_group() as tg:
        try:
            run = await it.send(key="k")
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
                assert len(await it.shown(run)) == 2
                await check_idle(it, run)
                statuses.add(status)
        if not fuse.blown.is_set():
            break
    assert statuses == {"complete", "interrupted"}


async def test_long_journals_are_settled_to_their_ends(world: AnyWorld) -> None:
    """X1, X4: a process dies with several runs, some short and some longer than what is read at once: all that each
    had said and used is in its transcript, which is the fold of its whole journal."""
    steps = [1, 3000, 2, 2400, 5100, 4, 0]

    async def play(turn: Turn, out: AgentOutput) -> str | None:
        await out.write(Usage(10, 1))
        await out.write(TextDelta("first, "))
        for n in range(int(asked(turn))):
            await out.write(StepStarted(n))
        await out.commit(Usage(20, 2))
        await out.write(TextDelta("last"))
        await anyio.sleep_forever()
        return None

    async with running(play, world) as it:
        runs = [await it.send(text=str(count)) for count in steps]
        seen = [await it.collect(run.id, until=count + 5) for run, count in zip(runs, steps, strict=True)]
        await it.crash()
    async with running((), world) as it:
        for run, shown in zip(runs, seen, strict=True):
            events, row, message = await it.events(run.id), await it.row(run.id), await it.answer(run)
            assert (events[:-1], row.last_seq) == (shown, len(shown) + 1)
            assert (message.parts, message.usage, row.usage) == (
                (TextPart("first, last"),),
                Usage(30, 3),
                fold(events).usage,
            )
            await check_one_end(it, run, "interrupted")
            await check_idle(it, run)


# ---- X2 ----


async def crashed(world: AnyWorld) -> Run:
    """A run whose process is gone. It had said something and was using a tool."""
    async with running([Say("half an "), CallTool("a", result="ok"), Say("answer"), Meet("here"), Hang()], world) as it:
        sid = await it.new_session()
        file = await it.add_file()
        accepted = await it.engine.runs.submit(sid, [TextPart("question"), file])
        await it.reached("here")
        await it.collect(accepted.run.id, until=5)
        await it.crash()
    return accepted.run


async def is_shown_as_open(it: Running, run: Run, where: str) -> object:
    match where:
        case "session":
            return (await it.engine.sessions.get(run.session_id)).active_run
        case "messages":
            return [message for message in await it.shown(run) if message.status == "streaming"]
        case "message":
            return (await it.engine.messages.get(run.message_id)).message.status == "streaming"
        case "run":
            return (await it.engine.runs.get(run.id)).is_open
        case "events":
            return (await it.collect(run.id))[-1].type != "run.interrupted"
        case "sessions":
            return [view for view in await it.engine.sessions.list(SessionQuery(LOCAL)) if view.active_run]
        case _:
            return [found for found in await it.engine.runs.list(RunQuery(LOCAL)) if found.is_open]


@pytest.mark.parametrize("where", ["session", "messages", "message", "run", "events", "sessions", "runs"])
async def test_reading_settles_a_run_whose_node_is_gone(memory: World, where: str) -> None:
    """X2: a node of a cluster is gone and nobody has swept: whoever reads is not shown a running run."""
    async with running((), memory, cluster=True, max_runs=0) as reader:
        async with running([Say("part"), Meet("here"), Hang()], memory, cluster=True) as gone:
            run = await gone.send_to_gate()
            await gone.crash()
        memory.clock.advance(1000)
        assert not await is_shown_as_open(reader, run, where)


async def test_a_lease_that_is_still_good_is_left_alone(memory: World) -> None:
    """X2: reading and sweeping end no run whose lease has not lapsed."""
    async with running([Say("part"), Meet("here"), Hang()], memory, cluster=True) as owner:
        run = await owner.send_to_gate()
        async with running((), memory, cluster=True) as other:
            memory.clock.advance(29)
            await other.tick()
            assert (await other.engine.sessions.get(run.session_id)).active_run is not None
        assert (await owner.row(run.id)).status == "running"


# ---- X3, X4 ----


async def test_settling_keeps_question_and_partial_with_one_notice(world: AnyWorld) -> None:
    """X3: after a crash the question with timestamp and file, the partial and one notice are there; nothing runs."""
    started = world.clock.now()
    run = await crashed(world)
    world.clock.advance(3600)
    async with running([Say("more")], world) as it:
        question, answer = await it.shown(run)
        assert question.created_at == started
        assert [type(part).__name__ for part in question.parts] == ["TextPart", "FilePart"]
        assert (answer.status, answer.reason, answer.recovery) == ("interrupted", "process-gone", None)
        assert answer.parts == (
            TextPart("half an "),
            ToolPart("a", "tool", None, "done", "ok", duration_ms=0),
            TextPart("answer"),
        )
        await check_one_end(it, run, "interrupted")
        await check_idle(it, run)
        after = await it.turn(run, "next", on_busy="reject")
        assert (await it.stored(after.user_message_id)).parent_id == run.message_id


async def test_a_tool_in_mid_air_has_an_unknown_outcome(world: AnyWorld) -> None:
    """X3: a tool that had started and not answered is shown as unknown, never as done or not run."""
    async with running([CallTool("a", takes=3600.0)], world) as it:
        run = await it.send_and_see(2)
        await it.crash()
    async with running((), world) as it:
        assert (await it.answer(run)).parts == (ToolPart("a", "tool", None, "unknown"),)


@pytest.mark.parametrize("auto_continue", [False, True])
async def test_a_sealed_journal_is_settled_as_it_was_sealed(world: AnyWorld, auto_continue: bool) -> None:
    """X2, X3: a process that dies between the seal and the settling leaves a complete run, not an interrupted one, and
    nothing is executed again."""
    run = await crash_before_settling(world, [Say("all of it")])
    async with running((), world, recovery=RecoveryPolicy(auto_continue=auto_continue)) as it:
        assert await it.answer_text(run) == "all of it"
        assert it.agent.turns == []
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
                tg.start_soon(it.engine.sessions.get, run.session_id)
                tg.start_soon(it.tick)
        assert (await it.row(run.id), await it.stored(run.message_id), await it.session_row(run.session_id)) == settled
        assert await it.events(run.id) == events


async def everything_shown(it: Running, run: Run) -> object:
    page = await it.engine.messages.page(run.session_id)
    view = await it.engine.sessions.get(run.session_id)
    listed = await it.engine.sessions.list(SessionQuery(LOCAL))
    return page, view, await it.engine.runs.get(run.id), await it.engine.messages.get(run.message_id), listed


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


# ---- X5 (more of it in test_continue.py) ----


UNFINISHED = CallTool("t", "pay", {"sum": 1}, takes=3600.0)
AGAIN = CallTool("t", "pay", {"sum": 1}, result="paid")
PAID = ToolPart("t", "pay", {"sum": 1}, "done", "paid", duration_ms=0)
REPEATS: dict[str, tuple[Action, Action, Decision | None, ToolPart]] = {
    "asked about and allowed": (UNFINISHED, AGAIN, "once", PAID),
    "asked about and denied": (UNFINISHED, AGAIN, "deny", ToolPart("t", "pay", {"sum": 1}, "denied")),
    "safe to repeat": (replace(UNFINISHED, repeatable=True), replace(AGAIN, repeatable=True), None, PAID),
    "not started": (Meet("here"), AGAIN, None, PAID),
}


@pytest.mark.parametrize(("before", "after", "decision", "tool"), REPEATS.values(), ids=REPEATS)
async def test_an_unfinished_tool_is_not_repeated_without_a_decision(
    world: AnyWorld, before: Action, after: Action, decision: Decision | None, tool: ToolPart
) -> None:
    """X5: continued after a crash, a tool that may have run is asked about first; one that is safe to repeat, or that
    had not started, runs at once."""
    run = await crash_at(world, [Say("a "), before], seen=2 if isinstance(before, Meet) else 3)
    async with running([Say("a "), after, Say("b")], world) as it:
        more = (await it.engine.runs.continue_run(run.id)).run
        if decision is not None:
            await it.until(more.id, "waiting")
            question = await it.question(more.id)
            assert (question.call_id, question.name, question.args) == ("t", "pay", {"sum": 1})
            assert it.agent.effects == []
            await it.decide(more, decision)
        assert (await it.ended(more.id)).status == "complete"
        assert it.agent.effects == ([] if decision == "deny" else ["t"])
        assert (await it.answer(run)).parts == (TextPart("a "), tool, TextPart("b"))
        assert len(await it.shown(run)) == 2
