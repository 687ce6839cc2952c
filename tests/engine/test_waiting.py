"""§5 Waiting: a run that asks a person holds no lease and no task; the first answer counts."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from holdfast.agents.scripted_agent import Action, CallTool, Meet, Say, ScriptedAgent
from holdfast.core.errors import AlreadyDecidedError, NotAllowedError, NotFoundError
from holdfast.core.events import ApprovalRequested, ApprovalResolved, Decision, Event, ToolStarted
from holdfast.core.ids import ApprovalId, OwnerId, RunId, SessionId
from holdfast.core.late_approvals import NO_ANSWER
from holdfast.core.parts import TextPart, ToolPart
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.core.run import Run
from holdfast.engine.transactions import approvals, cancel_requests
from holdfast.ports.agent import AgentOutput, ApprovalAnswer, Turn
from tests.engine.checks import check_idle, check_one_end
from tests.harness import AnyWorld, Freehand, Running, Script, crash_at, in_turn, running
from tests.storage_interceptors import GUARD, Both, Hold, Tap, appends, calls, until

pytestmark = pytest.mark.anyio

ASKING: Script = [Say("may I? "), CallTool("t", "shell", {"cmd": "ls"}, result="files", asks=True), Say("done")]


async def asked(it: Running, sid: SessionId | None = None, **options: Any) -> Run:
    """A run that waits for a person."""
    run = await it.send(sid or await it.new_session(), **options)
    return await it.until(run.id, "waiting")


both_kinds = pytest.mark.parametrize("can_park", [True, False], ids=["parked", "keeps its task"])
NOT_RUN = (TextPart("may I? "), ToolPart("t", "shell", {"cmd": "ls"}, "not_run"))


async def test_a_waiting_run_holds_no_lease_and_no_task(world: AnyWorld) -> None:
    """X5: a run whose agent can park waits as a row: no lease, no task, no open upstream."""
    async with running(ASKING, world) as it:
        run = await asked(it)
        assert run.lease is None
        await it.idle()
        assert it.agent.upstreams == 0
        view = await it.engine.sessions.get(run.session_id)
        assert view.active_run is not None
        assert (view.active_run.id, view.active_run.status) == (run.id, "waiting")
        answer = await it.answer(run)
        assert answer.status == "streaming"
        assert answer.parts == (TextPart("may I? "), ToolPart("t", "shell", {"cmd": "ls"}, "waiting"))
        question = await it.question(run.id)
        assert (question.call_id, question.name, question.args) == ("t", "shell", {"cmd": "ls"})
        assert it.agent.effects == []


async def test_recovery_leaves_a_waiting_run_alone(world: AnyWorld) -> None:
    """X2, X5: sweeps, readers and restarts do not end a run that waits for a person without a limit; an answer that was
    given before a crash is taken up after it."""
    async with running(ASKING, world) as it:
        run = await asked(it)
        await it.tick()
        await it.engine.sessions.get(run.session_id)
        await it.crash()
    async with running(ASKING, world, answer_within=0.0, max_runs=0) as it:
        world.clock.advance(1e9)
        await it.tick()
        assert (await it.engine.runs.get(run.id)).status == "waiting"
        await it.decide(run, "once")
        await it.crash()
    async with running(ASKING, world) as it:
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == ["t"]
        assert await it.answer_text(run) == "may I? done"
        await check_one_end(it, run, "complete")


@pytest.mark.parametrize("decision", ["once", "session", "always"])
async def test_an_allowed_tool_runs_once_and_the_run_goes_on(world: AnyWorld, decision: Decision) -> None:
    """X5: the decision requeues the run; the executor journals it, runs the tool and finishes the answer."""
    async with running(ASKING, world) as it:
        run = await asked(it)
        assert (await it.decide(run, decision)).status == "queued"
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == ["t"]
        assert it.agent.turns[-1].decisions == {"t": decision}
        types = await it.types(run.id)
        assert types.index("approval.requested") < types.index("run.resumed") < types.index("approval.resolved")
        assert types.index("approval.resolved") < types.index("tool.started") < types.index("tool.finished")
        assert f'"decision":"{decision}"'.encode() in (await it.events(run.id))[types.index("approval.resolved")].frame
        assert await it.answer_text(run) == "may I? done"
        await check_idle(it, run)


@both_kinds
async def test_a_denied_tool_does_not_run(world: AnyWorld, can_park: bool) -> None:
    """X5: denied, the tool is shown as denied, has no effect, and the answer goes on without it."""
    async with running(ScriptedAgent(ASKING, can_park=can_park), world) as it:
        run = await asked(it)
        await it.decide(run, "deny")
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == []
        denied = ToolPart("t", "shell", {"cmd": "ls"}, "denied")
        assert (await it.answer(run)).parts == (TextPart("may I? "), denied, TextPart("done"))


@both_kinds
async def test_a_question_that_nobody_answers_is_denied_with_that_said(world: AnyWorld, can_park: bool) -> None:
    """X5: after its time the answer is deny; the tool says why, the run goes on, and a later answer comes too late."""
    async with running(ScriptedAgent(ASKING, can_park=can_park), world, answer_within=3600.0) as it:
        run = await asked(it)
        question = await it.question(run.id)
        world.clock.advance(3599)
        await it.tick()
        assert (await it.row(run.id)).status == "waiting"
        world.clock.advance(2)
        await it.tick()
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == []
        tool = (await it.answer(run)).parts[1]
        assert isinstance(tool, ToolPart)
        assert (tool.state, tool.result) == ("denied", "Nobody answered within 1 hour, so it was denied.")
        with pytest.raises(AlreadyDecidedError):
            await it.engine.runs.decide(run.id, question.id, "once")


async def test_the_first_decision_wins(world: AnyWorld) -> None:
    """X5: of answers at the same time one counts; the others, and later ones, are told which."""
    async with running(ASKING, world) as it:
        run = await asked(it)
        question = await it.question(run.id)
        told: list[str] = []

        async def answer(decision: Decision) -> None:
            try:
                await it.engine.runs.decide(run.id, question.id, decision)
            except AlreadyDecidedError as refused:
                told.append(refused.decision)

        async with anyio.create_task_group() as tg:
            decisions: list[Decision] = ["deny", "once", "always", "session"]
            for decision in decisions:
                tg.start_soon(answer, decision)
        stored = (await it.approval(question.id)).decision
        assert told == [stored] * 3
        await it.ended(run.id)
        with pytest.raises(AlreadyDecidedError) as late:
            await it.engine.runs.decide(run.id, question.id, "once")
        assert late.value.decision == stored
        assert it.agent.effects == ([] if stored == "deny" else ["t"])
        assert (await it.types(run.id)).count("approval.resolved") == 1


async def test_a_question_is_answered_by_its_owner_about_its_run(world: AnyWorld) -> None:
    """X5: an unknown question, another run's, or somebody else's run cannot be answered."""
    async with running(ASKING, world) as it:
        one, two = await asked(it), await asked(it)
        question = await it.question(one.id)
        with pytest.raises(NotFoundError):
            await it.engine.runs.decide(two.id, question.id, "once")
        with pytest.raises(NotFoundError):
            await it.engine.runs.decide(one.id, ApprovalId("apr_none"), "once")
        with pytest.raises(NotFoundError):
            await it.engine.runs.decide(one.id, question.id, "once", OwnerId("somebody"))
        assert (await it.approval(question.id)).decision is None


@both_kinds
async def test_cancel_answers_the_question_with_deny(world: AnyWorld, can_park: bool) -> None:
    """C6, C7: a waiting run is cancelled at once, its question is closed as denied, and its tool has not run."""
    async with running(ScriptedAgent(ASKING, can_park=can_park), world) as it:
        run = await asked(it)
        question = await it.question(run.id)
        assert (await it.engine.runs.cancel(run.id)).status == "cancelled"
        assert it.agent.upstreams == 0
        assert (await it.approval(question.id)).decision == "deny"
        with pytest.raises(AlreadyDecidedError):
            await it.engine.runs.decide(run.id, question.id, "once")
        assert (await it.answer(run)).parts == NOT_RUN
        await check_one_end(it, run, "cancelled")
        await check_idle(it, run)


async def test_a_question_of_a_run_that_was_asked_to_end_is_no_longer_answered(world: AnyWorld) -> None:
    """C6: a Stop that is written down and not yet carried out counts: a later answer does not set the tool going."""
    async with running(ASKING, world) as it:
        run = await asked(it)
        question = await it.question(run.id)
        await it.store.inner.transact(lambda tx: cancel_requests.request_cancel(tx, run.id, run.owner, "requested"))
        with pytest.raises(NotAllowedError):
            await it.engine.runs.decide(run.id, question.id, "once")
        assert (await it.engine.runs.get(run.id)).status == "cancelled"
        assert (await it.approval(question.id)).decision == "deny"
        assert it.agent.effects == []


@pytest.mark.parametrize("edit", ["undo", "clear", "delete", "retry", "interrupt"])
async def test_an_edit_that_hides_a_waiting_run_ends_it(world: AnyWorld, edit: str) -> None:
    """O1, A3: undo, clear, delete, retry and an interrupting turn end a run that waits for a person like one that
    runs, and answer its question with deny."""
    async with running(in_turn(ASKING, [Say("instead")]), world) as it:
        run = await asked(it)
        question = await it.question(run.id)
        if edit == "retry":
            await it.ended((await it.engine.runs.retry(run.session_id, run.message_id)).run.id)
        elif edit == "interrupt":
            await it.turn(run, "never mind", on_busy="interrupt")
            assert await it.said(run) == ["hello", "may I? ", "never mind", "instead"]
        else:
            await getattr(it.engine.sessions, edit)(run.session_id)
        await it.until(run.id, "cancelled")
        assert it.agent.effects == []
        if edit not in ("clear", "delete"):
            assert (await it.approval(question.id)).decision == "deny"
        if edit != "delete":
            await check_idle(it, run)


async def test_an_answer_may_come_before_the_run_has_parked(world: AnyWorld) -> None:
    """X5: the question can be answered as soon as it is stored; the run then goes on without having waited."""
    async with running(ASKING, world, tap=(hold := Hold(appends("approval.requested")))) as it:
        run = await it.send()
        await hold.held()
        await it.decide(run, "once")
        hold.go.set()
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == ["t"]
        assert (await it.types(run.id)).count("approval.resolved") == 1


async def test_news_of_an_earlier_execution_does_not_stop_the_next(world: AnyWorld) -> None:
    """X5: the run is answered, parked and taken up again while its old row is still being read: it goes on."""
    question = Hold(appends("approval.requested"))
    reading = Hold(calls("store.read"), when="after", armed=False)
    async with running(ASKING, world, tap=Both(question, reading), poll_interval=GUARD) as it:
        run = await it.send()
        with anyio.fail_after(GUARD):
            await question.reached.wait()
            posed = await it.question(run.id)
            reading.armed = True
            await it.engine.runs.decide(run.id, posed.id, "once")
            await reading.reached.wait()
            question.go.set()
            while (await it.row(run.id)).epoch < 2:
                await anyio.lowlevel.checkpoint()
            reading.go.set()
            await it.until(run.id, "complete")
        assert it.agent.effects == ["t"]


async def test_a_crash_between_asking_and_waiting_leaves_the_question(world: AnyWorld) -> None:
    """X5: the process dies when the question is journalled and not yet waited for: it can still be answered."""
    async with running(ASKING, world, tap=(journalled := Hold(appends("approval.requested"), when="after"))) as it:
        run = await it.send()
        await journalled.held()
        it.store.away = True
        journalled.go.set()
        await it.crash()
        assert (await it.row(run.id)).status == "running"
    async with running(ASKING, world) as it:
        assert (await it.engine.runs.get(run.id)).status == "waiting"
        assert (await it.row(run.id)).lease is None
        await it.decide(run, "once")
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == ["t"]
        await check_one_end(it, run, "complete")


async def test_a_crash_before_the_question_is_journalled_leaves_one_question(world: AnyWorld) -> None:
    """X5: the process dies when the question is in the store and not in the journal: taken up, the run asks again, and
    the question that nobody was shown is closed."""
    async with running(ASKING, world, tap=(journalling := Hold(appends("approval.requested")))) as it:
        run = await it.send()
        await journalling.held()
        it.store.away = it.journal.away = True
        journalling.go.set()
        await it.crash()
        unseen = await it.question(run.id)
    async with running(ASKING, world, recovery=RecoveryPolicy(auto_continue=True)) as it:
        await it.until(run.id, "waiting")
        assert (await it.question(run.id)).id != unseen.id
        assert (await it.approval(unseen.id)).decision == "deny"
        with pytest.raises(AlreadyDecidedError):
            await it.engine.runs.decide(run.id, unseen.id, "once")
        await it.decide(run, "once")
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == ["t"]


@pytest.mark.parametrize("swept", [False, True], ids=["unswept", "swept"])
async def test_a_short_outage_of_the_journal_does_not_spend_the_answer(world: AnyWorld, swept: bool) -> None:
    """X5: the journal is away when the answered run is taken up, and soon back: the run completes."""
    async with running(ASKING, world, tap=(tap := Tap()), storage_retry_time=GUARD) as it:
        run = await asked(it)
        it.journal.away = True
        await it.decide(run, "once")
        await until(lambda: tap.seen.count("journal.fence") >= 2)
        if swept:
            await it.tick()
        it.journal.away = False
        await it.tick()
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == ["t"]


async def test_an_allowance_is_not_used_twice(world: AnyWorld) -> None:
    """X5: allowed once, started, then the process died: the tool is asked about again, not repeated."""
    slow: Script = [Say("may I? "), CallTool("t", asks=True, takes=3600.0)]
    async with running(slow, world) as it:
        run = await asked(it)
        await it.decide(run, "once")
        with anyio.fail_after(GUARD):
            while "tool.started" not in await it.types(run.id):
                await anyio.lowlevel.checkpoint()
        await it.crash()
    async with running(
        [Say("may I? "), CallTool("t", asks=True)], world, recovery=RecoveryPolicy(auto_continue=True)
    ) as it:
        await it.until(run.id, "waiting")
        assert it.agent.effects == []
        await it.decide(run, "once")
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == ["t"]


# ---- agents that cannot park ----


def clinging(script: Sequence[Action]) -> ScriptedAgent:
    return ScriptedAgent(script, can_park=False)


async def test_whoever_waits_leaves_its_place_at_once(world: AnyWorld) -> None:
    """A3: a run that keeps its task while it waits for a person takes no room, and nobody has to look to find out."""
    async with running(clinging([Meet("here"), *ASKING]), world, max_runs=1, poll_interval=3600.0) as it:
        first = await it.send_to_gate()
        second = await it.send()
        await it.engine.sessions.update(second.session_id, {"pinned": True})
        assert (await it.row(second.id)).status == "queued"
        it.release("here")
        await it.until(first.id, "waiting")
        await it.until(second.id, "waiting")


async def test_an_agent_that_cannot_park_keeps_its_task_while_it_waits(world: AnyWorld) -> None:
    """X5: the run is shown as waiting, keeps its lease and its upstream, and goes on in the same execution."""
    async with running(clinging(ASKING), world) as it:
        run = await asked(it)
        assert run.lease is not None
        assert (it.agent.upstreams, it.engine.supervisor.executing) == (1, 1)
        await it.tick()
        await it.engine.sessions.get(run.session_id)
        assert (await it.decide(run, "once")).status == "running"
        assert (await it.ended(run.id)).status == "complete"
        assert (len(it.agent.turns), it.agent.effects) == (1, ["t"])
        types = await it.types(run.id)
        assert "run.resumed" not in types
        assert types.count("approval.resolved") == 1


async def test_an_agent_that_cannot_park_is_interrupted_by_a_crash(world: AnyWorld) -> None:
    """X3: its question is closed as denied, its tool has not run, and the session is free."""
    async with running(clinging(ASKING), world) as it:
        run = await asked(it)
        question = await it.question(run.id)
        await it.crash()
    async with running(clinging(ASKING), world) as it:
        assert (await it.row(run.id)).status == "interrupted"
        assert (await it.approval(question.id)).decision == "deny"
        assert (await it.answer(run)).parts == NOT_RUN
        await check_idle(it, run)


async def test_a_run_continued_at_a_question_asks_again(world: AnyWorld) -> None:
    """X5: a run that was interrupted with its question open asks it anew when it is continued."""
    run = await crash_at(world, clinging([Say("may I? "), CallTool("t", asks=True), Meet("here")]), seen=3)
    async with running(clinging([Say("may I? "), CallTool("t", asks=True), Say("done")]), world) as it:
        more = (await it.engine.runs.continue_run(run.id)).run
        await it.until(more.id, "waiting")
        assert it.agent.effects == []
        await it.decide(more, "once")
        assert (await it.ended(more.id)).status == "complete"
        assert it.agent.effects == ["t"]


async def test_an_agent_that_only_resumes_is_asked_again_after_a_crash_at_its_question(world: AnyWorld) -> None:
    """X5: the process dies between asking and waiting: nothing waits for the answer any more, so the question is closed
    with that said, and the run goes on by automatic continue without the tool."""
    script: Script = [Say("may I? "), CallTool("t", asks=True), Say("done")]
    async with running(
        clinging(script), world, tap=(asking := Hold(appends("approval.requested"), when="after"))
    ) as it:
        run = await it.send()
        await asking.held()
        question = await it.question(run.id)
        it.store.away = True
        asking.go.set()
        await it.crash()
    async with running(clinging(script), world, recovery=RecoveryPolicy(auto_continue=True)) as it:
        assert (await it.ended(run.id)).status == "complete"
        closed = await it.approval(question.id)
        assert (closed.decision, closed.note) == ("deny", approvals.RESTARTED)
        assert it.agent.turns[-1].decisions == {"t": "deny"}
        tool = (await it.answer(run)).parts[1]
        assert isinstance(tool, ToolPart)
        assert (tool.state, tool.result, it.agent.effects) == ("denied", approvals.RESTARTED, [])


async def test_an_agent_that_only_resumes_continues_after_a_crash(world: AnyWorld) -> None:
    """X2: whether an agent can park decides about questions only; a running run of it is continued automatically."""
    run = await crash_at(world, clinging([Say("one "), Meet("here")]), seen=2)
    async with running(clinging([Say("one "), Say("two")]), world, recovery=RecoveryPolicy(auto_continue=True)) as it:
        assert (await it.ended(run.id)).status == "complete"
        assert await it.answer_text(run) == "one two"


async def test_an_agent_that_cannot_resume_is_interrupted(world: AnyWorld) -> None:
    """X2: automatic continue leaves out a run whose agent could not go on from its transcript."""
    agent = ScriptedAgent([Say("one "), Meet("here")], can_resume=False)
    run = await crash_at(world, agent, seen=2)
    async with running(agent, world, recovery=RecoveryPolicy(auto_continue=True)) as it:
        assert (await it.ended(run.id)).status == "interrupted"


async def test_an_agent_that_denies_by_itself_is_answered_before(world: AnyWorld) -> None:
    """X5: a question with a time limit of the agent's own is denied when the time has passed, with that said, and a
    later answer comes too late."""
    script: Script = [CallTool("t", "shell", {"cmd": "ls"}, asks=True, answer_within=0.0), Say("done")]
    async with running(clinging(script), world) as it:
        run = await it.send()
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == []
        assert (await it.answer(run)).parts[0] == ToolPart("t", "shell", {"cmd": "ls"}, "denied", result=NO_ANSWER)
        types = await it.types(run.id)
        asked = (await it.events(run.id))[types.index("approval.requested")].event()
        assert isinstance(asked, ApprovalRequested)
        with pytest.raises(AlreadyDecidedError):
            await it.engine.runs.decide(run.id, asked.approval_id, "once")


async def test_the_chosen_option_reaches_the_agent(world: AnyWorld) -> None:
    """X5: an agent with its own options is told which one was chosen, and the journal says so."""
    answers: list[ApprovalAnswer] = []
    options = [{"id": "o1", "name": "Just this once", "decision": "once"}]

    async def play(turn: Turn, out: AgentOutput) -> str | None:
        question = ApprovalRequested(out.new_approval_id(), "t", "shell", {}, options=options)
        answers.append(await out.ask(question))
        return "stop"

    async with running([], world, agents={"own": Freehand(play, can_park=False)}) as it:
        run = await it.send(agent="own")
        await it.until(run.id, "waiting")
        question = await it.question(run.id)
        await it.engine.runs.decide(run.id, question.id, "once", option="Just this once")
        await it.ended(run.id)
        assert answers == [("once", "Just this once")]
        resolved = [entry.event() for entry in await it.events(run.id) if entry.type == "approval.resolved"]
        assert resolved == [ApprovalResolved(question.id, "once", "Just this once")]


async def test_an_accepted_answer_is_the_journals_although_a_cancel_follows(world: AnyWorld) -> None:
    """C6: the cancel overtakes the agent that waits for the answer; the journal has the answer that was accepted, once,
    and no other one can be given."""
    async with running(clinging([CallTool("t", asks=True), Say("done")]), world) as it:
        run = await it.send()
        await it.until(run.id, "waiting")
        question = await it.question(run.id)
        decide = partial(approvals.decide, rid=run.id, aid=question.id, owner=run.owner, decision="once")
        await it.store.inner.transact(decide)  # without waking the agent up
        await it.engine.runs.cancel(run.id)
        assert (await it.ended(run.id)).status == "cancelled"
        assert await resolutions(it, run.id) == [ApprovalResolved(question.id, "once")]
        with pytest.raises(AlreadyDecidedError):
            await it.engine.runs.decide(run.id, question.id, "deny")


async def test_a_cancelled_question_is_denied_once(world: AnyWorld) -> None:
    """C6: the journal says deny for a call that it had already, and so does the refusal of a later answer."""

    async def play(turn: Turn, out: AgentOutput) -> str | None:
        await out.write(ToolStarted("t", "shell", {}))
        await out.ask(ApprovalRequested(out.new_approval_id(), "t", "shell", {}), announced=True)
        return "stop"

    async with running([], world, agents={"own": Freehand(play, can_park=False)}) as it:
        run = await it.send(agent="own")
        await it.until(run.id, "waiting")
        question = await it.question(run.id)
        await it.engine.runs.cancel(run.id)
        assert (await it.ended(run.id)).status == "cancelled"
        assert await resolutions(it, run.id) == [ApprovalResolved(question.id, "deny")]
        assert (await it.answer(run)).parts == (ToolPart("t", "shell", {}, "denied"),)
        with pytest.raises(AlreadyDecidedError):
            await it.engine.runs.decide(run.id, question.id, "once")


async def test_a_cancel_while_the_answer_is_stored_adds_no_second_one(world: AnyWorld) -> None:
    """C6: the run is cancelled between the answer and its journal entry; there is one entry."""
    storing = Hold(appends("approval.resolved"))
    async with running(clinging([CallTool("t", asks=True), Say("done")]), world, tap=storing) as it:
        run = await it.send()
        await it.until(run.id, "waiting")
        question = await it.question(run.id)
        await it.engine.runs.decide(run.id, question.id, "once")
        await storing.held()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(it.engine.runs.cancel, run.id)
            with anyio.fail_after(GUARD):
                while (await it.engine.runs.get(run.id)).intent is None:
                    await anyio.lowlevel.checkpoint()
            await anyio.wait_all_tasks_blocked()
            storing.go.set()
        assert (await it.ended(run.id)).status == "cancelled"
        assert await resolutions(it, run.id) == [ApprovalResolved(question.id, "once")]


async def resolutions(it: Running, rid: RunId) -> list[Event]:
    return [entry.event() for entry in await it.events(rid) if entry.type == "approval.resolved"]
