"""Questions of the model to its user: they park the run like an approval, and the answer is the result of the call."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holdfast.core.errors import AlreadyDecidedError, HoldfastError, InvalidInputError, NotFoundError
from holdfast.core.ids import ApprovalId
from holdfast.core.parts import Json, ToolPart
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.core.run import Run
from holdfast.core.user_questions import MAX_ANSWER, SKIPPED
from holdfast.tools.approval_policy import ApprovalPolicy
from holdfast.tools.ask_user import AskUserTool
from tests.agents.models import Asks, ScriptedModel, Trace, answers, chat, results
from tests.engine.checks import check_idle, check_one_end
from tests.harness import GUARD, AnyWorld, Running, World, running
from tests.storage_interceptors import Fuse

pytestmark = pytest.mark.anyio

QUESTION: dict[str, Json] = {"question": "Which port?", "options": ["80", "8080"]}


def asking(args: dict[str, Json] = QUESTION) -> ScriptedModel:
    return ScriptedModel(answers(["I ask. ", Asks("q", "ask_user", args), Asks("c", "look", {"x": 1})], ["Done."]))


async def parked(it: Running) -> tuple[Run, ApprovalId]:
    run = await it.until((await it.send(await it.new_session(), "go")).id, "waiting")
    return run, (await it.question(run.id)).id


async def test_the_answer_is_the_result_of_the_call(world: AnyWorld) -> None:
    """A3: the run waits without a task and a lease; the model then reads the answer, and the calls after it run."""
    model, effects = asking(), list[str]()
    async with running(agents={"chat": chat(model, AskUserTool(), Trace("look", effects))}, world=world) as it:
        run, question = await parked(it)
        assert (run.lease, effects) == (None, [])
        assert question.startswith("ask_")
        await it.engine.runs.answer_input(run.id, question, "accept", {"answer": "443"})
        await check_one_end(it, await it.ended(run.id), "complete")
        assert [(message.text, message.is_error) for message in results(model.requests[-1])] == [
            ("443", False),
            ("done", False),
        ]
        (asked, _) = [part for part in (await it.answer(run)).parts if isinstance(part, ToolPart)]
        assert (asked.args, asked.state, asked.result) == (QUESTION, "done", "443")
        assert "tool.started" not in (await it.types(run.id))[: (await it.types(run.id)).index("tool.finished")]


async def test_a_question_can_be_skipped(world: AnyWorld) -> None:
    """A3: the model is told that there is no answer, and goes on."""
    model = asking()
    async with running(agents={"chat": chat(model, AskUserTool(), Trace("look", []))}, world=world) as it:
        run, question = await parked(it)
        await it.engine.runs.answer_input(run.id, question, "decline", {})
        assert (await it.ended(run.id)).status == "complete"
        assert results(model.requests[-1])[0].text == SKIPPED


async def test_nobody_answers_in_time() -> None:
    """A3: a question that expires is answered with the reason."""
    model, world = asking(), World()
    agents = {"chat": chat(model, AskUserTool(), Trace("look", []))}
    async with running(agents=agents, world=world, answer_within=60.0) as it:
        run, _ = await parked(it)
        world.clock.advance(61.0)
        await it.tick()
        assert (await it.ended(run.id)).status == "complete"
        assert "Nobody answered" in results(model.requests[-1])[0].text


@pytest.mark.parametrize(
    ("args", "answer"),
    [
        ({"question": "?", "options": ["a", "b"], "allow_text": False}, "c"),
        (QUESTION, "  "),
        (QUESTION, "x" * (MAX_ANSWER + 1)),
        (QUESTION, 80),
        (QUESTION, None),
    ],
)
async def test_what_is_no_answer_is_refused(args: dict[str, Json], answer: Json) -> None:
    """E3: the question stays open."""
    async with running(agents={"chat": chat(asking(args), AskUserTool(), Trace("look", []))}) as it:
        run, question = await parked(it)
        content = {} if answer is None else {"answer": answer}
        with pytest.raises(InvalidInputError, match=r"content\.answer"):
            await it.engine.runs.answer_input(run.id, question, "accept", content)
        assert (await it.row(run.id)).status == "waiting"


async def test_a_question_is_no_approval_and_the_first_answer_counts() -> None:
    """C6: it cannot be allowed as a call, and a second answer is refused."""
    async with running(agents={"chat": chat(asking(), AskUserTool(), Trace("look", []))}) as it:
        run, question = await parked(it)
        with pytest.raises(NotFoundError):
            await it.engine.runs.decide(run.id, question, "once")
        await it.engine.runs.answer_input(run.id, question, "accept", {"answer": "80"})
        with pytest.raises(AlreadyDecidedError):
            await it.engine.runs.answer_input(run.id, question, "decline", {})


@pytest.mark.parametrize("how", ["cancel", "interrupt"])
async def test_a_cancel_ends_the_question(world: AnyWorld, how: str) -> None:
    """C3: the call was not run, and the question takes no answer any more."""
    async with running(agents={"chat": chat(asking(), AskUserTool(), Trace("look", []))}, world=world) as it:
        run, question = await parked(it)
        if how == "cancel":
            await it.engine.runs.cancel(run.id)
        else:
            await it.send(run, "never mind", on_busy="interrupt")
        ended = await it.ended(run.id)
        assert ended.status == "cancelled"
        states = [part.state for part in (await it.stored(run.message_id)).parts if isinstance(part, ToolPart)]
        assert states == ["not_run", "not_run"]
        with pytest.raises(AlreadyDecidedError):
            await it.engine.runs.answer_input(run.id, question, "accept", {"answer": "80"})


@pytest.mark.parametrize("why", ["nobody", "denied"])
async def test_without_a_person_or_against_a_rule_nothing_is_asked(why: str) -> None:
    """E1: clients of an API show no questions, so the tool is not there; a rule of the user turns it off."""
    model = asking()
    policy = ApprovalPolicy({"ask_user": "deny"} if why == "denied" else {})
    agent = chat(model, AskUserTool(), Trace("look", []), policy=policy, has_person=lambda turn: why != "nobody")
    async with running(agents={"chat": agent}) as it:
        assert (await it.turn()).status == "complete"
        assert results(model.requests[-1])[0].is_error
        assert ("ask_user" in [tool.name for tool in model.requests[0].tools]) is (why == "denied")


async def drive(it: Running, run: Run, fuse: Fuse) -> int:
    """Answer every question, until the run ends or its process is gone. Returns the number of answers."""
    answered = 0
    with anyio.fail_after(GUARD):
        while (row := await it.row(run.id)).is_open and not fuse.blown.is_set():
            if row.status == "waiting":
                asked = await it.question(run.id)
                await it.engine.runs.answer_input(run.id, asked.id, "accept", {"answer": "443"})
                answered += 1
            await checkpoint()
    return answered


@pytest.mark.parametrize("done", [False, True], ids=["not-done", "done"])
async def test_an_answered_question_is_not_asked_again_after_a_crash_at_any_call(done: bool) -> None:
    """X5: wherever the process died, the turn goes on, and an answer that was accepted is the result of the call."""
    for at in range(1, 1000):
        world, fuse, effects = World(), Fuse(at, done), list[str]()
        agents = {"chat": chat(asking(), AskUserTool(), Trace("look", effects))}
        recovery = RecoveryPolicy(auto_continue=True)
        run: Run | None = None
        async with running(agents=agents, world=world, tap=fuse) as it:
            try:
                run = await it.send(await it.new_session(), "go")
                await drive(it, run, fuse)
            except HoldfastError:
                assert fuse.blown.is_set()
            await it.crash()
        if run is not None:
            async with running(agents=agents, world=world, recovery=recovery) as it:
                accepted = await answers_stored(it, run)
                again = 0
                with anyio.fail_after(GUARD):
                    while (row := await it.row(run.id)).is_open:
                        if row.status == "waiting":
                            asked = await it.question(run.id)
                            if asked.name == "ask_user":
                                again += 1
                                await it.engine.runs.answer_input(run.id, asked.id, "accept", {"answer": "443"})
                            else:  # it was started before the crash
                                await it.engine.runs.decide(run.id, asked.id, "once")
                        await checkpoint()
                assert (await it.row(run.id)).status == "complete", f"call {at}"
                assert not (accepted and again), f"call {at}: asked again"
                tools = [part for part in (await it.answer(run)).parts if isinstance(part, ToolPart)]
                assert [part.result for part in tools] == ["443", "done"], f"call {at}"
                await check_idle(it, run)
        if not fuse.blown.is_set():
            break
    assert at > 15


async def answers_stored(it: Running, run: Run) -> bool:
    """Whether the process that died had accepted an answer."""
    changes = await it.store.inner.read(lambda tx: tx.changes(0, 1000))
    return any(each.run_id == run.id and each.kind == "approval.changed" and each.status == "once" for each in changes)
