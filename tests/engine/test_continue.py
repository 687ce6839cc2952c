"""§5 Continue: a new run continues an earlier one; automatic continue requeues the same run."""

from collections.abc import Sequence

import pytest

from holdfast.agents.scripted_agent import Action, CallTool, Fail, Hang, Meet, Say, ScriptedAgent, Think
from holdfast.core.errors import NotAllowedError, NotFoundError
from holdfast.core.events import MessageSeeded, TextDelta, ToolFinished, ToolStarted
from holdfast.core.ids import LOCAL, OwnerId
from holdfast.core.parts import ReasoningPart, TextPart, ToolPart
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.core.run import Recovery, Run
from holdfast.core.transcript import fold
from holdfast.ports.agent import AgentError, AgentOutput, Turn
from holdfast.ports.store import RunQuery
from holdfast.storage.in_memory import InMemoryJournal
from tests.engine.checks import check_idle, check_one_end
from tests.harness import AnyWorld, Running, Script, SqliteWorld, World, crash_at, failure, in_turn, running, texts

pytestmark = pytest.mark.anyio

AUTO = RecoveryPolicy(auto_continue=True)
HALF: Script = [Think("hm"), Say("one "), CallTool("a", result=1)]
WHOLE: Script = [*HALF, Say("two")]
DONE = ToolPart("a", "tool", None, "done", 1, duration_ms=0)


async def test_a_continuing_run_begins_with_what_the_earlier_one_left(world: AnyWorld) -> None:
    """X5: its first event seeds the earlier parts, so that its own journal alone folds to the whole message; its agent
    is given them and the question, and not its own earlier message as history."""
    run = await crash_at(world, [*HALF, Meet("here"), Hang()], seen=5)
    async with running(WHOLE, world) as it:
        accepted = await it.engine.runs.continue_run(run.id)
        more = await it.ended(accepted.run.id)
        first, second = (await it.events(more.id))[:2]
        seeded = first.event()
        assert isinstance(seeded, MessageSeeded)
        assert (seeded.from_run, seeded.parts) == (run.id, (ReasoningPart("hm"), TextPart("one "), DONE))
        assert second.type == "run.started"
        assert (await it.answer(run)).parts == (ReasoningPart("hm"), TextPart("one "), DONE, TextPart("two"))
        assert (more.continues, more.user_message_id) == (run.id, run.user_message_id)
        assert accepted.message.id == run.user_message_id
        (turn,) = it.agent.turns
        assert turn.transcript.parts == (ReasoningPart("hm"), TextPart("one "), DONE)
        assert [texts(m.parts) for m in turn.input.messages] == ["hello"]
        assert it.agent.effects == []
        await check_one_end(it, more, "complete")
        await check_one_end(it, run, "interrupted")


async def test_its_message_takes_the_earlier_ones_place(world: AnyWorld) -> None:
    """O2: the continued message is a sibling; messages after the earlier one stay on the branch they were on."""

    def script(turn: Turn) -> Sequence[Action]:
        asked = texts(turn.input.messages[-1].parts)
        again = turn.run.continues is not None
        return [*HALF, Fail()] if asked == "first" and not again else WHOLE

    async with running(ScriptedAgent(script), world) as it:
        first = await it.turn(text="first")
        later = await it.turn(first, "later")
        more = await it.continue_to_end(first)
        view = (await it.engine.messages.page(first.session_id)).items
        assert [item.message.id for item in view] == [first.user_message_id, more.message_id]
        assert view[-1].siblings == (first.message_id, more.message_id)
        assert (await it.session_row(first.session_id)).head == more.message_id
        await it.engine.sessions.update(first.session_id, {}, show=first.message_id)
        assert [m.id for m in await it.shown(first)][-1] == later.message_id
        assert (await it.stored(first.message_id)).status == "failed"
        await check_idle(it, first)


