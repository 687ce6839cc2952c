"""A run that is taken up: after a crash, after a decision, by continue. Effects happen once, words are not repeated."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from holdfast.agents.chat.system_prompt import CONTINUE
from holdfast.core.events import Decision
from holdfast.core.parts import Part, ReasoningPart, TextPart, ToolPart
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.core.run import Run
from holdfast.core.transcript import EMPTY, fold
from holdfast.ports.model import Ability, AssistantMessage, ModelRequest, ToolMessage, UserMessage
from holdfast.ports.tool import ToolTraits
from tests.agents.models import Asks, Piece, ScriptedModel, Thinks, Trace, Wait, Writes, answers, chat, results
from tests.engine.checks import check_one_end
from tests.harness import GUARD, AnyWorld, Running, World, running
from tests.storage_interceptors import Hold, appends

pytestmark = pytest.mark.anyio

HOW = pytest.mark.parametrize("how", ["continue", "automatic"])
DO: list[Piece] = [Asks("c1", "one", {"x": 1}), Asks("c2", "two", {"x": 2})]


async def crashed(
    world: AnyWorld, model: ScriptedModel, *tools: Trace, shown: Sequence[str], tap: Hold | None = None
) -> Run:
    """A run whose process went away when clients had been shown so much, as `shape` tells it."""
    async with running(agents={"chat": chat(model, *tools)}, world=world, tap=tap) as it:
        run = await it.send(await it.new_session())
        try:
            with anyio.fail_after(GUARD):
                await until_shown(it, run, shown)
                if tap is not None:
                    await tap.reached.wait()
            it.store.away = it.journal.away = True
        finally:
            if tap is not None:
                tap.go.set()
        await it.crash()
    return run


async def until_shown(it: Running, run: Run, shown: Sequence[str]) -> None:
    seen = EMPTY
    async with it.engine.subscriptions.watch(run.id) as subscription:
        while shape(seen.parts) != shown:
            entries = await subscription.next()
            assert entries is not None, f"the run ended; clients had been shown {shape(seen.parts)}"
            seen = fold(entries, seen)


def shape(parts: Sequence[Part]) -> list[str]:
    """Words as they are, tools by name and state."""
    return [
        f"{part.name}:{part.state}" if isinstance(part, ToolPart) else part.text
        for part in parts
        if isinstance(part, ToolPart | TextPart | ReasoningPart)
    ]


def settings(how: str) -> dict[str, Any]:
    return {"recovery": RecoveryPolicy(auto_continue=how == "automatic")}


@asynccontextmanager
async def completed(world: AnyWorld, run: Run, model: ScriptedModel, *tools: Trace) -> AsyncIterator[Running]:
    """A new process, in which the run was continued and has completed."""
    async with running(agents={"chat": chat(model, *tools)}, world=world) as it:
        assert (await it.ended((await go_on(it, run, "continue")).id)).status == "complete"
        yield it


async def go_on(it: Running, run: Run, how: str) -> Run:
    """By a person's continue, or by itself."""
    return run if how == "automatic" else (await it.engine.runs.continue_run(run.id)).run


# ---- tools ----


@pytest.mark.parametrize("written", [{}, {"silent": True}, {"only_name": True}], ids=["whole", "silent", "name"])
@HOW
async def test_a_crash_between_two_tools_runs_each_once(world: AnyWorld, how: str, written: dict[str, Any]) -> None:
    """X5: the finished tool is not run again, the one that was only written is run, and then the model goes on."""
    effects: list[str] = []
    tools = Trace("one", effects), Trace("two", effects)
    args = {} if "only_name" in written else {"x": 1}
    calls = [replace(Asks("c1", "one", args), **written), replace(Asks("c2", "two", args), **written)]
    script = answers(["I do. ", *calls], ["Both done."])
    run = await between(world, ScriptedModel(script), *tools)
    assert [effect.split()[0] for effect in effects] == ["one"]
    model = ScriptedModel(script)
    async with running(agents={"chat": chat(model, *tools)}, world=world, **settings(how)) as it:
        ended = await it.ended((await go_on(it, run, how)).id)
        assert ended.status == "complete"
        assert [effect.split()[0] for effect in effects] == ["one", "two"]
        parts = (await it.answer(run.session_id)).parts
        assert shape(parts) == ["I do. ", "one:done", "two:done", "Both done."]
        assert len(model.requests) == 1
        await check_one_end(it, ended, "complete")


