"""The agent loop through the real engine: steps, tools, refusals, limits."""

import asyncio

import anyio
import pytest

from holdfast.agents.chat.agent import ChatLimits
from holdfast.agents.chat.model_messages import DENIED
from holdfast.core.events import Usage
from holdfast.core.parts import ReasoningPart, TextPart, ToolPart
from holdfast.ports.model import AssistantMessage, ToolCall, ToolMessage, UserMessage
from holdfast.ports.tool import ToolError, ToolTraits
from holdfast.tools.approval_policy import ApprovalPolicy
from tests.agents.models import (
    Asks,
    Breaks,
    Piece,
    ScriptedModel,
    Thinks,
    Trace,
    Wait,
    answers,
    chat,
    chatting,
    results,
    tool_parts,
)
from tests.engine.checks import check_one_end
from tests.harness import GUARD, AnyWorld, World, running, texts
from tests.storage_interceptors import Hold, appends

pytestmark = pytest.mark.anyio

READ = ToolTraits(repeatable=True, read_only=True, rule="allow")


async def test_a_turn_is_steps_of_words_and_tools(world: AnyWorld) -> None:
    """X5: every step is journalled: words, the call as it is written, its start, its output, its result, usage."""
    effects: list[str] = []
    model = ScriptedModel(
        answers(
            [Thinks("hm"), "I look. ", Asks("c1", "look", {"x": 1}), Usage(10, 5, 0.5)], ["Found it.", Usage(20, 3)]
        )
    )
    async with chatting(world, model, Trace("look", effects, result={"n": 1})) as (it, sid):
        run = await it.turn(sid)
        answer = await it.answer(sid)
        assert (run.status, run.finish_reason) == ("complete", "stop")
        assert [type(part) for part in answer.parts] == [ReasoningPart, TextPart, ToolPart, TextPart]
        tool = answer.parts[2]
        assert isinstance(tool, ToolPart)
        assert (tool.name, tool.args, tool.state) == ("look", {"x": 1}, "done")
        assert (tool.result, tool.output) == ({"n": 1}, "working ")
        assert answer.usage == Usage(30, 8, 0.5)
        assert effects == ["look 1"]
        types = await it.types(run.id)
        assert types.count("step.started") == 2
        assert types.index("tool.started") < types.index("tool.finished") < len(types) - 1
        await check_one_end(it, run, "complete")


async def test_the_model_is_shown_what_it_asked_and_what_came_of_it(memory: World) -> None:
    """X5: a step sees the words, thoughts, calls and results of its turn in the port's order, and a later turn sees
    earlier ones without their reasoning."""
    model = ScriptedModel(answers([Thinks("hm"), "A ", Asks("c1", "look")], ["B"]))
    async with chatting(memory, model, Trace("look", [], result="seen")) as (it, sid):
        await it.turn(sid, "one")
        await it.turn(sid, "two")
        first, second, third = (request.messages for request in model.requests[:3])
        asked, result = ToolCall("c1", "look", {}), ToolMessage("c1", "look", "seen")
        assert first == (UserMessage(("one",)),)
        assert [spec.name for spec in model.requests[0].tools] == ["look"]
        assert second[1:] == (AssistantMessage((ReasoningPart("hm"), TextPart("A "), asked)), result)
        said = AssistantMessage((TextPart("A "), asked)), result, AssistantMessage((TextPart("B"),))
        assert third == (UserMessage(("one",)), *said, UserMessage(("two",)))


async def test_what_cannot_be_run_is_told_to_the_model(world: AnyWorld) -> None:
    """E1: an unknown tool, arguments that are no JSON, and arguments that do not fit are results, not failed runs."""
    effects: list[str] = []
    model = ScriptedModel(
        answers(
            [
                Asks("c1", "nothing"),
                Asks("c2", "look", '{"x": ', invalid="Expecting value."),
                Asks("c3", "look", {"x": "one"}),
                Asks("c4", "look", {"x": 4}, silent=True),
            ],
            ["Well."],
        )
    )
    async with chatting(world, model, Trace("look", effects)) as (it, sid):
        run = await it.turn(sid)
        tools = tool_parts(await it.answer(sid))
        assert run.status == "complete"
        failed = {tool.call_id: tool.is_error for tool in tools if tool.state == "done"}
        assert failed == {"c1": True, "c2": True, "c3": True, "c4": False}
        assert "no tool named 'nothing'" in tools[0].result
        assert "Expecting value" in tools[1].result
        assert "x: 'one' is not of type 'integer'" in tools[2].result
        assert effects == ["look 4"]
        assert [each.call_id for each in results(model.requests[1])] == ["c1", "c2", "c3", "c4"]
        assert (await it.types(run.id)).count("tool.started") == 1