@pytest.mark.parametrize("end", ["failed", "cancelled", "interrupted"])
async def test_any_unfinished_run_can_be_continued(world: AnyWorld, end: str) -> None:
    """X5: failed, cancelled and interrupted runs go on from what they left."""
    async with running(in_turn([*HALF, Meet("here"), Fail()], WHOLE), world) as it:
        run = await it.send_to_gate()
        if end == "cancelled":
            await it.engine.runs.cancel(run.id)
        elif end == "failed":
            it.release("here")
        else:
            await it.shut_down()
        if end != "interrupted":
            assert (await it.ended(run.id)).status == end
            await go_on(it, run)
    if end == "interrupted":
        async with running(WHOLE, world) as it:
            assert (await it.row(run.id)).status == end
            await go_on(it, run)


async def go_on(it: Running, run: Run) -> None:
    more = await it.continue_to_end(run)
    assert more.status == "complete"
    assert await it.answer_text(run) == "one two"
    assert it.agent.effects in ([], ["a"])


async def test_a_continued_run_can_be_continued(world: AnyWorld) -> None:
    """X5: from one run to the next, everything said and done so far goes along."""
    async with running(
        in_turn([Say("a "), Fail()], [Say("a "), CallTool("t"), Fail()], [Say("a "), CallTool("t"), Say("b")]), world
    ) as it:
        first = await it.turn()
        second = await it.continue_to_end(first)
        third = await it.continue_to_end(second)
        assert [run.status for run in (first, second, third)] == ["failed", "failed", "complete"]
        assert it.agent.effects == ["t"]
        assert await it.answer_text(first) == "a b"
        assert len((await it.engine.messages.page(first.session_id)).items[-1].siblings) == 3


async def test_what_cannot_be_continued_is_refused(world: AnyWorld) -> None:
    """X5: a complete run, an unknown one and somebody else's are not continued."""
    async with running([Say("x")], world) as it:
        run = await it.turn()
        with pytest.raises(NotAllowedError):
            await it.engine.runs.continue_run(run.id)
        with pytest.raises(NotFoundError):
            await it.engine.runs.continue_run(run.id, owner=OwnerId("somebody"))
        assert len(await it.engine.runs.list(RunQuery(LOCAL))) == 1


async def test_a_continuing_run_keeps_agent_and_model_unless_told_otherwise(world: AnyWorld) -> None:
    """X5: the continuation is answered by the same agent and model, or by the model that is named."""
    async with running([Say("x"), Fail()], world, agents={"other": ScriptedAgent([Say("x"), Fail()])}) as it:
        run = await it.turn(agent="other", model="m1")
        same = await it.continue_to_end(run)
        assert (same.agent, same.model) == ("other", "m1")
        other = await it.continue_to_end(run, model="m2")
        assert (other.agent, other.model) == ("other", "m2")
        assert (await it.answer(run)).model == "m2"


async def test_continuing_an_empty_run_starts_from_the_question(world: AnyWorld) -> None:
    """X5: a run that left nothing is continued with nothing, and answers."""
    async with running(in_turn([Fail()], [Say("now")]), world) as it:
        run = await it.turn()
        more = await it.continue_to_end(run)
        assert more.status == "complete"
        assert (await it.types(more.id))[0] == "message.seeded"
        assert await it.answer_text(run) == "now"


# ---- automatic ----


async def many_tools(turn: Turn, out: AgentOutput) -> str | None:
    """Leaves more than a journal takes as one event, and fails; continued, it ends."""
    if not turn.transcript.parts:
        for n in range(12):
            await out.commit(ToolStarted(f"t{n}", "tool", {}))
            await out.commit(ToolFinished(f"t{n}", "x" * 100_000))
        await out.commit(TextDelta("y" * 300_000))
        raise AgentError("no", "No.")
    await out.write(TextDelta("the end"))
    return "stop"


