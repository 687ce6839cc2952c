"""Limits of a run: total time, idle time, event size and total output."""

import anyio
import pytest
import trio

from holdfast.agents.scripted_agent import CallTool, Hang, Meet, Say, SayTokens, ScriptedAgent
from holdfast.core.events import Event, ReasoningDelta, TextDelta, ToolDelta, ToolFinished, ToolStarted
from holdfast.core.parts import ReasoningPart, TextPart, ToolPart
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.core.run import Run
from holdfast.engine.settings import EngineSettings
from holdfast.ports.agent import AgentOutput, Turn
from tests.engine.checks import check_idle, check_saved_once
from tests.harness import AnyWorld, Running, Script, World, failure, running, texts, writes

pytestmark = pytest.mark.anyio

HOUR = 3600.0
DEFAULT = EngineSettings(poll_interval=600.0, sweep_interval=3600.0)


async def over(it: Running, run: Run, within: float) -> Run:
    """The run, failed by a limit with its partial kept."""
    row = await it.until(run.id, "failed", within=within)
    assert failure(row).code == "limit"
    assert it.agent.upstreams == 0
    await check_saved_once(it, run, "failed")
    await check_idle(it, run)
    return row


async def test_a_run_that_takes_too_long_is_ended_with_its_partial(virtual: World) -> None:
    """L2: past the wall-clock limit a run fails with what it has said, saved once."""
    async with running([SayTokens(100_000, rate=1 / 60)], virtual, settings=DEFAULT) as it:
        run = await it.send()
        row = await over(it, run, 10 * HOUR)
        assert DEFAULT.wall_limit <= trio.current_time() <= DEFAULT.wall_limit + 10
        assert "21600 seconds" in failure(row).message
        assert (await it.answer_text(run)).startswith("t0 t1 t2 ")


async def test_an_upstream_that_falls_silent_is_given_up(virtual: World) -> None:
    """E1: nothing came for too long: the run fails, says so, and keeps what there was."""
    async with running([Say("so far"), Hang()], virtual, settings=DEFAULT) as it:
        run = await it.send()
        row = await over(it, run, HOUR)
        assert DEFAULT.idle_limit <= trio.current_time() <= DEFAULT.idle_limit + 15
        assert "600 seconds" in failure(row).message
        assert await it.answer_text(run) == "so far"


async def test_a_slow_answer_is_not_a_silent_one(virtual: World) -> None:
    """L1: output, however slow, is no silence."""
    async with running([SayTokens(20, rate=1 / 500)], virtual, settings=DEFAULT) as it:
        run = await it.send()
        assert (await it.until(run.id, "complete", "failed", within=5 * HOUR)).status == "complete"


@pytest.mark.parametrize("can_park", [True, False], ids=["parked", "clinging"])
async def test_waiting_for_a_person_is_not_counted(virtual: World, can_park: bool) -> None:
    """L2: neither limit runs while a person thinks, for a parked run and for one that keeps its task."""
    agent = ScriptedAgent([Say("may I? "), CallTool("t", asks=True), Say("done")], can_park=can_park)
    async with running(agent, virtual, settings=DEFAULT) as it:
        run = await it.send()
        await it.until(run.id, "waiting")
        await anyio.sleep(8 * HOUR)
        assert (await it.row(run.id)).status == "waiting"
        await it.decide(run, "once")
        assert (await it.until(run.id, "complete", "failed", within=HOUR)).status == "complete"
        assert agent.effects == ["t"]


async def test_time_after_an_answer_counts_again(virtual: World) -> None:
    """L2: a run that kept its task and falls silent after the answer is ended by the idle limit."""
    agent = ScriptedAgent([CallTool("t", asks=True), Hang()], can_park=False)
    async with running(agent, virtual, settings=DEFAULT) as it:
        run = await it.send()
        await it.until(run.id, "waiting")
        await anyio.sleep(HOUR)
        await it.decide(run, "once")
        await over(it, run, HOUR)


# ---- sizes ----


