"""Section E: a run that fails keeps the question, the partial and one notice, and takes nothing else with it."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted import Action, Call, Crash, Fail, Meet, Recall, Say, ScriptedAgent, Spend, Step, Think
from holdfast.core.errors import StorageError
from holdfast.core.events import MemoryRecalled, ReasoningDelta, StepStarted, TextDelta, ToolDelta, Usage
from holdfast.core.parts import Reasoning, Remembered, Text, Tool
from holdfast.ports import Agent, AgentFailed, Out, Turn
from tests.engine.checks import check_idle, check_one_end
from tests.harness import GUARD, AnyWorld, Freehand, Hold, Tap, World, appends, in_turn, running, texts

pytestmark = pytest.mark.anyio


async def malformed(turn: Turn, out: Out) -> str | None:
    await out.write(TextDelta("so far"))
    json.loads('{"choices": [')
    return None


async def timed_out(turn: Turn, out: Out) -> str | None:
    await out.write(TextDelta("so far"))
    with anyio.fail_after(0):
        await anyio.sleep_forever()
    return None


async def refused(turn: Turn, out: Out) -> str | None:
    await out.write(TextDelta("so far"))
    raise AgentFailed("rate-limit", "The provider says: too many requests. Try again in a minute.")


async def broken(turn: Turn, out: Out) -> str | None:
    await out.write(TextDelta("so far"))
    raise RuntimeError("a bug")


async def cancelled_from_aside(turn: Turn, out: Out) -> str | None:
    """What it waits for was cancelled by somebody else: asyncio raises what a cancel of its own would. (Under trio
    there is no loop of asyncio's, which is an error like any other.)"""
    await out.write(TextDelta("so far"))
    gone = asyncio.get_running_loop().create_future()
    gone.cancel()
    await gone
    return None


async def no_text(turn: Turn, out: Out) -> str | None:
    words: Any = b"not text"
    await out.write(TextDelta(words))
    await anyio.sleep_forever()
    return None


ERRORS = [
    (refused, "rate-limit"),
    (broken, "internal"),
    (malformed, "internal"),
    (timed_out, "internal"),
    (cancelled_from_aside, "internal"),
]


@pytest.mark.parametrize(("play", "code"), ERRORS, ids=["provider", "exception", "malformed", "timeout", "cancelled"])
async def test_a_failed_run_keeps_question_partial_and_one_notice(world: AnyWorld, play: Any, code: str) -> None:
    """E1: whatever the error, the question with its timestamp and files, the partial and one readable error stay."""
    async with running((), world, agents={"chat": Freehand(play)}) as it:
        sid = await it.new_session()
        world.clock.advance(7)
        sent_at, file = world.clock.now(), await it.add_file()
        accepted = await it.service.submit(sid, [Text("please"), file])
        world.clock.advance(60)
        run = await it.ended(accepted.run.id)
        assert run.status == "failed"
        question, answer = await it.shown(sid)
        assert question == accepted.message
        assert (question.parts, question.created_at) == ((Text("please"), file), sent_at)
        assert (answer.status, answer.parts) == ("failed", (Text("so far"),))
        assert answer.error is not None
        assert answer.error.code == code
        assert len(answer.error.message) > 20
        assert (await it.row(run.id)).error == answer.error
        await check_one_end(it, run, "failed")
        await check_idle(it, sid)


@pytest.mark.parametrize("play", [broken, cancelled_from_aside, no_text], ids=["exception", "cancelled", "no text"])
async def test_a_failed_run_takes_no_other_with_it(world: AnyWorld, play: Any) -> None:
    """E3: whatever comes out of an agent ends its own run; others, and the engine, go on."""
    async with running([Say("a "), Meet("here"), Say("b")], world, agents={"bad": Freehand(play)}) as it:
        other = await it.send(await it.new_session())
        await it.reached("here")
        bad = await it.send(await it.new_session(), agent="bad")
        assert (await it.ended(bad.id)).status == "failed"
        it.release("here")
        assert (await it.ended(other.id)).status == "complete"
        assert (await it.turn(bad.session_id)).status == "complete"
        assert not it.finished.is_set()


@pytest.mark.parametrize("call", ["store.transact", "journal.settled"])
async def test_a_chore_that_breaks_ends_no_run(world: AnyWorld, call: str) -> None:
    """E3: claiming and archiving are the engine's own: what nobody foresaw there is noted, and tried with the next."""

    class Broken(Tap):
        struck = armed = False

        async def before(self, name: str, args: Sequence[Any]) -> None:
            if name == call and self.armed and not self.struck:
                self.struck = True
                raise KeyError("nobody foresaw this")

    tap = Broken()
    async with running([Say("a "), Meet("here"), Say("b")], world, tap=tap) as it:
        run = await it.send(await it.new_session())
        await it.reached("here")
        tap.armed = True
        with anyio.fail_after(GUARD):
            while call == "store.transact" and not tap.struck:  # the next claim
                await checkpoint()
            it.release("here")
            assert (await it.ended(run.id)).status == "complete"
            while not tap.struck:
                await checkpoint()
        assert (await it.turn(await it.new_session())).status == "complete"


async def test_an_engine_that_ends_by_itself_says_so() -> None:
    """E3: a task of the engine is cancelled by nobody: the engine does not end silently, as if it had been told to."""

    class Aside(Tap):
        async def before(self, call: str, args: Sequence[Any]) -> None:
            if call == "store.transact" and armed:
                raise asyncio.CancelledError

    armed = False
    with pytest.RaisesGroup(pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="without having been told"))):
        async with running((), World(), tap=Aside()) as it:
            armed = True
            with anyio.fail_after(GUARD):
                await it.finished.wait()


