"""Guards that only one thing holds up: each test here fails if that one gives way (`tests/mutants` shows it)."""

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from holdfast.agents.scripted import Action, Call, Hang, Meet, Say, Spend, Step, Tokens
from holdfast.core.events import (
    Entry,
    ReasoningDelta,
    StepStarted,
    TextDelta,
    ToolDelta,
    ToolStarted,
    Usage,
)
from holdfast.core.parts import Part, Reasoning, Text, Tool, plain_text
from holdfast.core.recovery import Policy
from holdfast.core.run import Run
from holdfast.core.transcript import fold
from holdfast.ports import Out, Turn
from tests.engine.checks import check_idle, check_one_end, check_saved_once
from tests.harness import (
    GUARD,
    AnyWorld,
    Both,
    Freehand,
    Hold,
    Running,
    World,
    appends,
    collect,
    crash_at,
    running,
    texts,
)

pytestmark = pytest.mark.anyio

HOUR = 3600.0
LONG = 2500
"""Events of a journal that is read in several pages."""


async def writes(it: Running, out: Out, *events: TextDelta | ReasoningDelta | ToolDelta | ToolStarted) -> None:
    """An agent that writes these and then waits for ever."""
    for event in events:
        await out.write(event)
    it.agent.gate("here").reached.set()
    await anyio.sleep_forever()


async def cancelled(it: Running) -> Run:
    """A run that is cancelled at the gate."""
    run = await it.send(await it.new_session())
    await it.reached("here")
    assert (await it.service.cancel(run.id)).status == "cancelled"
    await check_one_end(it, run, "cancelled")
    return run


# ---- C ----


async def test_a_call_of_which_only_the_name_has_come_is_kept(world: AnyWorld) -> None:
    """C3: providers send a call's name first and its arguments later; cancelled in between, the call is there."""

    async def play(turn: Turn, out: Out) -> str | None:
        await writes(it, out, ToolDelta("t", "write_file", args_delta=""))
        return None

    async with running((), world, agents={"chat": Freehand(play)}) as it:
        run = await cancelled(it)
        assert (await it.answer(run.session_id)).parts == (Tool("t", "write_file", "", "not_run"),)


async def test_text_stays_before_the_call_that_follows_it(world: AnyWorld) -> None:
    """C4: text and the beginning of a call that come at once are kept in their order, also several times over."""

    async def play(turn: Turn, out: Out) -> str | None:
        await writes(
            it,
            out,
            TextDelta("first "),
            ToolDelta("a", "search", args_delta='{"q'),
            TextDelta("then "),
            ToolDelta("b", "search", args_delta='{"r'),
            TextDelta("last"),
        )
        return None

    async with running((), world, agents={"chat": Freehand(play)}) as it:
        run = await cancelled(it)
        assert (await it.answer(run.session_id)).parts == (
            Text("first "),
            Tool("a", "search", '{"q', "not_run"),
            Text("then "),
            Tool("b", "search", '{"r', "not_run"),
            Text("last"),
        )


async def test_a_step_that_said_nothing_leaves_no_part(world: AnyWorld) -> None:
    """C5: the model was called, and paid, and had sent nothing when the cancel came: the notice stands alone."""
    async with running([Step(0), Spend(5, 0), Meet("here"), Hang()], world) as it:
        run = await cancelled(it)
        message = await it.answer(run.session_id)
        assert (message.parts, message.error, message.usage) == ((), None, Usage(5, 0))


async def test_a_cancel_after_the_end_is_not_heard_of(world: AnyWorld) -> None:
    """C6: cancelled when it was complete, a run stays what it was, and no reader is told that it changed."""
    async with running([Say("whole")], world) as it:
        run = await it.turn(await it.new_session())
        before = await it.row(run.id), await it.session_row(run.session_id)
        answer = await it.service.cancel(run.id)
        assert (answer.status, answer.cancel_requested) == ("complete", False)
        assert (await it.row(run.id), await it.session_row(run.session_id)) == before
        await check_saved_once(it, run, "complete")


@pytest.mark.parametrize("action", [Tokens(20_000), Say("x" * 100_000)], ids=["put", "write"])
async def test_back_pressure_does_not_hold_up_a_cancel(virtual: World, action: Action) -> None:
    """C7: an agent that waits until storage has room is stopped in the middle of that."""
    hold = Hold(lambda call, _: call == "journal.append")
    async with running([action], virtual, tap=hold, cancel_wait=0.0) as it:
        try:
            run = await it.send(await it.new_session())
            await hold.reached.wait()
            await it.service.cancel(run.id)
            with anyio.fail_after(GUARD):
                while it.agent.upstreams:  # noqa: ASYNC110  virtual time: nobody waits here
                    await anyio.sleep(1)
        finally:
            hold.go.set()
        assert (await it.until(run.id, "cancelled")).reason == "requested"


