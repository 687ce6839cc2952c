"""Section E: a failed run keeps its question, its partial answer and one notice, and affects no other run."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from holdfast.agents.scripted_agent import (
    Action,
    CallTool,
    Crash,
    Fail,
    Meet,
    Say,
    ScriptedAgent,
    Think,
)
from holdfast.core.errors import StorageError
from holdfast.core.events import MemoryRecalled, ReasoningDelta, StepStarted, TextDelta, ToolDelta, Usage
from holdfast.core.parts import RememberedPart, TextPart, ToolPart
from holdfast.ports.agent import Agent, AgentError, AgentOutput, Turn
from tests.engine.checks import check_idle, check_one_end
from tests.harness import AnyWorld, Freehand, Play, World, failure, in_turn, running, texts, writes
from tests.storage_interceptors import Hold, Strike, appends, calls, until

pytestmark = pytest.mark.anyio


async def no_text(turn: Turn, out: AgentOutput) -> str | None:
    words: Any = b"not text"
    await out.write(TextDelta(words))
    await anyio.sleep_forever()
    return None


async def cancelled_by_others() -> None:
    """What it waits for was cancelled by somebody else: asyncio raises what a cancel of its own would. (Under trio
    there is no loop of asyncio's, which is an error like any other.)"""
    gone = asyncio.get_running_loop().create_future()
    gone.cancel()
    await gone


async def times_out() -> None:
    with anyio.fail_after(0):
        await anyio.sleep_forever()


async def fails(error: Exception) -> None:
    raise error


def after_output(fail: Callable[[], Awaitable[None]]) -> Play:
    async def play(turn: Turn, out: AgentOutput) -> str | None:
        await out.write(TextDelta("so far"))
        await fail()
        return None

    return play


REFUSED = AgentError("rate-limit", "The provider says: too many requests. Try again in a minute.")
broken = after_output(lambda: fails(RuntimeError("a bug")))
ERRORS: dict[str, tuple[Play, str]] = {
    "provider": (after_output(lambda: fails(REFUSED)), "rate-limit"),
    "exception": (broken, "internal"),
    "malformed": (after_output(lambda: fails(json.JSONDecodeError("no", "{", 1))), "internal"),
    "timeout": (after_output(times_out), "internal"),
    "cancelled": (after_output(cancelled_by_others), "internal"),
}


@pytest.mark.parametrize(("play", "code"), ERRORS.values(), ids=ERRORS)
async def test_a_failed_run_keeps_question_partial_and_one_notice(world: AnyWorld, play: Any, code: str) -> None:
    """E1: whatever the error, the question with its timestamp and files, the partial and one readable error stay."""
    async with running(play, world) as it:
        sid = await it.new_session()
        world.clock.advance(7)
        sent_at, file = world.clock.now(), await it.add_file()
        accepted = await it.engine.runs.submit(sid, [TextPart("please"), file])
        world.clock.advance(60)
        run = await it.ended(accepted.run.id)
        assert run.status == "failed"
        question, answer = await it.shown(sid)
        assert question == accepted.message
        assert (question.parts, question.created_at) == ((TextPart("please"), file), sent_at)
        assert (answer.status, answer.parts) == ("failed", (TextPart("so far"),))
        assert failure(answer).code == code
        assert len(failure(answer).message) > 20
        assert (await it.row(run.id)).error == answer.error
        await check_one_end(it, run, "failed")
        await check_idle(it, sid)


@pytest.mark.parametrize(
    "play", [broken, after_output(cancelled_by_others), no_text], ids=["exception", "cancelled", "no text"]
)
async def test_a_failed_run_takes_no_other_with_it(world: AnyWorld, play: Any) -> None:
    """E3: whatever comes out of an agent ends its own run; others, and the engine, go on."""
    async with running([Say("a "), Meet("here"), Say("b")], world, agents={"bad": Freehand(play)}) as it:
        other = await it.send_to_gate()
        bad = await it.send(agent="bad")
        assert (await it.ended(bad.id)).status == "failed"
        it.release("here")
        assert (await it.ended(other.id)).status == "complete"
        assert (await it.turn(bad)).status == "complete"
        assert not it.finished.is_set()


@pytest.mark.parametrize("call", ["store.transact", "journal.settled"])
async def test_a_chore_that_breaks_ends_no_run(world: AnyWorld, call: str) -> None:
    """E3: claiming and archiving are the engine's own: what nobody foresaw there is noted, and tried with the next."""
    bug = Strike(calls(call), KeyError("nobody foresaw this"))
    async with running([Say("a "), Meet("here"), Say("b")], world, tap=bug) as it:
        run = await it.send_to_gate()
        bug.armed = True
        if call == "store.transact":
            await until(bug.struck)  # the next claim
        it.release("here")
        assert (await it.ended(run.id)).status == "complete"
        await until(bug.struck)
        assert (await it.turn()).status == "complete"


async def test_an_engine_that_ends_by_itself_says_so() -> None:
    """E3: a task of the engine is cancelled by nobody: the engine does not end silently, as if it had been told to."""
    cancel = Strike(calls("store.transact"), asyncio.CancelledError())
    with pytest.RaisesGroup(pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="without being told"))):
        async with running((), World(), tap=cancel) as it:
            cancel.armed = True
            await until(it.finished)


