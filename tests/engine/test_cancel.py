"""Section C: cancelling keeps the partial answer, once, and stops the upstream in the middle of an await."""

from collections.abc import Sequence

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted_agent import Action, CallTool, Hang, Meet, Say, SayTokens, ScriptedAgent, Think
from holdfast.core import events as ev
from holdfast.core.errors import NotFoundError, StorageUnavailableError
from holdfast.core.ids import OwnerId
from holdfast.core.parts import Part, ReasoningPart, TextPart, ToolPart
from holdfast.core.transcript import fold
from holdfast.ports.agent import AgentOutput, Turn
from tests.engine.checks import check_one_end, check_saved_once
from tests.harness import AnyWorld, Script, World, running, texts
from tests.storage_interceptors import GUARD, Hold, appends, calls

pytestmark = pytest.mark.anyio


LS, FALSE = {"cmd": "ls"}, {"cmd": "false"}
KEPT: dict[str, tuple[list[ev.Event], list[Part]]] = {
    "reasoning alone": ([ev.ReasoningDelta("let me "), ev.ReasoningDelta("see")], [ReasoningPart("let me see")]),
    "reasoning and text": (
        [ev.ReasoningDelta(" hm\n"), ev.TextDelta("It is "), ev.TextDelta("so\n\n")],
        [ReasoningPart(" hm\n"), TextPart("It is so\n\n")],
    ),
    "finished, failed and running tools": (
        [
            ev.ToolStarted("a", "search", {"q": 1}),
            ev.ToolFinished("a", ["found"]),
            ev.ToolStarted("b", "shell", FALSE),
            ev.ToolFinished("b", "exit 1", is_error=True),
            ev.ToolStarted("c", "shell", LS),
            ev.ToolDelta("c", output_delta="one\n"),
            ev.ToolDelta("c", output_delta="two\n "),
        ],
        [
            ToolPart("a", "search", {"q": 1}, "done", ["found"]),
            ToolPart("b", "shell", FALSE, "done", "exit 1", True),
            ToolPart("c", "shell", LS, "unknown", output="one\ntwo\n "),
        ],
    ),
    "half a call, and the name of one": (
        [ev.ToolDelta("a", "write_file", args_delta='{"path": "a'), ev.ToolDelta("b", "shell", args_delta="")],
        [ToolPart("a", "write_file", '{"path": "a', "not_run"), ToolPart("b", "shell", "", "not_run")],
    ),
    "text between calls": (
        [
            ev.TextDelta("first "),
            ev.ToolDelta("a", "search", args_delta='{"q'),
            ev.TextDelta("then "),
            ev.ToolStarted("b", "search", {}),
            ev.TextDelta("last"),
        ],
        [
            TextPart("first "),
            ToolPart("a", "search", '{"q', "not_run"),
            TextPart("then "),
            ToolPart("b", "search", {}, "unknown"),
            TextPart("last"),
        ],
    ),
    "nothing but a paid step": ([ev.StepStarted(0), ev.Usage(5, 0)], []),
}


@pytest.mark.parametrize(("events", "parts"), KEPT.values(), ids=KEPT)
async def test_a_cancelled_run_keeps_its_partial_answer(
    world: AnyWorld, events: list[ev.Event], parts: list[Part]
) -> None:
    """C1, C2, C3, C4, C5, C8: reasoning, text and tool calls stay as they were shown, in order, with how far they came;
    without any of them the notice stands alone."""

    async def play(turn: Turn, out: AgentOutput) -> str | None:
        for event in events:
            await out.write(event)
        it.agent.gate("here").reached.set()
        await anyio.sleep_forever()
        return None

    async with running(play, world) as it:
        run = await it.send_to_gate()
        cancelled = await it.engine.runs.cancel(run.id)
        assert (cancelled.status, cancelled.reason) == ("cancelled", "requested")
        _, answer = await it.shown(run)
        assert (list(answer.parts), answer.error) == (parts, None)
        await check_one_end(it, run, "cancelled")


async def test_a_run_that_no_node_has_begun_is_cancelled(world: AnyWorld) -> None:
    """C5: cancelled before its execution began, a run ends with one notice, and the agent is never called."""
    async with running([Say("never")], world, max_runs=0) as it:
        run = await it.send()
        assert (await it.engine.runs.cancel(run.id)).status == "cancelled"
        await check_one_end(it, run, "cancelled")
        assert (await it.answer(run)).parts == ()
        assert it.agent.turns == []


async def test_a_cancel_after_the_end_is_not_heard_of(world: AnyWorld) -> None:
    """C6: cancelled when it was complete, a run stays what it was, and no reader is told that it changed."""
    async with running([Say("whole")], world) as it:
        run = await it.turn()
        before = await it.row(run.id), await it.session_row(run.session_id)
        answer = await it.engine.runs.cancel(run.id)
        assert (answer.status, answer.cancel_requested) == ("complete", False)
        assert (await it.row(run.id), await it.session_row(run.session_id)) == before
        await check_saved_once(it, run, "complete")


async def test_a_cancel_that_races_the_end_leaves_one_state(memory: World) -> None:
    """C6: whatever the moment of a cancel, there is one terminal event, and run and message say the same."""

    def script(turn: Turn) -> Sequence[Action]:
        return [Say("an answer"), Meet(texts(turn.input.messages[-1].parts))]

    async with running(ScriptedAgent(script), memory) as it:
        ended: set[str] = set()
        for offset in range(40):
            run = await it.send(await it.new_session(), f"gate {offset}")
            await it.reached(f"gate {offset}")
            async with anyio.create_task_group() as tg:
                tg.start_soon(it.engine.runs.cancel, run.id)
                for _ in range(offset):
                    await checkpoint()
                it.release(f"gate {offset}")
            status = (await it.row(run.id)).status
            await check_one_end(it, run, status)
            assert await it.answer_text(run) == "an answer"
            ended.add(status)
        assert ended == {"cancelled", "complete"}