def goes_on(shown: Part, saved: Part) -> bool:
    """Whether `saved` has everything that `shown` had."""
    match shown, saved:
        case (Text(a), Text(b)) | (Reasoning(a), Reasoning(b)):
            return b.startswith(a)
        case Tool(), Tool():
            same = (shown.call_id, shown.name, shown.args) == (saved.call_id, saved.name, saved.args)
            return same and saved.output.startswith(shown.output)
        case _:
            return shown == saved


async def test_what_every_part_showed_is_in_the_saved_message(world: AnyWorld) -> None:
    """C8: reasoning, text, arguments and what a tool printed before the cancel are saved as they were shown."""

    async def play(turn: Turn, out: Out) -> str | None:
        await writes(
            it,
            out,
            ReasoningDelta(" hm\n"),
            TextDelta("\tlet me \n\n"),
            ToolDelta("a", "shell", args_delta='{"cmd": "make'),
            ToolStarted("b", "shell", {"cmd": "ls"}),
            ToolDelta("b", output_delta="one\n"),
            ToolDelta("b", output_delta="two\n "),
        )
        return None

    async with running((), world, agents={"chat": Freehand(play)}) as it:
        run = await it.send(await it.new_session())
        await it.reached("here")
        shown = fold(await collect(it.service, run.id, until=6)).parts
        assert [part.output for part in shown if isinstance(part, Tool)] == ["", "one\ntwo\n "]
        await it.service.cancel(run.id)
        saved = (await it.answer(run.session_id)).parts
        assert [goes_on(*pair) for pair in zip(shown, saved, strict=True)] == [True] * 4


# ---- X ----


async def at_length(turn: Turn, out: Out) -> str | None:
    """More events than one page of the journal holds, with something to keep on the first page and on the last."""
    await out.write(Usage(10, 1))
    await out.write(TextDelta("first, "))
    for n in range(LONG):
        await out.write(StepStarted(n))
    await out.commit(Usage(20, 2))
    await out.write(TextDelta("last"))
    await anyio.sleep_forever()
    return None


async def test_a_long_journal_is_settled_to_its_end(memory: World) -> None:
    """X1: a client was shown more events than are read at once; after the crash all of them are in the transcript."""
    async with running((), memory, agents={"chat": Freehand(at_length)}) as it:
        run = await it.send(await it.new_session())
        seen = await collect(it.service, run.id, until=LONG + 5)
        await it.crash()
    async with running((), memory) as it:
        assert (await it.events(run.id))[:-1] == seen
        assert (await it.answer(run.session_id)).parts == (Text("first, last"),)
        await check_one_end(it, run, "interrupted")
        await check_idle(it, run.session_id)


async def test_many_journals_are_settled_to_their_ends(world: AnyWorld) -> None:
    """X1: a process dies with several runs, some short and some long; all that each had said is in its transcript."""
    steps = [1, 3000, 2, 2400, 5100, 4, 0]

    async def play(turn: Turn, out: Out) -> str | None:
        await out.write(TextDelta("first, "))
        for n in range(int(plain_text(turn.input.messages[-1].parts))):
            await out.write(StepStarted(n))
        await out.write(Usage(20, 2))
        await out.write(TextDelta("last"))
        await anyio.sleep_forever()
        return None

    async with running((), world, agents={"chat": Freehand(play)}) as it:
        runs = [await it.send(await it.new_session(), str(count)) for count in steps]
        for run, count in zip(runs, steps, strict=True):
            await collect(it.service, run.id, until=count + 4)
        await it.crash()
    async with running((), world) as it:
        for run, count in zip(runs, steps, strict=True):
            assert (await it.answer(run.session_id)).parts == (Text("first, last"),)
            assert (await it.row(run.id)).last_seq == count + 5
            await check_one_end(it, run, "interrupted")