async def test_the_question_is_never_there_twice(world: AnyWorld) -> None:
    """E2: after failures, repeats of the send and retries of the answer, the user's message is there once."""
    async with running([Say("part"), Fail()], world) as it:
        run = await it.turn(text="once", key="k")
        await it.turn(run, "once", key="k")
        await it.ended((await it.engine.runs.retry(run.session_id, run.message_id)).run.id)
        await it.continue_to_end(run)
        assert [texts(m.parts) for m in await it.shown(run) if m.role == "user"] == ["once"]
        assert list(await it.store.inner.read(lambda tx: tx.children(run.session_id, None))) == [run.user_message_id]
        answers = await it.store.inner.read(lambda tx: tx.children(run.session_id, run.user_message_id))
        assert len(answers) == 3


async def test_a_question_that_waited_is_there_once(world: AnyWorld) -> None:
    """E2: one that was stored while the session was busy joins the tree when its turn comes, once."""
    async with running([Meet("here"), Say("part"), Fail()], world) as it:
        first = await it.send_to_gate(text="first")
        second = await it.send(first, "second", key="k")
        await it.send(first, "second", key="k")
        it.release("here")
        await it.ended(second.id)
        assert [texts(m.parts) for m in await it.shown(first) if m.role == "user"] == ["first", "second"]
        sid = first.session_id
        parents = (None, first.message_id, second.message_id)
        asked = await it.store.inner.read(lambda tx: [list(tx.children(sid, parent)) for parent in parents])
        assert asked == [[first.user_message_id], [second.user_message_id], []]


async def test_the_question_is_there_once_when_the_save_was_in_doubt(world: AnyWorld) -> None:
    """E2: the settling was done and reported as failed; settling again adds nothing."""
    doubt = Strike(calls("store.transact", "_settle"), StorageError("done"), when="after", arms=appends("run.complete"))
    async with running([Say("answer")], world, tap=doubt) as it:
        run = await it.send(text="once")
        await until(doubt.struck)
        await it.idle()
        await it.tick()
        assert await it.said(run) == ["once", "answer"]
        await check_one_end(it, run, "complete")


@pytest.mark.parametrize("action", [Fail(), Crash()], ids=["provider", "bug"])
async def test_an_error_before_the_first_byte_leaves_a_notice_alone(world: AnyWorld, action: Action) -> None:
    """E3: failing before anything came leaves an empty failed message, no open upstream and a usable session."""
    async with running(in_turn([action], [Say("ok")]), world) as it:
        run = await it.turn()
        answer = await it.answer(run)
        assert (answer.status, answer.parts) == ("failed", ())
        assert answer.error is not None
        assert it.agent.upstreams == 0
        await check_one_end(it, run, "failed")
        assert (await it.turn(run, "again")).status == "complete"
        assert it.model_input[1] == ["hello", "again"]
        await check_idle(it, run)