async def between(world: AnyWorld, model: ScriptedModel, *tools: Trace) -> Run:
    """Gone after the first tool's result, with the second one's start on its way."""
    second = Hold(lambda call, args: appends("tool.started")(call, args) and b'"two"' in args[0][0].entries[-1].frame)
    return await crashed(world, model, *tools, shown=["I do. ", "one:done", "two:pending"], tap=second)


@pytest.mark.parametrize(("how", "decision"), [("continue", "once"), ("automatic", "once"), ("continue", "deny")])
async def test_an_effect_without_a_result_asks_before_it_is_repeated(
    world: AnyWorld, how: str, decision: Decision
) -> None:
    """X5: the tool had its effect, the process died before its result: a person is asked. On *once* it repeats; on
    *deny* it is not run, the model is told, and the rest goes on."""
    effects: list[str] = []
    script = answers(["I do. ", *DO], ["Both done."])
    slow, one, two = Trace("one", effects, after="here"), Trace("one", effects), Trace("two", effects)
    run = await crashed(world, ScriptedModel(script), slow, two, shown=["I do. ", "one:running", "two:pending"])
    assert effects == ["one 1"]
    model = ScriptedModel(script)
    async with running(agents={"chat": chat(model, one, two)}, world=world, **settings(how)) as it:
        more = await go_on(it, run, how)
        await it.until(more.id, "waiting")
        assert effects == ["one 1"]
        question = await it.question(more.id)
        assert (question.call_id, question.args) == ("c1", {"x": 1})
        assert "may already have taken effect" in question.reason
        await it.engine.runs.decide(more.id, question.id, decision)
        assert (await it.ended(more.id)).status == "complete"
        denied = decision == "deny"
        assert effects == (["one 1", "two 2"] if denied else ["one 1", "one 1", "two 2"])
        said = results(model.requests[-1])
        assert [(each.call_id, each.is_error) for each in said] == [("c1", denied), ("c2", False)]
        assert shape((await it.answer(run.session_id)).parts) == [
            "I do. ",
            "one:denied" if denied else "one:done",
            "two:done",
            "Both done.",
        ]


async def test_a_repeatable_tool_is_repeated_without_asking(world: AnyWorld) -> None:
    """X5: a tool that says it is safe to repeat is run again after a crash in its middle."""
    effects: list[str] = []
    script = answers([Asks("c1", "one")], ["Done."])
    safe = ToolTraits(repeatable=True, rule="allow")
    run = await crashed(world, ScriptedModel(script), Trace("one", effects, safe, before="x"), shown=["one:running"])
    async with completed(world, run, ScriptedModel(script), Trace("one", effects, safe)):
        assert effects == ["one"]


async def test_a_model_without_tools_takes_up_what_one_with_tools_left(world: AnyWorld) -> None:
    """X5: calls that were written are run and answered, though the model that goes on is offered no tools."""
    effects: list[str] = []
    first = ScriptedModel(answers(["I do. ", Asks("c1", "one"), Wait("here")]))
    run = await crashed(world, first, Trace("one", effects), shown=["I do. ", "one:pending"])
    model = ScriptedModel(answers([], ["Done."]), frozenset())
    async with completed(world, run, model, Trace("one", effects)):
        assert effects == ["one"]
        assert model.requests[0].tools == ()


async def test_a_tool_that_is_gone_leaves_its_outcome_unknown_to_the_model(world: AnyWorld) -> None:
    """X5: the tool had been started and no longer exists: the model is told both."""
    script = answers([Asks("c1", "one")], ["Well."])
    run = await crashed(world, ScriptedModel(script), Trace("one", [], after="here"), shown=["one:running"])
    model = ScriptedModel(script)
    async with completed(world, run, model):
        said = model.requests[0].messages[-1]
        assert isinstance(said, ToolMessage)
        assert "no tool named 'one'" in said.text
        assert "it is unknown whether it took effect" in said.text


