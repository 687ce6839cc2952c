"""§5 Waiting: a run that asks a person lets go of everything, and its answer is a row that the first one writes."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from holdfast.agents.scripted import Action, Call, Meet, Say, ScriptedAgent
from holdfast.core.errors import AlreadyDecided, NotAllowed, NotFound
from holdfast.core.events import Decision
from holdfast.core.ids import ApprovalId, OwnerId, SessionId
from holdfast.core.parts import Text, Tool
from holdfast.core.recovery import Policy
from holdfast.core.run import Run
from holdfast.engine.book import turns
from holdfast.ports import Turn
from tests.engine.checks import check_idle, check_one_end
from tests.harness import (
    GUARD,
    AnyWorld,
    Both,
    Hold,
    Running,
    Script,
    Tap,
    World,
    appends,
    collect,
    crash_at,
    running,
    texts,
)

pytestmark = pytest.mark.anyio

ASKING: Script = [Say("may I? "), Call("t", "shell", {"cmd": "ls"}, result="files", asks=True), Say("done")]


async def asked(it: Running, sid: SessionId | None = None, **options: Any) -> Run:
    """A run that waits for a person."""
    run = await it.send(sid or await it.new_session(), **options)
    return await it.until(run.id, "waiting")


async def decide(it: Running, run: Run, decision: Decision) -> Run:
    return await it.service.decide(run.id, (await it.question(run.id)).id, decision)


async def test_a_waiting_run_holds_no_lease_and_no_task(world: AnyWorld) -> None:
    """X5: a run whose agent can continue waits as a row: no lease, no task, no open upstream."""
    async with running(ASKING, world) as it:
        run = await asked(it)
        assert run.lease is None
        with anyio.fail_after(GUARD):
            while it.engine.supervisor.executing:
                await anyio.lowlevel.checkpoint()
        assert it.agent.upstreams == 0
        view = await it.service.session(run.session_id)
        assert view.active_run is not None
        assert (view.active_run.id, view.active_run.status) == (run.id, "waiting")
        answer = await it.answer(run.session_id)
        assert answer.status == "streaming"
        assert answer.parts == (Text("may I? "), Tool("t", "shell", {"cmd": "ls"}, "waiting"))
        question = await it.question(run.id)
        assert (question.call_id, question.name, question.args) == ("t", "shell", {"cmd": "ls"})
        assert it.agent.effects == []


async def test_recovery_leaves_a_waiting_run_alone(world: AnyWorld) -> None:
    """X2: sweeps, readers and restarts do not end a run that waits for a person."""
    async with running(ASKING, world) as it:
        run = await asked(it)
        await it.tick()
        await it.service.session(run.session_id)
        await it.crash()
    async with running(ASKING, world) as it:
        world.clock.advance(7 * 24 * 3600)
        await it.tick()
        assert (await it.service.run(run.id)).status == "waiting"
        await decide(it, run, "once")
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == ["t"]
        assert texts((await it.answer(run.session_id)).parts) == "may I? done"
        await check_one_end(it, run, "complete")


@pytest.mark.parametrize("decision", ["once", "session", "always"])
async def test_an_allowed_tool_runs_once_and_the_run_goes_on(world: AnyWorld, decision: Decision) -> None:
    """X5: the decision requeues the run; the executor journals it, runs the tool and finishes the answer."""
    async with running(ASKING, world) as it:
        run = await asked(it)
        assert (await decide(it, run, decision)).status == "queued"
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == ["t"]
        assert it.agent.turns[-1].decisions == {"t": decision}
        types = await it.types(run.id)
        assert types.index("approval.requested") < types.index("run.resumed") < types.index("approval.resolved")
        assert types.index("approval.resolved") < types.index("tool.started") < types.index("tool.finished")
        assert f'"decision":"{decision}"'.encode() in (await it.events(run.id))[types.index("approval.resolved")].frame
        assert texts((await it.answer(run.session_id)).parts) == "may I? done"
        await check_idle(it, run.session_id)


async def test_a_denied_tool_does_not_run(world: AnyWorld) -> None:
    """X5: denied, the tool is shown as denied, has no effect, and the answer goes on without it."""
    async with running(ASKING, world) as it:
        run = await asked(it)
        await decide(it, run, "deny")
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == []
        assert (await it.answer(run.session_id)).parts == (
            Text("may I? "),
            Tool("t", "shell", {"cmd": "ls"}, "denied"),
            Text("done"),
        )


@pytest.mark.parametrize("can_continue", [True, False])
async def test_a_question_that_nobody_answers_is_denied_with_that_said(world: AnyWorld, can_continue: bool) -> None:
    """X5: after its time the answer is deny; the tool says why, the run goes on, and a later answer comes too late."""
    async with running(ScriptedAgent(ASKING, can_continue=can_continue), world, answer_within=3600.0) as it:
        run = await asked(it)
        question = await it.question(run.id)
        world.clock.advance(3599)
        await it.tick()
        assert (await it.row(run.id)).status == "waiting"
        world.clock.advance(2)
        await it.tick()
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == []
        tool = (await it.answer(run.session_id)).parts[1]
        assert isinstance(tool, Tool)
        assert (tool.state, tool.result) == ("denied", "Nobody answered within 1 hour, so it was denied.")
        with pytest.raises(AlreadyDecided):
            await it.service.decide(run.id, question.id, "once")


async def test_a_question_may_be_left_open_for_ever(world: AnyWorld) -> None:
    """X5: with no limit it waits."""
    async with running(ASKING, world, answer_within=0.0) as it:
        run = await asked(it)
        world.clock.advance(1e9)
        await it.tick()
        assert (await it.row(run.id)).status == "waiting"


async def test_the_first_decision_wins(world: AnyWorld) -> None:
    """X5: of answers at the same time one counts; the others, and later ones, are told which."""
    async with running(ASKING, world) as it:
        run = await asked(it)
        question = await it.question(run.id)
        told: list[str] = []

        async def answer(decision: Decision) -> None:
            try:
                await it.service.decide(run.id, question.id, decision)
            except AlreadyDecided as refused:
                told.append(refused.decision)

        async with anyio.create_task_group() as tg:
            decisions: list[Decision] = ["deny", "once", "always", "session"]
            for decision in decisions:
                tg.start_soon(answer, decision)
        stored = (await it.approval(question.id)).decision
        assert told == [stored] * 3
        await it.ended(run.id)
        with pytest.raises(AlreadyDecided) as late:
            await it.service.decide(run.id, question.id, "once")
        assert late.value.decision == stored
        assert it.agent.effects == ([] if stored == "deny" else ["t"])
        assert (await it.types(run.id)).count("approval.resolved") == 1


async def test_a_question_is_answered_by_its_owner_about_its_run(world: AnyWorld) -> None:
    """X5: an unknown question, another run's, or somebody else's run cannot be answered."""
    async with running(ASKING, world) as it:
        one, two = await asked(it), await asked(it)
        question = await it.question(one.id)
        with pytest.raises(NotFound):
            await it.service.decide(two.id, question.id, "once")
        with pytest.raises(NotFound):
            await it.service.decide(one.id, ApprovalId("apr_none"), "once")
        with pytest.raises(NotFound):
            await it.service.decide(one.id, question.id, "once", OwnerId("somebody"))
        assert (await it.approval(question.id)).decision is None


async def test_cancel_answers_the_question_with_deny(world: AnyWorld) -> None:
    """C6: a waiting run is cancelled at once, its question is closed as denied, and its tool has not run."""
    async with running(ASKING, world) as it:
        run = await asked(it)
        question = await it.question(run.id)
        assert (await it.service.cancel(run.id)).status == "cancelled"
        assert (await it.approval(question.id)).decision == "deny"
        with pytest.raises(AlreadyDecided):
            await it.service.decide(run.id, question.id, "once")
        assert (await it.answer(run.session_id)).parts == (
            Text("may I? "),
            Tool("t", "shell", {"cmd": "ls"}, "not_run"),
        )
        await check_one_end(it, run, "cancelled")
        await check_idle(it, run.session_id)


async def test_a_question_of_a_run_that_was_asked_to_end_is_no_longer_answered(world: AnyWorld) -> None:
    """C6: a Stop that is written down and not yet carried out counts: a later answer does not set the tool going."""
    async with running(ASKING, world) as it:
        run = await asked(it)
        question = await it.question(run.id)
        await it.store.inner.transact(lambda tx: turns.request_cancel(tx, run.id, run.owner, "requested"))
        with pytest.raises(NotAllowed):
            await it.service.decide(run.id, question.id, "once")
        assert (await it.service.run(run.id)).status == "cancelled"
        assert (await it.approval(question.id)).decision == "deny"
        assert it.agent.effects == []


async def test_interrupt_answers_the_question_with_deny(world: AnyWorld) -> None:
    """A3: a new turn may interrupt a run that waits for a person, and runs after it."""

    def script(turn: Turn) -> Sequence[Action]:
        return ASKING if len(it.agent.turns) == 1 else [Say("instead")]

    async with running(ScriptedAgent(script), world) as it:
        run = await asked(it)
        question = await it.question(run.id)
        second = await it.send(run.session_id, "never mind", on_busy="interrupt")
        assert (await it.ended(second.id)).status == "complete"
        assert (await it.row(run.id)).status == "cancelled"
        assert (await it.approval(question.id)).decision == "deny"
        assert [texts(m.parts) for m in await it.shown(run.session_id)] == ["hello", "may I? ", "never mind", "instead"]


@pytest.mark.parametrize("edit", ["undo", "clear", "delete", "retry"])
async def test_an_edit_that_hides_a_waiting_run_ends_it(world: AnyWorld, edit: str) -> None:
    """O1: undo, clear, delete and retry end a run that waits for a person like one that runs."""

    def script(turn: Turn) -> Sequence[Action]:
        return ASKING if len(it.agent.turns) == 1 else [Say("instead")]

    async with running(ScriptedAgent(script), world) as it:
        run = await asked(it)
        sid = run.session_id
        if edit == "retry":
            more = await it.service.retry(sid, run.message_id)
            assert (await it.ended(more.run.id)).status == "complete"
        else:
            await {"undo": it.service.undo, "clear": it.service.clear, "delete": it.service.delete}[edit](sid)
        await it.until(run.id, "cancelled")
        assert it.agent.effects == []
        if edit != "delete":
            await check_idle(it, sid)


async def test_a_stream_stays_open_over_the_question(world: AnyWorld) -> None:
    """L5: a client that watches a waiting run is shown the question, then the rest after the answer."""
    async with running(ASKING, world) as it:
        run = await it.send(await it.new_session())
        got: list[str] = []

        async def client() -> None:
            got.extend(entry.type for entry in await collect(it.service, run.id))

        async with anyio.create_task_group() as tg:
            tg.start_soon(client)
            await it.until(run.id, "waiting")
            await decide(it, run, "once")
        assert got == await it.types(run.id)
        assert got[-1] == "run.complete"


async def test_an_answer_may_come_before_the_run_has_parked(world: AnyWorld) -> None:
    """X5: the question can be answered as soon as it is stored; the run then goes on without having waited."""
    hold = Hold(appends("approval.requested"))
    async with running(ASKING, world, tap=hold) as it:
        run = await it.send(await it.new_session())
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
        await it.service.decide(run.id, (await it.question(run.id)).id, "once")
        hold.go.set()
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == ["t"]
        assert (await it.types(run.id)).count("approval.resolved") == 1


async def test_news_of_an_earlier_execution_does_not_stop_the_next(world: AnyWorld) -> None:
    """X5: the run is answered, parked and taken up again while its old row is still being read: it goes on."""
    question = Hold(appends("approval.requested"))
    reading = Hold(lambda call, _: call == "store.read", when="after", armed=False)
    async with running(ASKING, world, tap=Both(question, reading), poll=GUARD) as it:
        run = await it.send(await it.new_session())
        with anyio.fail_after(GUARD):
            await question.reached.wait()
            posed = await it.question(run.id)
            reading.armed = True
            await it.service.decide(run.id, posed.id, "once")
            await reading.reached.wait()
            question.go.set()
            while (await it.row(run.id)).epoch < 2:
                await anyio.lowlevel.checkpoint()
            reading.go.set()
            await it.until(run.id, "complete")
        assert it.agent.effects == ["t"]


async def test_a_crash_between_asking_and_waiting_leaves_the_question(world: AnyWorld) -> None:
    """X5: the process dies when the question is journalled and not yet waited for: it can still be answered."""

    class Die(Tap):
        """Takes the store away at the moment at which the question is durable."""

        async def after(self, call: str, args: Sequence[Any]) -> None:
            if appends("approval.requested")(call, args):
                it.store.away = True

    async with running(ASKING, world, tap=Die()) as it:
        run = await it.send(await it.new_session())
        with anyio.fail_after(GUARD):
            while not it.store.away:
                await anyio.lowlevel.checkpoint()
        await it.crash()
        assert (await it.row(run.id)).status == "running"
    async with running(ASKING, world) as it:
        assert (await it.service.run(run.id)).status == "waiting"
        assert (await it.row(run.id)).lease is None
        await decide(it, run, "once")
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == ["t"]
        await check_one_end(it, run, "complete")


async def test_a_crash_before_the_question_is_journalled_leaves_one_question(world: AnyWorld) -> None:
    """X5: the process dies when the question is in the store and not in the journal: taken up, the run asks again, and
    the question that nobody was shown is closed."""

    class Die(Tap):
        async def before(self, call: str, args: Sequence[Any]) -> None:
            if appends("approval.requested")(call, args):
                it.store.away = it.journal.away = True

    async with running(ASKING, world, tap=Die()) as it:
        run = await it.send(await it.new_session())
        with anyio.fail_after(GUARD):
            while not it.store.away:
                await anyio.lowlevel.checkpoint()
        await it.crash()
        unseen = await it.question(run.id)
    async with running(ASKING, world, recovery=Policy(auto_continue=True)) as it:
        await it.until(run.id, "waiting")
        question = await it.question(run.id)
        assert question.id != unseen.id
        assert (await it.approval(unseen.id)).decision == "deny"
        with pytest.raises(AlreadyDecided):
            await it.service.decide(run.id, unseen.id, "once")
        await it.service.decide(run.id, question.id, "once")
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == ["t"]


async def test_an_answer_survives_a_crash_before_it_is_taken_up(world: AnyWorld) -> None:
    """X5: the decision is in the store: the next process goes on with it."""
    async with running(ASKING, world) as it:
        run = await asked(it)
        await it.crash()
    async with running(ASKING, world, max_runs=0) as it:
        await decide(it, run, "once")
        await it.crash()
    async with running(ASKING, world) as it:
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == ["t"]


@pytest.mark.parametrize("swept", [False, True], ids=["unswept", "swept"])
async def test_a_short_outage_of_the_journal_does_not_spend_the_answer(world: AnyWorld, swept: bool) -> None:
    """X5: the journal is away when the answered run is taken up, and soon back: the run completes."""
    tap = Tap()
    async with running(ASKING, world, tap=tap, storage_patience=GUARD) as it:
        run = await asked(it)
        it.journal.away = True
        await decide(it, run, "once")
        with anyio.fail_after(GUARD):
            while tap.seen.count("journal.fence") < 2:
                await anyio.lowlevel.checkpoint()
        if swept:
            await it.tick()
        it.journal.away = False
        await it.tick()
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == ["t"]


async def test_an_allowance_is_not_used_twice(world: AnyWorld) -> None:
    """X5: allowed once, started, then the process died: the tool is asked about again, not repeated."""
    slow: Script = [Say("may I? "), Call("t", asks=True, takes=3600.0)]
    async with running(slow, world) as it:
        run = await asked(it)
        await decide(it, run, "once")
        with anyio.fail_after(GUARD):
            while "tool.started" not in await it.types(run.id):
                await anyio.lowlevel.checkpoint()
        await it.crash()
    async with running([Say("may I? "), Call("t", asks=True)], world, recovery=Policy(auto_continue=True)) as it:
        await it.until(run.id, "waiting")
        assert it.agent.effects == []
        await decide(it, run, "once")
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == ["t"]


# ---- agents that cannot continue ----


def clinging(script: Sequence[Action]) -> ScriptedAgent:
    return ScriptedAgent(script, can_continue=False)


async def test_whoever_waits_leaves_its_place_at_once(world: AnyWorld) -> None:
    """A3: a run that keeps its task while it waits for a person takes no room, and nobody has to look to find out."""
    async with running(clinging([Meet("here"), *ASKING]), world, max_runs=1, poll=3600.0) as it:
        first = await it.send(await it.new_session())
        await it.reached("here")
        second = await it.send(await it.new_session())
        await it.service.amend(second.session_id, {"pinned": True})
        assert (await it.row(second.id)).status == "queued"
        it.release("here")
        await it.until(first.id, "waiting")
        await it.until(second.id, "waiting")


async def test_an_agent_that_cannot_continue_keeps_its_task_while_it_waits(world: AnyWorld) -> None:
    """X5: the run is shown as waiting, keeps its lease and its upstream, and goes on in the same execution."""
    async with running(clinging(ASKING), world) as it:
        run = await asked(it)
        assert run.lease is not None
        assert (it.agent.upstreams, it.engine.supervisor.executing) == (1, 1)
        await it.tick()
        await it.service.session(run.session_id)
        assert (await decide(it, run, "once")).status == "running"
        assert (await it.ended(run.id)).status == "complete"
        assert (len(it.agent.turns), it.agent.effects) == (1, ["t"])
        types = await it.types(run.id)
        assert "run.resumed" not in types
        assert types.count("approval.resolved") == 1


async def test_an_agent_that_cannot_continue_is_interrupted_by_a_crash(world: AnyWorld) -> None:
    """X3: its question is closed as denied, its tool has not run, and the session is free."""
    async with running(clinging(ASKING), world) as it:
        run = await asked(it)
        question = await it.question(run.id)
        await it.crash()
    async with running(clinging(ASKING), world) as it:
        assert (await it.row(run.id)).status == "interrupted"
        assert (await it.approval(question.id)).decision == "deny"
        assert (await it.answer(run.session_id)).parts == (
            Text("may I? "),
            Tool("t", "shell", {"cmd": "ls"}, "not_run"),
        )
        await check_idle(it, run.session_id)


async def test_a_waiting_task_is_cancelled_like_any_other(world: AnyWorld) -> None:
    """C7: a run that keeps its task while it waits is stopped in the middle of that."""
    async with running(clinging(ASKING), world) as it:
        run = await asked(it)
        question = await it.question(run.id)
        assert (await it.service.cancel(run.id)).status == "cancelled"
        assert it.agent.upstreams == 0
        assert (await it.approval(question.id)).decision == "deny"
        await check_one_end(it, run, "cancelled")


async def test_a_deny_reaches_a_waiting_task(world: AnyWorld) -> None:
    """X5: the waiting task is told no, and goes on without the tool."""
    async with running(clinging(ASKING), world) as it:
        run = await asked(it)
        await decide(it, run, "deny")
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == []


async def test_several_questions_one_after_another(memory: World) -> None:
    """X5: a run may ask more than once; each question is answered by itself."""
    script: Script = [Call("a", asks=True), Call("b", asks=True), Call("c", asks=True), Say("done")]
    async with running(script, memory) as it:
        run = await asked(it)
        answers: list[Decision] = ["once", "deny", "once"]
        for decision in answers:
            await it.until(run.id, "waiting")
            await decide(it, run, decision)
        assert (await it.ended(run.id)).status == "complete"
        assert it.agent.effects == ["a", "c"]


async def test_a_run_continued_at_a_question_asks_again(world: AnyWorld) -> None:
    """X5: a run that was interrupted with its question open asks it anew when it is continued."""
    run = await crash_at(world, clinging([Say("may I? "), Call("t", asks=True), Meet("here")]), seen=3)
    async with running(clinging([Say("may I? "), Call("t", asks=True), Say("done")]), world) as it:
        more = (await it.service.continue_run(run.id)).run
        await it.until(more.id, "waiting")
        assert it.agent.effects == []
        await decide(it, more, "once")
        assert (await it.ended(more.id)).status == "complete"
        assert it.agent.effects == ["t"]
