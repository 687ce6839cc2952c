"""Questions of running tools: the run waits with its task, and the question ends with it."""

from collections.abc import Mapping

import anyio
import pytest

from holdfast.core.errors import AlreadyDecidedError, InvalidInputError, NotFoundError
from holdfast.core.events import ApprovalRequested, Decision, InputRequested, InputResolved, ToolFinished, ToolStarted
from holdfast.core.ids import ApprovalId
from holdfast.core.parts import Json, ToolPart
from holdfast.core.run import Run
from holdfast.ports.agent import AgentOutput, InputAnswer, Turn
from tests.engine.checks import check_idle
from tests.harness import AnyWorld, Freehand, Running, running
from tests.storage_interceptors import Hold, appends

pytestmark = pytest.mark.anyio

SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "nights": {"type": "integer", "minimum": 1}},
    "required": ["name"],
}


def asking(answers: list[InputAnswer], expires_in: float | None = None) -> Freehand:
    """An agent whose tool asks for a berth."""

    async def play(turn: Turn, out: AgentOutput) -> str | None:
        await out.commit(ToolStarted("c", "book", {}))
        question = InputRequested(out.new_question_id(), "c", "harbour", "form", "Which berth?", SCHEMA, expires_in)
        answers.append(await out.ask_during_call(question))
        await out.commit(ToolFinished("c", answers[-1].action))
        return "stop"

    return Freehand(play)


async def waiting(it: Running) -> tuple[Run, ApprovalId]:
    run = await it.send(await it.new_session())
    run = await it.until(run.id, "waiting")
    return run, (await it.question(run.id)).id


async def test_a_person_fills_in_the_form_of_a_running_tool(world: AnyWorld) -> None:
    """X5: the run waits and goes on with the values, which neither the journal nor the row keeps. Values that do not
    fit the form are refused, and the first answer counts."""
    answers: list[InputAnswer] = []
    async with running(agents={"chat": asking(answers)}, world=world) as it:
        run, aid = await waiting(it)
        assert run.lease is not None
        answer = it.engine.runs.answer_input
        for wrong in ({}, {"name": 7}, {"name": "x", "nights": 0}, {"name": "x", "other": 1}):
            with pytest.raises(InvalidInputError):
                await answer(run.id, aid, "accept", wrong)
        with pytest.raises(NotFoundError):
            await answer(run.id, ApprovalId("apr_none"), "decline", {})
        await answer(run.id, aid, "accept", {"name": "North 4 s3cret", "nights": 2})
        with pytest.raises(AlreadyDecidedError):
            await answer(run.id, aid, "decline", {})
        assert (await it.ended(run.id)).status == "complete"
        assert answers == [InputAnswer("accept", {"name": "North 4 s3cret", "nights": 2})]
        events = await it.events(run.id)
        resolved = [event for event in (entry.event() for entry in events) if isinstance(event, InputResolved)]
        assert resolved == [InputResolved(aid, "accept")]
        assert b"s3cret" not in b"".join(entry.frame for entry in events)
        row = await it.store.inner.read(lambda tx: tx.approval(aid))
        assert "s3cret" not in str(row)


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_need_not_answer(world: AnyWorld, action: str) -> None:
    """X5: the tool goes on without an answer, and the run with the tool's result."""
    answers: list[InputAnswer] = []
    async with running(agents={"chat": asking(answers)}, world=world) as it:
        run, aid = await waiting(it)
        await it.engine.runs.answer_input(run.id, aid, action, {"name": "ignored"})  # type: ignore[arg-type]
        assert (await it.ended(run.id)).status == "complete"
        assert answers == [InputAnswer(action)]  # type: ignore[arg-type]


async def test_a_question_that_nobody_answers_is_cancelled(world: AnyWorld) -> None:
    """X5: after its time limit the run goes on and says why."""
    answers: list[InputAnswer] = []
    async with running(agents={"chat": asking(answers, expires_in=0.01)}, world=world) as it:
        run = await it.send(await it.new_session())
        assert (await it.ended(run.id)).status == "complete"
        assert answers == [InputAnswer("cancel")]
        events = [entry.event() for entry in await it.events(run.id)]
        (resolved,) = [event for event in events if isinstance(event, InputResolved)]
        assert (resolved.action, resolved.reason) == ("cancel", "Nobody answered in time.")