async def test_an_allowance_is_not_used_twice(world: AnyWorld) -> None:
    """X5: allowed once, started, and lost in a crash: the person is asked again, also if the tool asks anyway."""
    effects: list[str] = []
    script = answers([Asks("c1", "one")], ["Done."])
    asks = ToolTraits(rule="ask")
    slow = Trace("one", effects, asks, after="here")
    async with running(agents={"chat": chat(ScriptedModel(script), slow)}, world=world) as it:
        run = await it.send(await it.new_session())
        await it.until(run.id, "waiting")
        await it.engine.runs.decide(run.id, (await it.question(run.id)).id, "once")
        with anyio.fail_after(GUARD):
            await slow.gates.reached("here").wait()
        await it.crash()
    quick = Trace("one", effects, asks)
    async with running(agents={"chat": chat(ScriptedModel(script), quick)}, world=world, **settings("automatic")) as it:
        await it.until(run.id, "waiting")
        assert effects == ["one"]
        await it.engine.runs.decide(run.id, (await it.question(run.id)).id, "once")
        assert (await it.ended(run.id)).status == "complete"
        assert effects == ["one", "one"]


async def test_a_call_that_was_half_written_is_asked_for_again(world: AnyWorld) -> None:
    """X5: what the model had not finished writing is never run; the model is asked again and writes it whole."""
    effects: list[str] = []
    first = ScriptedModel(
        answers(["I do. ", Asks("c1", "one", {"x": 1}), Writes("c2", "two", '{"x": 2'), Wait("here")])
    )
    tools = Trace("one", effects), Trace("two", effects)
    run = await crashed(world, first, *tools, shown=["I do. ", "one:pending", "two:pending"])
    assert effects == []
    model = ScriptedModel(answers([], [Asks("c2", "two", {"x": 22})], ["Done."]))
    async with completed(world, run, model, *tools):
        assert effects == ["one 1", "two 22"]
        assert [each.call_id for each in results(model.requests[0])] == ["c1"]


async def test_words_before_a_half_written_call_are_not_said_twice(world: AnyWorld) -> None:
    """X5: the call is dropped and the words before it stay: the model, which begins its step anew, repeats none."""
    first = ScriptedModel(answers(["I do it now. ", Writes("c1", "one", '{"x": '), Wait("here")]))
    run = await crashed(world, first, Trace("one", []), shown=["I do it now. ", "one:pending"])
    effects: list[str] = []
    model = ScriptedModel(answers(["I do it ", "now. ", Asks("c1", "one", {"x": 1})], ["Done."]))
    async with completed(world, run, model, Trace("one", effects)) as it:
        assert shape((await it.answer(run.session_id)).parts) == ["I do it now. ", "one:not_run", "one:done", "Done."]
        assert effects == ["one 1"]


async def test_what_came_after_an_open_call_belongs_to_its_step(world: AnyWorld) -> None:
    """X5: words after a call that was never run do not make the model think that they are the last thing said."""
    effects: list[str] = []
    first = ScriptedModel(answers([Asks("c1", "one"), "So I did.", Wait("here")]))
    run = await crashed(world, first, Trace("one", effects), shown=["one:pending", "So I did."])
    model = ScriptedModel(answers([], ["End."]))
    async with completed(world, run, model, Trace("one", effects)):
        assert isinstance(model.requests[0].messages[-1], ToolMessage)
        assert effects == ["one"]


# ---- words ----

HALF = "The quick brown fox jumps over"


def goes_on(*pieces: Piece) -> Callable[[ModelRequest], Sequence[Piece]]:
    def script(request: ModelRequest) -> Sequence[Piece]:
        return pieces

    return script