async def test_a_failed_run_keeps_its_tools(world: AnyWorld) -> None:
    """E1: reasoning and tool calls before the error are kept as they were."""
    async with running(
        [Think("hm"), Call("a", result=1), Fail("provider", "It answered 500. Try again.")], world
    ) as it:
        sid = await it.new_session()
        await it.turn(sid)
        answer = await it.answer(sid)
        assert answer.parts == (Reasoning("hm"), Tool("a", "tool", None, "done", 1, duration_ms=0))
        assert answer.error is not None
        assert (answer.error.code, answer.error.message) == ("provider", "It answered 500. Try again.")


async def test_an_agent_that_does_not_exist_fails_the_run(world: AnyWorld) -> None:
    """E1: a run for an unknown agent fails with a message that says so, and the question stays."""
    async with running([Say("ok")], world) as it:
        sid = await it.new_session()
        run = await it.turn(sid, agent="nobody")
        assert run.status == "failed"
        assert run.error is not None
        assert "'nobody'" in run.error.message
        assert (await it.turn(sid)).status == "complete"


async def test_the_question_is_never_there_twice(world: AnyWorld) -> None:
    """E2: after failures, repeats of the send and retries of the answer, the user's message is there once."""
    async with running([Say("part"), Fail()], world) as it:
        sid = await it.new_session()
        run = await it.turn(sid, "once", key="k")
        await it.turn(sid, "once", key="k")
        await it.ended((await it.service.retry(sid, run.message_id)).run.id)
        await it.ended((await it.service.continue_run(run.id)).run.id)
        assert [texts(m.parts) for m in await it.shown(sid) if m.role == "user"] == ["once"]
        assert list(await it.store.inner.read(lambda tx: tx.children(sid, None))) == [run.user_message_id]
        answers = await it.store.inner.read(lambda tx: tx.children(sid, run.user_message_id))
        assert len(answers) == 3


async def test_a_question_that_waited_is_there_once(world: AnyWorld) -> None:
    """E2: one that was stored while the session was busy joins the tree when its turn comes, once."""
    async with running([Meet("here"), Say("part"), Fail()], world) as it:
        sid = await it.new_session()
        first = await it.send(sid, "first")
        await it.reached("here")
        second = await it.send(sid, "second", key="k")
        await it.send(sid, "second", key="k")
        it.release("here")
        await it.ended(second.id)
        assert [texts(m.parts) for m in await it.shown(sid) if m.role == "user"] == ["first", "second"]
        parents = (None, first.message_id, second.message_id)
        asked = await it.store.inner.read(lambda tx: [list(tx.children(sid, parent)) for parent in parents])
        assert asked == [[first.user_message_id], [second.user_message_id], []]


async def test_the_question_is_there_once_when_the_save_was_in_doubt(world: AnyWorld) -> None:
    """E2: the settling was done and reported as failed; settling again adds nothing."""

    class Doubt(Tap):
        """The first transaction after the terminal event is done and reported as failed."""

        sealed = struck = False

        async def after(self, call: str, args: Sequence[Any]) -> None:
            self.sealed = self.sealed or appends("run.complete")(call, args)
            if self.sealed and not self.struck and call == "store.transact":
                self.struck = True
                raise StorageError("done, and reported as failed")

    doubt = Doubt()
    async with running([Say("answer")], world, tap=doubt, poll=5.0) as it:
        sid = await it.new_session()
        run = await it.send(sid, "once")
        with anyio.fail_after(GUARD):
            while (await it.row(run.id)).is_open or it.engine.supervisor.executing:
                await checkpoint()
        assert doubt.struck
        await it.tick()
        assert [texts(m.parts) for m in await it.shown(sid)] == ["once", "answer"]
        await check_one_end(it, run, "complete")


@pytest.mark.parametrize("action", [Fail(), Crash()], ids=["provider", "bug"])
async def test_an_error_before_the_first_byte_leaves_a_notice_alone(world: AnyWorld, action: Action) -> None:
    """E3: failing before anything came leaves an empty failed message, no open upstream and a usable session."""
    async with running(in_turn([action], [Say("ok")]), world) as it:
        sid = await it.new_session()
        run = await it.turn(sid)
        answer = await it.answer(sid)
        assert (answer.status, answer.parts) == ("failed", ())
        assert answer.error is not None
        assert it.agent.upstreams == 0
        await check_one_end(it, run, "failed")
        assert (await it.turn(sid, "again")).status == "complete"
        assert [texts(m.parts) for m in it.agent.turns[-1].input.messages] == ["hello", "again"]
        await check_idle(it, sid)