async def test_an_event_is_shown_when_its_commit_is_done(virtual: World) -> None:
    """X1: while an append is on its way to the journal, nobody who follows the run is given what is in it."""
    hold = Hold(appends("text.delta"))
    async with running([Step(0), Meet("go"), Say("soon")], virtual, tap=hold) as it:
        run = await it.send(await it.new_session())
        got: list[str] = []

        async def client() -> None:
            async with it.service.watch(run.id) as subscription:
                while (entries := await subscription.next()) is not None:
                    got.extend(entry.type for entry in entries)

        async with anyio.create_task_group() as tg:
            tg.start_soon(client)
            await it.reached("go")
            it.release("go")
            await hold.reached.wait()
            try:
                await anyio.wait_all_tasks_blocked()
                assert got == ["run.started", "step.started"]
            finally:
                hold.go.set()
        assert got == ["run.started", "step.started", "text.delta", "run.complete"]


async def test_a_long_journal_is_the_same_in_pieces_and_at_once(memory: World) -> None:
    """X4: folded page by page when it was settled, the message is the one that a fresh fold of it all gives."""
    async with running((), memory, agents={"chat": Freehand(at_length)}) as it:
        run = await it.send(await it.new_session())
        await collect(it.service, run.id, until=LONG + 5)
        await it.crash()
    async with running((), memory) as it:
        fresh = fold(await it.events(run.id))
        row, message = await it.row(run.id), await it.answer(run.session_id)
        assert fresh.usage == Usage(30, 3)
        assert (row.usage, message.usage, message.parts) == (fresh.usage, fresh.usage, fresh.parts)
        assert (row.status, row.reason, row.last_seq) == (fresh.status, fresh.reason, fresh.last_seq)


async def test_a_tool_in_mid_air_is_unknown_to_the_agent_that_goes_on(world: AnyWorld) -> None:
    """X5: put back after a crash, the agent finds the tool of unknown outcome, not one that still runs, and asks."""
    run = await crash_at(world, [Say("a "), Call("t", takes=HOUR)], seen=3)
    async with running([Say("a "), Call("t")], world, recovery=Policy(auto_continue=True)) as it:
        row = await it.until(run.id, "waiting", "complete")
        assert (row.status, it.agent.effects) == ("waiting", [])
        assert it.agent.turns[0].transcript.parts == (Text("a "), Tool("t", "tool", None, "unknown"))


# ---- L ----


async def test_a_detached_run_waits_its_turn_without_a_client(world: AnyWorld) -> None:
    """L1: queued behind another and left by its client, it is begun when its turn comes, and saved once."""
    async with running([Say("whole"), Meet("here")], world) as it:
        sid = await it.new_session()
        first = await it.send(sid)
        await it.reached("here")
        queued = await it.send(sid, "and then?")
        await it.service.session(sid)
        await it.tick()
        it.release("here")
        for run in (first, queued):
            assert (await it.ended(run.id)).status == "complete"
            await check_saved_once(it, run, "complete")


async def test_an_upstream_that_breaks_when_it_is_stopped_does_not_make_a_failure(world: AnyWorld) -> None:
    """L2: the agent answers its cancellation with an error of its own: the run was stopped, and is cancelled."""

    async def play(turn: Turn, out: Out) -> str | None:
        await out.write(TextDelta("half"))
        try:
            await writes(it, out)
        except anyio.get_cancelled_exc_class():
            raise RuntimeError("the connection was closed in the middle of a chunk") from None
        return None

    async with running((), world, agents={"chat": Freehand(play)}) as it:
        run = await cancelled(it)
        row = await it.row(run.id)
        assert (row.reason, row.error) == ("requested", None)
        assert texts((await it.answer(run.session_id)).parts) == "half"
        await check_saved_once(it, run, "cancelled")


async def test_an_upstream_that_breaks_when_the_engine_is_cancelled_does_not_make_a_failure(memory: World) -> None:
    """L2: the same where nobody stopped the run: all tasks of the server were cancelled."""

    async def play(turn: Turn, out: Out) -> str | None:
        try:
            await writes(it, out, TextDelta("half"))
        except anyio.get_cancelled_exc_class():
            raise RuntimeError("the connection was closed in the middle of a chunk") from None
        return None

    async with running((), memory, agents={"chat": Freehand(play)}) as it:
        run = await it.send(await it.new_session())
        await it.reached("here")
        it.scope.cancel()
    row = await it.row(run.id)
    assert (row.status, row.reason, row.error) == ("interrupted", "shutdown", None)
    await check_saved_once(it, run, "interrupted")