async def test_a_run_that_left_very_much_is_continued(sqlite: SqliteWorld) -> None:
    """X5: what a turn of many tools leaves is more than one event may be; it is continued all the same."""
    async with running(many_tools, sqlite) as it:
        run = await it.turn()
        left = (await it.answer(run)).parts
        more = await it.continue_to_end(run)
        assert (more.status, more.error) == ("complete", None)
        *tools, text = (await it.answer(run)).parts
        assert tuple(tools) == left[:-1]
        assert texts([text]) == texts(left) + "the end"
        types = await it.types(more.id)
        assert types[0] == "message.seeded"
        await check_one_end(it, more, "complete")


@pytest.mark.parametrize("begins", [True, False], ids=["continued", "cancelled before it began"])
async def test_what_an_earlier_run_said_is_not_counted_again(memory: World, begins: bool) -> None:
    """X5: a run that was stopped for having said too much can be continued: a person wants that, and the limit is of
    what one run says. Whoever ends it before it begins is not held up by it either."""

    async def talks(turn: Turn, out: AgentOutput) -> str | None:
        await out.write(TextDelta("the end" if turn.transcript.parts else "y" * 500_000))
        return "stop"

    async with running(talks, memory, max_output=300_000) as it:
        run = await it.turn()
        assert failure(run).code == "limit"
    async with running(talks, memory, max_output=300_000, max_runs=1 if begins else 0) as it:
        more = (await it.engine.runs.continue_run(run.id)).run
        row = await it.ended(more.id) if begins else await it.engine.runs.cancel(more.id)
        assert (row.status, row.error) == ("complete" if begins else "cancelled", None)
        said = await it.answer_text(run)
        assert (len(said), said[500_000:]) == (500_007, "the end") if begins else len(said) == 500_000


async def test_a_run_whose_seed_no_journal_takes_still_ends() -> None:
    """X2: it is cancelled before it began, and what it was to begin with is too large: it ends without that."""
    world = World()
    world.journal = InMemoryJournal(max_entry=1000)
    async with running([CallTool("t", result="x" * 600), CallTool("u", result="x" * 600), Fail()], world) as it:
        run = await it.turn()
    async with running((), world, max_runs=0) as it:
        more = (await it.engine.runs.continue_run(run.id)).run
        assert (await it.engine.runs.cancel(more.id)).status == "cancelled"
        await check_one_end(it, more, "cancelled")


async def test_automatic_continue_goes_on_with_the_same_run(world: AnyWorld) -> None:
    """X2: the same run, shown as queued until it is claimed, goes on in its message and journal, with `run.resumed`
    where it does and a higher epoch."""
    run = await crash_at(world, [*HALF, Meet("here"), Hang()], seen=5)
    async with running(WHOLE, world, max_runs=0, recovery=AUTO) as it:
        assert (await it.engine.runs.get(run.id)).status == "queued"
        active = (await it.engine.sessions.get(run.session_id)).active_run
        assert active is not None
        assert (active.id, active.status, await it.answer_text(run)) == (run.id, "queued", "one ")
        await it.crash()
    async with running(WHOLE, world, recovery=AUTO) as it:
        assert (await it.ended(run.id)).status == "complete"
        types = await it.types(run.id)
        assert types[5:] == ["run.resumed", "text.delta", "run.complete"]
        assert (await it.row(run.id)).epoch > run.epoch
        assert len(await it.shown(run)) == 2
        assert (await it.answer(run)).parts == (ReasoningPart("hm"), TextPart("one "), DONE, TextPart("two"))
        assert it.agent.effects == []
        assert it.agent.turns[0].transcript.parts == (ReasoningPart("hm"), TextPart("one "), DONE)
        await check_one_end(it, run, "complete")