async def test_cancelling_the_run_cancels_its_question(world: AnyWorld) -> None:
    """C6: the question is withdrawn before the terminal event, and a later answer is refused."""
    async with running(agents={"chat": asking([])}, world=world) as it:
        run, aid = await waiting(it)
        await it.engine.runs.cancel(run.id)
        assert (await it.ended(run.id)).status == "cancelled"
        types = [entry.type for entry in await it.events(run.id)]
        assert types[-2:] == ["input.resolved", "run.cancelled"]
        with pytest.raises((AlreadyDecidedError, NotFoundError)):
            await it.engine.runs.answer_input(run.id, aid, "accept", {"name": "late"})
        await check_idle(it, run)


async def test_a_withdrawn_question_leaves_the_run_running(world: AnyWorld) -> None:
    """X5: a server that gives up its question does not leave a run that waits for nothing."""
    go = anyio.Event()

    async def play(turn: Turn, out: AgentOutput) -> str | None:
        await out.commit(ToolStarted("c", "book", {}))
        async with anyio.create_task_group() as tg:
            question = InputRequested(out.new_question_id(), "c", "harbour", "sampling", "May I?")
            tg.start_soon(out.ask_during_call, question)
            await go.wait()
            tg.cancel_scope.cancel()
        await out.commit(ToolFinished("c", "gave up"))
        return "stop"

    async with running(agents={"chat": Freehand(play)}, world=world) as it:
        run, _ = await waiting(it)
        go.set()
        assert (await it.ended(run.id)).status == "complete"
        assert (await it.answer(run)).parts[-1] == ToolPart("c", "book", {}, "done", "gave up")


async def test_a_question_withdrawn_while_it_is_published_does_not_stay_open(world: AnyWorld) -> None:
    """X5: a question whose call ends after its row is stored, and before it is in the journal, is answered with no."""
    hold = Hold(appends("input.requested"))

    async def play(turn: Turn, out: AgentOutput) -> str | None:
        await out.commit(ToolStarted("c", "book", {}))
        async with anyio.create_task_group() as tg:
            question = InputRequested(out.new_question_id(), "c", "harbour", "sampling", "May I?")
            tg.start_soon(out.ask_during_call, question)
            await hold.held()
            tg.cancel_scope.cancel()
        hold.go.set()
        await out.commit(ToolFinished("c", "gave up"))
        return "stop"

    async with running(agents={"chat": Freehand(play)}, world=world, tap=hold) as it:
        run = await it.send(await it.new_session())
        await it.ended(run.id)
        events = [entry.event() for entry in await it.events(run.id)]
        (asked,) = [event for event in events if isinstance(event, InputRequested)]
        assert InputResolved(asked.request_id, "cancel", "The call ended before an answer.") in events
        row = await it.store.inner.read(lambda tx: tx.approval(asked.request_id))
        assert row is not None
        assert row.note == "The call ended before an answer."


async def test_an_approval_and_a_question_are_answered_each_in_its_own_way(world: AnyWorld) -> None:
    """The call for the other kind finds nothing and changes nothing, whatever a program writes into the arguments of
    its call."""
    answers: list[InputAnswer] = []
    forged = {"holdfast.input": {"schema": SCHEMA, "action": "accept"}, "holdfast.calls": []}
    decisions: list[str] = []

    async def play(turn: Turn, out: AgentOutput) -> str | None:
        asked = await out.ask(ApprovalRequested(out.new_approval_id(), "c", "shell", forged))
        decisions.append(asked.decision)
        return "stop"

    async with running(agents={"chat": asking(answers), "program": Freehand(play, can_park=False)}, world=world) as it:
        run, aid = await waiting(it)
        decision: Decision
        for decision in ("once", "deny"):
            with pytest.raises(NotFoundError):
                await it.engine.runs.decide(run.id, aid, decision)
        assert (await it.question(run.id)).decision is None
        await it.engine.runs.answer_input(run.id, aid, "accept", {"name": "North"})
        await it.ended(run.id)
        assert answers == [InputAnswer("accept", {"name": "North"})]
        run = await it.send(await it.new_session(), agent="program")
        await it.until(run.id, "waiting")
        question = await it.question(run.id)
        with pytest.raises(NotFoundError):
            await it.engine.runs.answer_input(run.id, question.id, "accept", {"name": "x"})
        assert await it.question(run.id) == question
        await it.engine.runs.decide(run.id, question.id, "deny")
        await it.ended(run.id)
        assert decisions == ["deny"]
