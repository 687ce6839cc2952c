"""What the user adds to a turn of the chat agent: what the model is shown, live, after a crash, and in later turns."""

from collections.abc import Sequence

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agents.chat.model_messages import answer, conversation, with_answer
from holdfast.core.ids import LOCAL, MessageId, SessionId
from holdfast.core.parts import Part, ReasoningPart, SteeredPart, TextPart, ToolPart
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.core.run import Run
from holdfast.core.session import Message
from holdfast.core.steps import open_step, step_starts, unfinished_text
from holdfast.ports.model import AssistantMessage, ChatMessage, ModelRequest, ToolCall, ToolMessage, UserMessage
from holdfast.ports.tool import ToolTraits
from tests.agents.models import Asks, Piece, ScriptedModel, Thinks, Trace, by_calls, chat
from tests.agents.test_replayed_steps import without_reasoning, written
from tests.harness import GUARD, AnyWorld, Running, World, running
from tests.storage_interceptors import Hold, appends

pytestmark = pytest.mark.anyio

STEERED = MessageId("msg_steered")


def parts_as_messages(*parts: Part) -> list[ChatMessage]:
    return answer(parts)


def test_what_was_added_parts_the_steps() -> None:
    """X5: text after it is another step, also where its position among the parts would continue one; a text that was
    cut off before it is not continued."""
    cut = (TextPart("half"), SteeredPart(STEERED, "no, shorter"))
    assert (open_step(cut), unfinished_text(cut)) == ((), None)
    assert step_starts((*cut, TextPart("short"))) == [0, 2]
    assert step_starts((*cut, ToolPart("c", "t", {}, "done"))) == [0, 2]
    half, short = AssistantMessage((TextPart("half"),)), AssistantMessage((TextPart("short"),))
    assert parts_as_messages(*cut, TextPart("short")) == [half, UserMessage(("no, shorter",)), short]


def test_roles_alternate_where_the_step_before_had_no_output() -> None:
    """X5: what was added joins the question if nothing was said before it, live and in later turns."""
    asked = Message(MessageId("m1"), LOCAL, SessionId("s"), "user", None, 0.0, parts=(TextPart("q"),))
    parts = (ReasoningPart("hm", {}), SteeredPart(STEERED, "a"), SteeredPart(STEERED, "b"), TextPart("done"))
    answered = Message(MessageId("m2"), LOCAL, SessionId("s"), "assistant", asked.id, 0.0, parts=parts)
    expected = [UserMessage(("q", "a", "b")), AssistantMessage((TextPart("done"),))]
    assert conversation([asked, answered], {}) == expected
    assert with_answer(conversation([asked], {}), answer(parts)) == expected


@st.composite
def turns(draw: st.DrawFn) -> tuple[list[list[Piece]], list[list[str]]]:
    """Steps that each call a tool that asks, but for the last, and what the user adds while each is decided."""
    count = draw(st.integers(1, 3))
    steps: list[list[Piece]] = []
    for n in range(count):
        step: list[Piece] = [Thinks("hm", {"signature": f"s{n}"})] if draw(st.booleans()) else []
        step += draw(st.sampled_from([[], [f"words {n} "]]))
        steps.append([*step, Asks(f"call{n}", "ask", {"x": n})])
    texts = st.lists(st.sampled_from(["shorter", "in German", "and faster"]), max_size=2)
    return [*steps, ["The end."]], [draw(texts) for _ in range(count)]


async def played(steps: list[list[Piece]], added: list[list[str]], *, crash: bool) -> list[ModelRequest]:
    """The requests of a turn to which text is added at each question, and of the next turn. `crash`: the process dies
    at each question, and another goes on."""
    world, model = World(), by_calls(*steps)
    agent = chat(model, Trace("ask", [], ToolTraits(rule="ask")))
    run: Run | None = None

    async def go_on(it: Running, n: int) -> Run:
        """Up to question `n`, or to the end."""
        if run is None:
            now = await it.send(await it.new_session(), "first")
        else:
            now = await it.decide(run, "once")
        if n == len(added):
            await it.ended(now.id)
            await it.turn(now, "second")
            return now
        await asks(it, now, f"call{n}")
        for text in added[n]:
            await it.engine.runs.steer(now.id, text)
        return now

    if not crash:
        async with running(agents={"chat": agent}, world=world) as it:
            for n in range(len(added) + 1):
                run = await go_on(it, n)
        return model.requests
    for n in range(len(added) + 1):
        async with running(agents={"chat": agent}, world=world) as it:
            run = await go_on(it, n)
            if n < len(added):
                await it.crash()
    return model.requests