@pytest.mark.parametrize(
    ("abilities", "says"),
    [
        (("prefill",), " the lazy dog."),
        ((), " the lazy dog."),
        ((), "jumps over the lazy dog."),
        ((), "The quick brown fox jumps over the lazy dog."),
    ],
    ids=["prefill", "told", "repeats-the-tail", "begins-again"],
)
@HOW
async def test_words_that_were_cut_off_are_gone_on_with(
    world: AnyWorld, abilities: tuple[Ability, ...], says: str, how: str
) -> None:
    """X5: the answer goes on where the journal ends, as one text without repeated words, whatever the model can do."""
    run = await crashed(world, ScriptedModel(goes_on(Thinks("hm"), HALF, Wait("here"))), shown=["hm", HALF])
    pieces = [says[at : at + 3] for at in range(0, len(says), 3)]
    model = ScriptedModel(goes_on(*pieces), frozenset(abilities))
    async with running(agents={"chat": chat(model)}, world=world, **settings(how)) as it:
        ended = await it.ended((await go_on(it, run, how)).id)
        assert ended.status == "complete"
        assert (await it.answer(run.session_id)).parts == (ReasoningPart("hm"), TextPart(HALF + " the lazy dog."))
        last = model.requests[0].messages[-1]
        partial = AssistantMessage((ReasoningPart("hm"), TextPart(HALF)))
        assert last == (partial if abilities else UserMessage((CONTINUE,)))
        assert partial in model.requests[0].messages


async def test_thoughts_that_were_cut_off_are_thought_anew(world: AnyWorld) -> None:
    """X5: half a thought stays in the message, is not sent back, and is not glued to what is thought next."""
    run = await crashed(world, ScriptedModel(goes_on(Thinks("perha"), Wait("here"))), shown=["perha"])
    model = ScriptedModel(answers([Thinks("now I see", {"sig": 1}), Asks("c1", "one")], ["Done."]))
    async with completed(world, run, model, Trace("one", [])) as it:
        assert shape((await it.answer(run.session_id)).parts) == ["perha", "now I see", "one:done", "Done."]
        assert model.requests[0].messages == (UserMessage(("hello",)),)
        said = model.requests[1].messages[1]
        assert isinstance(said, AssistantMessage)
        assert said.parts[0] == ReasoningPart("now I see", {"sig": 1})


async def test_a_text_that_was_already_whole_ends_the_run(world: AnyWorld) -> None:
    """X5: the process died after the last word and before the end: the model has nothing to add, and that is fine."""
    run = await crashed(world, ScriptedModel(goes_on("All said.", Wait("here"))), shown=["All said."])
    async with completed(world, run, ScriptedModel(goes_on())) as it:
        assert shape((await it.answer(run.session_id)).parts) == ["All said."]


# ---- questions ----


async def test_several_questions_of_one_step_are_asked_one_after_another(world: AnyWorld) -> None:
    """X5: each call has its own answer, and a denied one does not take the others along."""
    effects: list[str] = []
    model = ScriptedModel(answers([*DO, Asks("c3", "one", {"x": 3})], ["Done."]))
    tools = Trace("one", effects, ToolTraits()), Trace("two", effects, ToolTraits())
    async with running(agents={"chat": chat(model, *tools)}, world=world) as it:
        run = await it.send(await it.new_session())
        asked = []
        for decision in ("once", "deny", "once"):
            await it.until(run.id, "waiting")
            question = await it.question(run.id)
            asked.append(question.call_id)
            await it.engine.runs.decide(run.id, question.id, decision)
        assert (await it.ended(run.id)).status == "complete"
        assert asked == ["c1", "c2", "c3"]
        assert effects == ["one 1", "one 3"]


async def test_a_call_that_an_ended_run_left_waiting_is_asked_about_by_the_next(memory: World) -> None:
    """X5: cancelled while it waited, then continued: the question is asked anew, and nothing ran meanwhile."""
    effects: list[str] = []
    model = ScriptedModel(answers([Asks("c1", "one")], ["Done."]))
    async with running(agents={"chat": chat(model, Trace("one", effects, ToolTraits()))}, world=memory) as it:
        run = await it.send(await it.new_session())
        await it.until(run.id, "waiting")
        await it.engine.runs.cancel(run.id)
        more = (await it.engine.runs.continue_run(run.id)).run
        await it.until(more.id, "waiting")
        await it.engine.runs.decide(more.id, (await it.question(more.id)).id, "once")
        assert (await it.ended(more.id)).status == "complete"
        assert effects == ["one"]