async def test_a_cancel_during_the_last_append_does_not_make_a_second_end(world: AnyWorld) -> None:
    """C6: the terminal event is on its way to the journal when the cancel comes: the first one counts."""
    async with running([Say("done")], world, tap=(hold := Hold(appends("run.complete"))), cancel_wait=0.0) as it:
        run = await it.send()
        await hold.held()
        assert (await it.engine.runs.cancel(run.id)).cancel_requested
        hold.go.set()
        assert (await it.ended(run.id)).status == "complete"
        await check_one_end(it, run, "complete")


@pytest.mark.parametrize("action", [Hang(), CallTool("t", takes=3600.0)], ids=["model", "tool"])
async def test_cancel_does_not_wait_for_the_upstream(world: AnyWorld, action: Action) -> None:
    """C7: an upstream that sends nothing is let go of in the middle of the await, before the answer to the cancel."""
    async with running([Say("a"), Meet("here"), action], world) as it:
        run = await it.send_to_gate()
        it.release("here")
        await it.collect(run.id, until=3 if isinstance(action, CallTool) else 2)
        assert it.agent.upstreams == 1
        assert (await it.engine.runs.cancel(run.id)).status == "cancelled"
        assert it.agent.upstreams == 0


@pytest.mark.parametrize("action", [SayTokens(20_000), Say("x" * 100_000)], ids=["put", "write"])
async def test_back_pressure_does_not_hold_up_a_cancel(virtual: World, action: Action) -> None:
    """C7: an agent that waits until storage has room is stopped in the middle of that; what it handed over is saved."""
    async with running([action], virtual, tap=(hold := Hold(calls("journal.append"))), cancel_wait=0.0) as it:
        try:
            run = await it.send()
            await hold.held()
            await it.engine.runs.cancel(run.id)
            with anyio.fail_after(GUARD):
                while it.agent.upstreams:  # noqa: ASYNC110  virtual time: nobody waits here
                    await anyio.sleep(1)
        finally:
            hold.go.set()
        assert (await it.until(run.id, "cancelled")).reason == "requested"
        whole = "".join(f"t{n} " for n in range(20_000)) if isinstance(action, SayTokens) else "x" * 100_000
        text = await it.answer_text(run)
        assert len(text) > 30
        assert whole.startswith(text)


async def test_what_was_shown_is_saved_byte_for_byte(world: AnyWorld) -> None:
    """C8: every event that a client had received before the cancel is in the journal and in the saved message."""
    pieces = ["naïve ", "😀", "\u2028", "\x00", "\ud83d", '"\\\n', "中文 "]

    async def play(turn: Turn, out: AgentOutput) -> str | None:
        while True:
            for piece in pieces:
                await out.write(ev.TextDelta(piece))
                await checkpoint()

    async with running(play, world) as it:
        run = await it.send()
        shown = await it.collect(run.id, until=12)
        cancelled = await it.engine.runs.cancel(run.id)
        saved = (await it.answer(run)).parts
        assert cancelled.status == "cancelled"
        assert (await it.events(run.id))[: len(shown)] == shown
        seen = texts(fold(shown).parts)
        assert "😀" in seen
        assert texts(saved).startswith(seen)
        assert saved == (await it.folded(run.id)).parts


async def test_everything_handed_over_before_a_cancel_is_saved(world: AnyWorld) -> None:
    """C8: output that was in the middle of a commit, or still waited for it, when the cancel came is in the message."""
    hold = Hold(appends("text.delta"))
    script: Script = [Say("committing "), Meet("one"), Think("hm"), Say("waiting"), Meet("two"), Hang()]
    async with running(script, world, tap=hold, cancel_wait=0.0) as it:
        run = await it.send_to_gate(gate="one")
        await hold.held()
        it.release("one")
        await it.reached("two")
        await it.engine.runs.cancel(run.id)
        hold.go.set()
        assert (await it.ended(run.id)).status == "cancelled"
        assert (await it.answer(run)).parts == (TextPart("committing "), ReasoningPart("hm"), TextPart("waiting"))


# ---- §5 Cancel ----


async def test_cancel_stops_the_run_even_if_the_store_is_away(world: AnyWorld) -> None:
    """C7: with the store unreachable the caller gets an error, but the upstream call is ended all the same."""
    async with running([Say("part"), Meet("here"), Hang()], world) as it:
        run = await it.send_to_gate()
        it.store.away = True
        with pytest.raises(StorageUnavailableError):
            await it.engine.runs.cancel(run.id)
        await it.idle()
        assert it.agent.upstreams == 0
        it.store.away = False
        await it.tick()
        await check_one_end(it, run, "cancelled")


async def test_a_cancelled_run_says_who_asked(world: AnyWorld) -> None:
    """C6: the reason that was given is the run's, and somebody else's run cannot be cancelled."""
    async with running([Meet("here"), Hang()], world) as it:
        run = await it.send_to_gate()
        with pytest.raises(NotFoundError):
            await it.engine.runs.cancel(run.id, OwnerId("somebody"))
        assert (await it.row(run.id)).status == "running"
        assert (await it.engine.runs.cancel(run.id, reason="impatience")).reason == "impatience"
        assert (await it.answer(run)).reason == "impatience"