async def test_an_event_over_the_largest_size_fails_its_run(world: AnyWorld) -> None:
    """E1: one event that storage cannot take fails the run with a message that says so; what came before is kept."""

    async def play(turn: Turn, out: AgentOutput) -> str | None:
        size = (65 << 20) if isinstance(world, World) else (2 << 20)
        await out.write(TextDelta("look: "))
        await out.commit(ToolStarted("t", "read", {}))
        await out.commit(ToolFinished("t", "x" * size))
        return "stop"

    async with running(play, world, max_output=1 << 30) as it:
        run = await it.turn()
        assert run.status == "failed"
        assert failure(run).code == "event-too-large"
        assert (await it.answer(run)).parts == (TextPart("look: "), ToolPart("t", "read", {}, "unknown"))
        await check_saved_once(it, run, "failed")


async def test_long_text_is_cut_into_events_not_refused(world: AnyWorld) -> None:
    """E1: text of any length is kept whole, in events that storage can take."""
    long = "aé😀\x01" * 500_000
    async with running(writes(TextDelta(long)), world) as it:
        run = await it.turn()
        assert run.status == "complete"
        assert (await it.answer(run)).parts == (TextPart(long),)


CHUNK = "0123456789" * 10
CHUNKS: dict[str, Event] = {
    "text": TextDelta(CHUNK),
    "reasoning": ReasoningDelta(CHUNK),
    "tool output": ToolDelta("t", output_delta=CHUNK),
}


@pytest.mark.parametrize("chunk", CHUNKS.values(), ids=CHUNKS)
async def test_the_largest_output_ends_the_run(world: AnyWorld, chunk: Event) -> None:
    """L2: a run that says too much is ended as failed, and what it said within the limit is kept."""

    async def play(turn: Turn, out: AgentOutput) -> str | None:
        await out.commit(ToolStarted("t", "yes", {}))
        while True:
            await out.write(chunk)

    async with running(play, world, max_output=20_000) as it:
        run = await it.turn()
        assert (run.status, failure(run).code) == ("failed", "limit")
        assert "20000" in failure(run).message
        part = (await it.answer(run)).parts[-1]
        assert isinstance(part, ToolPart | TextPart | ReasoningPart)
        assert 18_000 < len(part.output if isinstance(part, ToolPart) else part.text) <= 20_200
        await check_saved_once(it, run, "failed")


async def test_the_largest_output_is_one_for_all_lives_of_a_run(world: AnyWorld) -> None:
    """L2: what a run journalled before it was continued by itself counts towards its limit."""
    async with running([Say("x" * 15_000), Meet("here"), Hang()], world, max_output=20_000) as it:
        run = await it.send_to_gate()
        with anyio.fail_after(20):
            while len(texts((await it.folded(run.id)).parts)) < 15_000:
                await anyio.lowlevel.checkpoint()
        await it.crash()
    script: Script = [Say("x" * 15_000), Say("y" * 15_000), CallTool("t")]
    async with running(script, world, max_output=20_000, recovery=RecoveryPolicy(auto_continue=True)) as it:
        assert (await it.ended(run.id)).status == "failed"
        assert it.agent.effects == []


# ---- draining ----


async def test_draining_has_a_limit(virtual: World) -> None:
    """L2: a stopping server waits so long for its runs, and then seals them as interrupted."""
    async with running([Say("half"), Hang()], virtual, settings=DEFAULT) as it:
        run = await it.send()
        while not it.agent.upstreams:
            await anyio.lowlevel.checkpoint()
        began = trio.current_time()
        it.engine.stop()
        await it.finished.wait()
        assert DEFAULT.drain_time <= trio.current_time() - began <= DEFAULT.drain_time + 1
        assert (await it.row(run.id)).reason == "shutdown"
        await check_saved_once(it, run, "interrupted")


async def test_an_agent_that_does_not_let_go_does_not_hold_up_the_end_for_ever(virtual: World) -> None:
    """C7: a cancel that cannot be settled in time answers after two seconds with `cancel_requested`, whatever the agent
    does about it, and is carried out later."""

    async def play(turn: Turn, out: AgentOutput) -> str | None:
        await out.write(TextDelta("part"))
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(60)
        return None

    async with running(play, virtual, settings=DEFAULT) as it:
        run = await it.send()
        await it.until(run.id, "running")
        await anyio.sleep(1)
        began = trio.current_time()
        answer = await it.engine.runs.cancel(run.id)
        assert trio.current_time() - began == pytest.approx(2.0, abs=0.1)
        assert (answer.status, answer.cancel_requested) == ("running", True)
        await it.until(run.id, "cancelled", within=120)
        assert await it.answer_text(run) == "part"