async def test_an_error_before_anything_is_acquired_fails_that_run_alone(world: AnyWorld) -> None:
    """E3: an agent that cannot even be made fails its run; the engine, other runs and later turns are unharmed."""

    class Table:
        """A table in which making one agent raises."""

        def get(self, name: str) -> Agent | None:
            if name == "bad":
                raise RuntimeError("its configuration is broken")
            return good

    good = ScriptedAgent([Say("ok")])
    async with running((), world, agents=Table()) as it:
        sid = await it.new_session()
        run = await it.send(sid, agent="bad")
        other = await it.turn(await it.new_session())
        assert other.status == "complete"
        assert (await it.ended(run.id)).status == "failed"
        await check_one_end(it, run, "failed")
        assert (await it.turn(sid)).status == "complete"
        await check_idle(it, sid)


async def test_a_store_that_fails_during_the_save_is_made_up_for(world: AnyWorld) -> None:
    """E3: storage fails while the end is saved: the session is whole, and settled as complete when storage is back."""
    hold = Hold(appends("run.complete"), when="after")
    async with running([Say("an answer")], world, tap=hold) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
        it.store.away = True
        hold.go.set()
        with anyio.fail_after(GUARD):
            while it.engine.supervisor.executing:
                await checkpoint()
        assert (await it.row(run.id)).status == "running"
        it.store.away = False
        assert texts((await it.answer(sid)).parts) == "an answer"
        await check_one_end(it, run, "complete")
        assert (await it.turn(sid, "next")).status == "complete"
        await check_idle(it, sid)


class BrokenOnce(Tap):
    """A bug that shows itself once, in the first transaction after the run is sealed."""

    def __init__(self, seal: Callable[[str, Sequence[Any]], bool]) -> None:
        super().__init__()
        self._seal = seal
        self._armed = self._struck = False

    async def before(self, call: str, args: Sequence[Any]) -> None:
        if self._armed and not self._struck and call == "store.transact":
            self._struck = True
            raise RuntimeError("a bug in the save")

    async def after(self, call: str, args: Sequence[Any]) -> None:
        self._armed = self._armed or self._seal(call, args)


async def test_a_bug_inside_the_save_harms_no_other_run(world: AnyWorld) -> None:
    """E3: an exception of any kind inside the save leaves the server up, and the run is settled all the same."""
    async with running([Say("an answer")], world, tap=BrokenOnce(appends("run.complete")), poll=5.0) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        with anyio.fail_after(GUARD):
            while it.engine.supervisor.executing or (await it.row(run.id)).status == "queued":
                await checkpoint()
        await it.tick()
        assert (await it.ended(run.id)).status == "complete"
        assert texts((await it.answer(sid)).parts) == "an answer"
        assert (await it.turn(sid, "next")).status == "complete"
        await check_idle(it, sid)


async def nothing(turn: Turn, out: Out) -> str | None:
    return "stop"


async def empty_deltas(turn: Turn, out: Out) -> str | None:
    await out.write(TextDelta(""))
    await out.write(ReasoningDelta(""))
    return "stop"


async def no_answer(turn: Turn, out: Out) -> str | None:
    await out.write(MemoryRecalled(({"text": "likes tea", "source": "s"},)))
    await out.write(StepStarted(0))
    await out.write(Usage(10, 0))
    return "stop"


@pytest.mark.parametrize("play", [nothing, empty_deltas, no_answer])
async def test_an_empty_answer_is_a_failed_run(world: AnyWorld, play: Any) -> None:
    """E4: a stream without text, reasoning or tool call is a failure that says so, not an empty answer."""
    async with running((), world, agents={"chat": Freehand(play)}) as it:
        sid = await it.new_session()
        run = await it.turn(sid)
        assert run.status == "failed"
        assert run.error is not None
        assert run.error.code == "empty-answer"
        answer = await it.answer(sid)
        assert [part for part in answer.parts if not isinstance(part, Remembered)] == []
        await check_one_end(it, run, "failed")


@pytest.mark.parametrize(
    "script", [[Say("x")], [Think("x")], [Call("t")], [Recall(()), Say("x"), Spend(1, 1), Step(1)]], ids=str
)
async def test_any_output_is_an_answer(world: AnyWorld, script: list[Action]) -> None:
    """E4: text, reasoning or a tool call, each alone, is an answer."""
    async with running(script, world) as it:
        assert (await it.turn(await it.new_session())).status == "complete"


async def test_a_half_written_tool_call_is_output(memory: World) -> None:
    """E4: a tool call that the model began and never finished is shown as not run, not hidden behind an error."""

    async def play(turn: Turn, out: Out) -> str | None:
        await out.write(ToolDelta("t", "shell", args_delta='{"c'))
        return "stop"

    async with running((), memory, agents={"chat": Freehand(play)}) as it:
        sid = await it.new_session()
        assert (await it.turn(sid)).status == "complete"
        assert (await it.answer(sid)).parts == (Tool("t", "shell", '{"c', "not_run"),)