async def test_an_engine_that_stops_waits_for_what_a_reader_ends(memory: World) -> None:
    """L2: a reader is in the middle of ending a run of a node that is gone: the engine is not gone before it has."""
    hold = Hold(lambda call, args: call == "journal.fence")
    async with (
        running([Say("half"), Meet("here"), Hang()], memory, cluster=True) as gone,
        running((), memory, cluster=True, max_runs=0, tap=hold) as heir,
        anyio.create_task_group() as readers,
    ):
        run = await gone.send(await gone.new_session())
        await gone.reached("here")
        await gone.crash()
        memory.clock.advance(HOUR)
        readers.start_soon(heir.service.messages, run.session_id)
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
            heir.engine.stop()
            await anyio.wait_all_tasks_blocked()
            assert not heir.finished.is_set()
            hold.go.set()
            await heir.finished.wait()
        assert not (await heir.row(run.id)).is_open


async def test_a_cancelled_engine_leaves_nothing_to_the_next_process(memory: World) -> None:
    """L2: cancelled itself, the engine has sealed and settled its runs before it is gone."""
    async with running([Say("half"), Meet("here"), Hang()], memory) as it:
        run = await it.send(await it.new_session())
        await it.reached("here")
        it.scope.cancel()
    row = await it.row(run.id)
    assert (row.status, row.reason) == ("interrupted", "shutdown")
    await check_saved_once(it, run, "interrupted")


async def test_a_cancelled_engine_ends_what_waits_for_its_own_earlier_life(memory: World) -> None:
    """L2: a run was parked, answered and claimed anew while the execution that parked it was still leaving: the next
    one, which waits for that, is ended as well."""
    question = Hold(appends("approval.requested"))
    parking = Hold(lambda call, _: call == "store.transact", when="after", armed=False)
    script: list[Action] = [Say("half"), Call("t", "shell", asks=True), Hang()]
    async with running(script, memory, tap=Both(question, parking), poll=GUARD) as it:
        run = await it.send(await it.new_session())
        with anyio.fail_after(GUARD):
            await question.reached.wait()
            asked = await it.question(run.id)
            parking.armed = True
            question.go.set()
            await parking.reached.wait()
            await it.service.decide(run.id, asked.id, "once")
            while (await it.row(run.id)).epoch < 2:
                await anyio.lowlevel.checkpoint()
            await anyio.wait_all_tasks_blocked()
            it.scope.cancel()
            parking.go.set()
    row = await it.row(run.id)
    assert (row.status, row.reason, row.epoch) == ("interrupted", "shutdown", 2)
    assert it.agent.effects == []
    await check_saved_once(it, run, "interrupted")


async def test_a_turn_of_tools_alone_is_complete(world: AnyWorld) -> None:
    """L4: an agent that has used a tool and then has nothing more to say has completed its turn."""
    async with running([Call("t", "notify", {"who": "them"}, result="sent")], world) as it:
        run = await it.turn(await it.new_session())
        assert (run.status, run.error) == ("complete", None)
        await check_saved_once(it, run, "complete")


async def test_a_client_one_event_behind_the_tail_misses_nothing(world: AnyWorld) -> None:
    """L5: what memory no longer holds comes from the journal, for every cursor around the border."""
    async with running([Say("a"), Call("x"), Say("b"), Call("y"), Meet("here")], world, tail=0) as it:
        run = await it.send(await it.new_session())
        await it.reached("here")
        whole = await it.events(run.id)
        assert [entry.seq for entry in whole] == list(range(1, 8))
        for after in range(len(whole)):
            assert await collect(it.service, run.id, after, until=7) == whole[after:]


def reads(run: Callable[[], Run]) -> Callable[[str, Sequence[Any]], bool]:
    """Picks the looks into the run's journal."""
    return lambda call, args: call == "journal.read" and args[0] == run().id


async def test_what_comes_while_a_watcher_looks_is_not_missed(virtual: World) -> None:
    """L5: the journal of another node's run grows after a watcher has read it and before it waits: it is told at
    once, and not when it next looks by itself."""
    hold = Hold(reads(lambda: run), when="after", armed=False)
    async with (
        running([Say("half "), Meet("here"), Say("whole"), Hang()], virtual, cluster=True) as worker,
        running((), virtual, cluster=True, max_runs=0, tap=hold, poll=HOUR) as other,
    ):
        run = await worker.send(await worker.new_session())
        await worker.reached("here")
        await collect(worker.service, run.id, until=2)
        got: list[Entry] = []

        async def client() -> None:
            got.extend(await collect(other.service, run.id, after=2, until=3))

        hold.armed = True
        async with anyio.create_task_group() as tg:
            tg.start_soon(client)
            await hold.reached.wait()
            worker.release("here")
            await collect(worker.service, run.id, until=3)
            await anyio.wait_all_tasks_blocked()
            hold.go.set()
        assert [entry.seq for entry in got] == [3]