@pytest.mark.parametrize("error", [ToolError("There is no such file."), RuntimeError("a bug")])
async def test_a_tool_that_fails_is_told_to_the_model(memory: World, error: Exception) -> None:
    """E1: whatever a tool raises is an error result, and the run goes on."""
    model = ScriptedModel(answers([Asks("c1", "look")], ["I see."]))
    async with chatting(memory, model, Trace("look", [], raises=error)) as (it, sid):
        assert (await it.turn(sid)).status == "complete"
        tool = (await it.answer(sid)).parts[0]
        assert isinstance(tool, ToolPart)
        assert tool.is_error
        assert str(error) in tool.result


@pytest.mark.parametrize("traits", [READ, ToolTraits(rule="allow")], ids=["side by side", "in turn"])
async def test_a_tool_whose_wait_is_cancelled_from_aside_has_failed(traits: ToolTraits) -> None:
    """E1: what a tool waits for is cancelled by somebody else: on asyncio that looks like a cancel of the run, and is
    none. Every call has its answer, and the run goes on."""
    model = ScriptedModel(answers([Asks("c1", "bad"), Asks("c2", "good")], ["I see."]))
    bad = Trace("bad", [], traits, raises=asyncio.CancelledError())
    async with chatting(None, model, bad, Trace("good", [], traits, result="fine")) as (it, sid):
        assert (await it.turn(sid)).status == "complete"
        tools = tool_parts(await it.answer(sid))
        assert [(tool.state, tool.is_error) for tool in tools] == [("done", True), ("done", False)]


async def test_a_result_that_is_no_json_or_too_long_is_told_as_text(memory: World) -> None:
    """E1: a tool cannot break its run by what it returns."""
    model = ScriptedModel(answers([Asks("c1", "odd"), Asks("c2", "long")], ["I see."]))
    tools = Trace("odd", [], result={"a": object}), Trace("long", [], result="x" * 3_000_000)
    async with chatting(memory, model, *tools) as (it, sid):
        assert (await it.turn(sid)).status == "complete"
        odd, long = tool_parts(await it.answer(sid))
        assert isinstance(odd.result, str)
        assert "2900000 characters left out" in long.result


async def test_reading_tools_run_side_by_side(memory: World) -> None:
    """X5: if no call of a step changes anything, all are under way together; results are told in order."""
    model = ScriptedModel(answers([Asks("c1", "a"), Asks("c2", "b")], ["Done."]))
    a, b = (Trace(name, [], READ, result=name, before=name, gates=model.gates) for name in ("a", "b"))
    async with chatting(memory, model, a, b) as (it, sid):
        run = await it.send(sid)
        with anyio.fail_after(GUARD):
            await model.gates.reached("a").wait()
            await model.gates.reached("b").wait()
        model.gates.open("b").set()
        model.gates.open("a").set()
        assert (await it.ended(run.id)).status == "complete"
        assert [each.text for each in results(model.requests[1])] == ["a", "b"]


async def test_a_tool_that_changes_something_runs_alone(memory: World) -> None:
    """X5: one call that is not read-only makes the whole step one after another."""
    effects: list[str] = []
    model = ScriptedModel(answers([Asks("c1", "a"), Asks("c2", "b")], ["Done."]))
    tools = Trace("a", effects, READ), Trace("b", effects)
    async with chatting(memory, model, *tools) as (it, sid):
        run = await it.turn(sid)
        types = [each for each in await it.types(run.id) if each in ("tool.started", "tool.finished")]
        assert types == ["tool.started", "tool.finished"] * 2
        assert effects == ["a", "b"]