async def test_automatic_continue_has_a_budget(world: AnyWorld) -> None:
    """X2: a run that takes its process down again and again is interrupted in the end."""
    run = await crash_at(world, [*HALF, Meet("here"), Hang()], seen=5)
    for resumed in (1, 2):
        async with running([*HALF, Meet("here"), Hang()], world, recovery=AUTO) as it:
            await it.collect(run.id, until=5 + resumed)
            assert (await it.row(run.id)).resumes == resumed
            await it.crash()
    async with running(WHOLE, world, recovery=AUTO) as it:
        assert (await it.row(run.id)).status == "interrupted"
        assert it.agent.turns == []
        assert fold(await it.events(run.id)).parts == (ReasoningPart("hm"), TextPart("one "), DONE)


async def test_a_run_that_was_asked_to_end_is_not_continued(world: AnyWorld) -> None:
    """X2: a cancel that was stored before the crash counts, also with automatic continue."""
    async with running([*HALF, Meet("here"), Hang()], world, cancel_wait=0.0) as it:
        run = await it.send_and_see(5)
        it.journal.away = True
        await it.engine.runs.cancel(run.id)
        await it.crash()
    async with running(WHOLE, world, recovery=AUTO) as it:
        assert (await it.row(run.id)).status == "cancelled"
        assert it.agent.turns == []


async def test_a_tool_in_mid_air_asks_before_an_automatic_repeat(world: AnyWorld) -> None:
    """X5: put back after a crash, the agent finds the tool of unknown outcome, not one that still runs, and asks."""
    run = await crash_at(world, [Say("a "), CallTool("t", takes=3600.0)], seen=3)
    async with running([Say("a "), CallTool("t", result="ok"), Say("b")], world, recovery=AUTO) as it:
        assert (await it.until(run.id, "waiting", "complete")).status == "waiting"
        assert it.agent.effects == []
        assert it.agent.turns[0].transcript.parts == (TextPart("a "), ToolPart("t", "tool", None, "unknown"))
        await it.decide(run, "once")
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == ["t"]


async def test_the_queue_waits_for_a_run_that_is_continued(world: AnyWorld) -> None:
    """A3: the interrupted run goes on first, then the turns that were queued behind it."""
    async with running([*HALF, Meet("here"), Hang()], world) as it:
        run = await it.send_and_see(5)
        queued = await it.send(run, "next")
        await it.crash()
    async with running(WHOLE, world, recovery=AUTO) as it:
        assert (await it.ended(queued.id)).status == "complete"
        assert [turn.run.id for turn in it.agent.turns] == [run.id, queued.id]
        assert (await it.row(run.id)).status == "complete"
        await check_idle(it, run)


@pytest.mark.parametrize("how", ["by itself", "by a person", "after an answer"])
async def test_a_lost_journal_makes_tools_ask(memory: World, how: str) -> None:
    """X5: the journal of a run that had begun is empty: that is shown, and a tool that had finished asks before it runs
    again, whoever continues the run."""
    asks = CallTool("u", asks=True)
    async with running([CallTool("t", result="ok"), asks if how == "after an answer" else Hang()], memory) as it:
        run = await it.send_and_see(3 + (how == "after an answer"))
        if how == "after an answer":
            await it.until(run.id, "waiting")
        await it.crash()
    memory.journal = InMemoryJournal()
    policy = AUTO if how == "by itself" else RecoveryPolicy()
    async with running([CallTool("t", result="ok"), Say("done")], memory, recovery=policy) as it:
        if how == "by a person":
            row = await it.engine.runs.get(run.id)
            assert (row.status, row.recovery) == ("interrupted", Recovery("none"))
            run = (await it.engine.runs.continue_run(run.id)).run
        elif how == "after an answer":
            await it.decide(run, "once")
        await it.until(run.id, "waiting")
        assert (await it.question(run.id)).call_id == "t"
        assert it.agent.effects == []
        await it.decide(run, "deny")
        ended = await it.ended(run.id)
        assert (ended.status, ended.recovery) == ("complete", Recovery("none"))
        assert it.agent.effects == []