async def test_an_error_before_anything_is_acquired_fails_that_run_alone(world: AnyWorld) -> None:
    """E1, E3: an agent that does not exist or cannot be made fails its run and says so; all other runs are unharmed."""

    class Table:
        """A table in which making one agent raises."""

        def get(self, name: str) -> Agent | None:
            if name == "bad":
                raise RuntimeError("its configuration is broken")
            return None if name == "nobody" else ScriptedAgent([Say("ok")])

    async with running((), world, agents=Table()) as it:
        for name, words in (("bad", ""), ("nobody", "'nobody'")):
            run = await it.turn(agent=name)
            assert run.status == "failed"
            assert words in failure(run).message
            await check_one_end(it, run, "failed")
            assert (await it.turn()).status == "complete"
            assert (await it.turn(run)).status == "complete"
            await check_idle(it, run)


async def test_a_store_that_fails_during_the_save_is_made_up_for(world: AnyWorld) -> None:
    """E3: storage fails while the end is saved: the session is whole, and settled as complete when storage is back."""
    async with running([Say("an answer")], world, tap=(hold := Hold(appends("run.complete"), when="after"))) as it:
        run = await it.send()
        await hold.held()
        it.store.away = True
        hold.go.set()
        await it.idle()
        assert (await it.row(run.id)).status == "running"
        it.store.away = False
        assert await it.answer_text(run) == "an answer"
        await check_one_end(it, run, "complete")
        assert (await it.turn(run, "next")).status == "complete"
        await check_idle(it, run)


async def test_a_bug_inside_the_save_harms_no_other_run(world: AnyWorld) -> None:
    """E3: an exception of any kind inside the save leaves the server up, and the run is settled all the same."""
    bug = Strike(calls("store.transact", "_settle"), RuntimeError("a bug in the save"), arms=appends("run.complete"))
    async with running([Say("an answer")], world, tap=bug) as it:
        run = await it.send()
        await until(bug.struck)
        await it.idle()
        await it.tick()
        assert (await it.ended(run.id)).status == "complete"
        assert await it.answer_text(run) == "an answer"
        assert (await it.turn(run, "next")).status == "complete"
        await check_idle(it, run)


REMEMBERED = MemoryRecalled(({"text": "likes tea", "source": "s"},))
EMPTY: dict[str, Play] = {
    "nothing": writes(),
    "empty deltas": writes(TextDelta(""), ReasoningDelta("")),
    "no answer": writes(REMEMBERED, StepStarted(0), Usage(10, 0)),
}


@pytest.mark.parametrize("play", EMPTY.values(), ids=EMPTY)
async def test_an_empty_answer_is_a_failed_run(world: AnyWorld, play: Play) -> None:
    """E4: a stream without text, reasoning or tool call is a failure that says so, not an empty answer."""
    async with running(play, world) as it:
        run = await it.turn()
        assert run.status == "failed"
        assert failure(run).code == "empty-answer"
        answer = await it.answer(run)
        assert [part for part in answer.parts if not isinstance(part, RememberedPart)] == []
        await check_one_end(it, run, "failed")


@pytest.mark.parametrize(
    "script",
    [[Say("x")], [Think("x")], [CallTool("t")], [MemoryRecalled(()), Say("x"), Usage(1, 1), StepStarted(1)]],
    ids=str,
)
async def test_any_output_is_an_answer(world: AnyWorld, script: list[Action]) -> None:
    """E4, L4: text, reasoning or a tool call, each alone, is an answer, and the run complete."""
    async with running(script, world) as it:
        assert (await it.turn()).status == "complete"


async def test_a_half_written_tool_call_is_output(memory: World) -> None:
    """E4: a tool call that the model began and never finished is shown as not run, not hidden behind an error."""
    async with running(writes(ToolDelta("t", "shell", args_delta='{"c')), memory) as it:
        run = await it.turn()
        assert run.status == "complete"
        assert (await it.answer(run)).parts == (ToolPart("t", "shell", '{"c', "not_run"),)