async def test_call_ids_that_come_again_are_told_apart(world: AnyWorld) -> None:
    """X5: a server that numbers calls anew in each answer does not confuse an answered call with a new one."""
    effects: list[str] = []
    model = ScriptedModel(
        answers([Asks("call_0", "look", {"x": 1})], [Asks("call_0", "look", {"x": 2}), "and "], ["done."])
    )
    async with chatting(world, model, Trace("look", effects)) as (it, sid):
        assert (await it.turn(sid)).status == "complete"
        tools = tool_parts(await it.answer(sid))
        assert [(tool.call_id, tool.args, tool.state) for tool in tools] == [
            ("call_0", {"x": 1}, "done"),
            ("call_0-2", {"x": 2}, "done"),
        ]
        assert effects == ["look 1", "look 2"]
        assert isinstance(model.requests[2].messages[-1], ToolMessage)


@pytest.mark.parametrize(("held", "begun"), [("tool.started", []), ("tool.finished", ["look"])])
async def test_a_start_and_a_result_are_durable_before_what_rests_on_them(
    world: AnyWorld, held: str, begun: list[str]
) -> None:
    """C8: while the journal has not taken `tool.started`, the tool has not begun; while it has not taken
    `tool.finished`, neither the next tool nor the model goes on."""
    model = ScriptedModel(answers([Asks("c1", "look"), Asks("c2", "then")], ["Done."]))
    effects: list[str] = []
    hold = Hold(appends(held))
    tools = Trace("look", effects), Trace("then", effects)
    async with running(agents={"chat": chat(model, *tools)}, world=world, tap=hold) as it:
        run = await it.send(await it.new_session())
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
        await anyio.wait_all_tasks_blocked()
        assert (effects, len(model.requests)) == (begun, 1)
        hold.go.set()
        assert (await it.ended(run.id)).status == "complete"
        assert (effects, len(model.requests)) == (["look", "then"], 2)


async def test_arguments_that_no_event_can_hold_are_refused(world: AnyWorld) -> None:
    """E1: the model is told to do it in smaller pieces, and the run goes on."""
    effects: list[str] = []
    many = {"x": 1} | {"y" * 1000 + str(n): n for n in range(600)}
    model = ScriptedModel(answers([Asks("c1", "look", many)], ["Then not."]))
    async with chatting(world, model, Trace("look", effects, open_schema=True)) as (it, sid):
        assert (await it.turn(sid)).status == "complete"
        assert effects == []
        assert "smaller calls" in str(model.requests[1].messages[-1])


# ---- limits and failures ----


async def test_the_same_call_again_and_again_is_stopped(world: AnyWorld) -> None:
    """E1: first the model is told, then the run fails and says why; what was done before stays."""
    effects: list[str] = []
    model = ScriptedModel(lambda request: [Asks(f"c{len(request.messages)}", "look", {"x": 1})])
    async with chatting(world, model, Trace("look", effects), limits=ChatLimits(max_repeats=2)) as (it, sid):
        run = await it.turn(sid)
        assert (run.status, run.error and run.error.code) == ("failed", "loop")
        assert effects == ["look 1"] * 2
        tools = tool_parts(await it.answer(sid))
        assert [tool.is_error for tool in tools] == [False, False, True, True]


@pytest.mark.parametrize(("limits", "requests"), [(ChatLimits(max_steps=3), 3), (ChatLimits(max_cost=0.5), 2)])
async def test_steps_and_cost_are_limited(memory: World, limits: ChatLimits, requests: int) -> None:
    """E1: a run that never comes to an end, or has cost as much as it may, is stopped with a message that says so."""
    model = ScriptedModel(lambda request: [Asks("c", "look", {"x": len(request.messages)}), Usage(1, 1, 0.4)])
    async with chatting(memory, model, Trace("look", []), limits=limits) as (it, sid):
        run = await it.turn(sid)
        assert (run.status, run.error and run.error.code) == ("failed", "limit")
        assert len(model.requests) == requests


async def test_a_decision_does_not_restart_the_count_of_steps(memory: World) -> None:
    """E1: the limit counts the whole run, however often a person was asked in between."""
    model = ScriptedModel(lambda request: [Asks(f"c{len(request.messages)}", "look", {"x": len(request.messages)})])
    limits = ChatLimits(max_steps=2)
    async with chatting(memory, model, Trace("look", [], ToolTraits(rule="ask")), limits=limits) as (it, sid):
        run = await it.send(sid)
        for _ in range(2):
            await it.until(run.id, "waiting")
            await it.decide(run, "once")
        ended = await it.until(run.id, "failed", "waiting")
        assert (ended.status, ended.error and ended.error.code) == ("failed", "limit")
        assert len(model.requests) == 2