async def asks(it: Running, run: Run, call_id: str) -> None:
    with anyio.fail_after(GUARD):
        while True:
            await it.until(run.id, "waiting")
            if (await it.question(run.id)).call_id == call_id:
                return


def expected_requests(steps: list[list[Piece]], added: list[list[str]]) -> list[list[ChatMessage]]:
    shown: list[ChatMessage] = [UserMessage(("first",))]
    requests = [list(shown)]
    for n, texts in enumerate(added):
        shown += written(steps[n])
        shown = [replaced(message) for message in shown]
        shown += [UserMessage(tuple(texts))] if texts else []
        requests.append(list(shown))
    last = [*shown, AssistantMessage((TextPart("The end."),)), UserMessage(("second",))]
    return [*requests, without_reasoning(last)]


def replaced(message: ChatMessage) -> ChatMessage:
    """The results of these tools have no images."""
    return ToolMessage(message.call_id, message.name, message.text) if isinstance(message, ToolMessage) else message


@pytest.mark.parametrize("crash", [False, True])
@given(turns())
@settings(max_examples=20, deadline=None)
async def test_a_model_sees_what_was_added_where_it_was_read(
    crash: bool, turn: tuple[list[list[Piece]], list[list[str]]]
) -> None:
    """X5: each text is between the steps where the model read it first: in the rest of the turn, after a crash, and in
    the next turn."""
    steps, added = turn
    requests = await played(steps, added, crash=crash)
    found = [flat(request.messages) for request in requests]
    assert found == [flat(messages) for messages in expected_requests(steps, added)]


def flat(messages: Sequence[ChatMessage]) -> list[object]:
    """Without the notation of arguments, which has tests of its own."""
    return [
        tuple((part.call_id, part.name, part.args) if isinstance(part, ToolCall) else part for part in message.parts)
        if isinstance(message, AssistantMessage)
        else message
        for message in messages
    ]


async def test_a_text_that_came_during_the_last_step_is_the_next_message(world: AnyWorld) -> None:
    """A3: the model has no further step to read it in."""
    model = by_calls(["The end."], ["Shorter."])
    tap = Hold(appends("run.complete"))
    async with running(agents={"chat": chat(model)}, world=world, tap=tap) as it:
        run = await it.send(await it.new_session(), "first")
        with anyio.fail_after(GUARD):
            await tap.reached.wait()
        queued = (await it.engine.runs.steer(run.id, "shorter")).run
        assert queued.steers == run.id
        tap.go.set()
        await it.ended(queued.id)
        assert await it.said(run) == ["first", "The end.", "shorter", "Shorter."]


async def test_reasoning_that_was_cut_off_before_it_is_not_sent_back() -> None:
    """X5: no provider accepts half a block of reasoning, also if text was added before the model reasons anew."""
    world = World()
    steps: list[list[Piece]] = [[Asks("c", "look", {"x": 1})], [Thinks("half"), "never"], ["The end."]]
    model = ScriptedModel(lambda request: steps[len(model.requests) - 1])
    agent = chat(model, Trace("look", []))
    tap = Hold(appends("reasoning.delta"), when="after")
    async with running(agents={"chat": agent}, world=world, tap=tap) as it:
        run = await it.send(await it.new_session(), "first")
        with anyio.fail_after(GUARD):
            await tap.reached.wait()
        await it.engine.runs.steer(run.id, "shorter")
        it.store.away = it.journal.away = True
        tap.go.set()
        await it.crash()
    async with running(agents={"chat": agent}, world=world, recovery=RecoveryPolicy(auto_continue=True)) as it:
        await it.ended(run.id)
    last = model.requests[-1].messages
    assert last[-1] == UserMessage(("shorter",))
    assert not any(isinstance(part, ReasoningPart) for m in last if isinstance(m, AssistantMessage) for part in m.parts)