async def test_a_model_error_in_mid_stream_keeps_the_partial(world: AnyWorld) -> None:
    """E1: what was said before the provider hung up stays, with one failure that a person can act on."""
    model = ScriptedModel(answers([Thinks("hm"), "half an ", Breaks()]))
    async with chatting(world, model) as (it, sid):
        run = await it.turn(sid)
        assert (run.status, run.error and run.error.code) == ("failed", "unavailable")
        assert (await it.answer(sid)).parts == (ReasoningPart("hm"), TextPart("half an "))
        assert model.upstreams == 0
        await check_one_end(it, run, "failed")


@pytest.mark.parametrize("after_tool", [False, True])
async def test_an_empty_answer_is_a_failure(memory: World, after_tool: bool) -> None:
    """E4: a step that ends without words, thoughts or calls fails the run, also after tools."""
    model = ScriptedModel(answers([Asks("c1", "look")], [Usage(1, 0)]) if after_tool else answers([]))
    async with chatting(memory, model, Trace("look", [])) as (it, sid):
        run = await it.turn(sid)
        assert (run.status, run.error and run.error.code) == ("failed", "empty-answer")


# ---- policy ----


@pytest.mark.parametrize("by", ["settings", "person"])
async def test_a_denied_call_is_told_and_the_run_goes_on(world: AnyWorld, by: str) -> None:
    """X5: the settings or the person say no: nothing runs, and the model hears so and answers."""
    effects: list[str] = []
    model = ScriptedModel(answers([Asks("c1", "look")], ["Then not."]))
    policy = ApprovalPolicy({"look": "deny"} if by == "settings" else {})
    agent = chat(model, Trace("look", effects, ToolTraits()), policy=policy)
    async with running(agents={"chat": agent}, world=world) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        if by == "person":
            await it.until(run.id, "waiting")
            await it.engine.runs.decide(run.id, (await it.question(run.id)).id, "deny")
        assert (await it.ended(run.id)).status == "complete"
        assert effects == []
        (told,) = results(model.requests[1])
        assert told.text == DENIED if by == "person" else "tool permissions" in told.text
        assert told.is_error
        assert texts((await it.answer(sid)).parts) == "Then not."


# ---- cancel ----


@pytest.mark.parametrize("phase", ["thinks", "says", "writes", "runs", "second"])
async def test_cancel_in_each_phase_keeps_what_there_was(world: AnyWorld, phase: str) -> None:
    """C1 C2 C3 C4 C7 C8: cancelled while thinking, speaking, writing a call, running a tool or answering after one, the
    message keeps all of it in order, and the upstream is closed."""
    stops: dict[str, list[Piece]] = {
        name: [Wait("here")] if name == phase else [] for name in ("thinks", "says", "writes", "second")
    }
    first: list[Piece] = [
        Thinks("hm"),
        *stops["thinks"],
        "I look. ",
        *stops["says"],
        Asks("c1", "look", {"x": 1}),
        *stops["writes"],
    ]
    model = ScriptedModel(answers(first, ["Found ", *stops["second"], "it."]))
    effects: list[str] = []
    tool = Trace("look", effects, after="here" if phase == "runs" else None, gates=model.gates)
    async with chatting(world, model, tool) as (it, sid):
        run = await it.send(sid)
        with anyio.fail_after(GUARD):
            await model.gates.reached("here").wait()
        ended = await it.engine.runs.cancel(run.id)
        assert ended.status == "cancelled"
        assert model.upstreams == 0
        shape = [
            part.state if isinstance(part, ToolPart) else part.text
            for part in (await it.answer(sid)).parts
            if isinstance(part, ToolPart | TextPart | ReasoningPart)
        ]
        kept = {"thinks": [], "says": [], "writes": ["not_run"], "runs": ["unknown"], "second": ["done", "Found "]}
        assert shape == ["hm", *([] if phase == "thinks" else ["I look. "]), *kept[phase]]
        await check_one_end(it, run, "cancelled")
