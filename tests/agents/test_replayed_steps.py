"""A model is shown each of its steps as it wrote them: later in the turn, after a decision, and in the next turn."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.parts import Json, ReasoningPart, TextPart
from holdfast.models import local_model_prompt, openai_request, pydantic_ai_messages
from holdfast.models.dialects import DIALECTS, GENERIC
from holdfast.ports.model import AssistantMessage, ChatMessage, Media, ModelRequest, ToolCall, ToolMessage, UserMessage
from holdfast.ports.tool import ToolTraits
from tests.agents.models import Asks, Piece, ScriptedModel, Shelf, Thinks, Trace, answers, chat, image_of
from tests.harness import World, running

STYLES: Sequence[Callable[[Json], str]] = (
    json.dumps,
    lambda args: json.dumps(args, separators=(",", ":")),
    lambda args: json.dumps(args, indent=2),
    lambda args: f" {json.dumps(args)}\n",
)


@st.composite
def steps(draw: st.DrawFn) -> list[list[Piece]]:
    """The answers of one turn: some that call tools, with words before, between and after the calls, and the last."""
    turn: list[list[Piece]] = []
    for n in range(draw(st.integers(1, 4))):
        step: list[Piece] = [Thinks("hm", {"signature": f"s{n}"})] if draw(st.booleans()) else []
        for k in range(draw(st.integers(1, 3))):
            step += draw(st.sampled_from([[], [f"words {n}.{k} "]]))
            args = {"x": 10 * n + k}
            name = draw(st.sampled_from(["look", "ask"]))
            step.append(Asks(f"call{n}{k}", name, args, text=draw(st.sampled_from(STYLES))(args)))
        step += draw(st.sampled_from([[], [f"after {n} "]]))
        turn.append(step)
    return [*turn, ["The end."]]


def written(step: Sequence[Piece]) -> list[ChatMessage]:
    """The messages of a step, straight from what the model wrote."""
    parts: list[TextPart | ReasoningPart | ToolCall] = []
    for piece in step:
        match piece:
            case str():
                parts.append(TextPart(piece))
            case Thinks(text, provider):
                parts.append(ReasoningPart(text, provider))
            case Asks(call_id, name, args, text=text):
                parts.append(ToolCall(call_id, name, args, text=text))
            case _:
                raise AssertionError(piece)
    results = [
        ToolMessage(part.call_id, part.name, "done", images=(image_of(part.args["x"]),) if part.name == "ask" else ())
        for part in parts
        if isinstance(part, ToolCall)
    ]
    return [AssistantMessage(tuple(parts)), *results]


def without_reasoning(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Reasoning is sent back within its turn only."""
    return [
        AssistantMessage(tuple(part for part in message.parts if not isinstance(part, ReasoningPart)))
        if isinstance(message, AssistantMessage)
        else message
        for message in messages
    ]


def wire(messages: Sequence[ChatMessage]) -> dict[str, Any]:
    """What every kind of provider is sent."""
    request = ModelRequest(None, tuple(messages))
    dialects = {**DIALECTS, "generic": GENERIC}
    sent: dict[str, Any] = {
        name: json.loads(openai_request.body(request, "m", dialect))["messages"] for name, dialect in dialects.items()
    }
    sent["local"] = local_model_prompt.body(request)["messages"]
    sent["pydantic-ai"] = [
        [(type(part).__name__, getattr(part, "content", None), getattr(part, "args", None)) for part in message.parts]
        for message in pydantic_ai_messages.messages(request)
    ]
    return sent


async def played(turn: list[list[Piece]]) -> list[ModelRequest]:
    """The requests of a turn whose questions are all answered with *once*, and of the next turn."""

    def script(request: ModelRequest) -> Sequence[Piece]:
        return turn[min(len(model.requests) - 1, len(turn) - 1)]

    model = ScriptedModel(script, frozenset({"tools", "images"}))
    effects: list[str] = []
    tools = Trace("look", effects), Trace("ask", effects, ToolTraits(rule="ask"), images=True)
    async with running(agents={"chat": chat(model, *tools)}, world=World()) as it:
        sid = await it.new_session()
        run = await it.send(sid, "first")
        while (await it.until(run.id, "waiting", "complete")).status == "waiting":
            await it.decide(run, "once")
        await it.turn(sid, "second")
    return model.requests


@pytest.mark.anyio
@given(steps())
@settings(max_examples=30, deadline=None)
async def test_a_model_sees_its_steps_as_it_wrote_them(turn: list[list[Piece]]) -> None:
    """X5: sequential steps are not merged, and arguments, words, calls and images of tools are as they were, for every
    dialect."""
    requests = await played(turn)
    assert len(requests) == len(turn) + 1
    expected: list[ChatMessage] = [UserMessage(("first",))]
    for n, request in enumerate(requests[:-1]):
        assert wire(request.messages) == wire(expected)
        expected += written(turn[n])
    expected = [*without_reasoning(expected), UserMessage(("second",))]
    assert wire(requests[-1].messages) == wire(expected)


@pytest.mark.anyio
async def test_calls_made_one_after_another_stay_apart() -> None:
    """X5: two steps of one call each are two messages in the next turn and after a decision, never a parallel batch."""
    requests = await played([[Asks("a", "look", {"x": 1})], [Asks("b", "ask", {"x": 2})], ["The end."]])
    kinds = [[type(message) for message in request.messages] for request in requests]
    steps = [AssistantMessage, ToolMessage, AssistantMessage, ToolMessage]
    assert kinds[2] == [UserMessage, *steps]
    assert kinds[3] == [UserMessage, *steps, AssistantMessage, UserMessage]


LOOKED = (
    UserMessage(("q",)),
    AssistantMessage((ToolCall("a", "look", {}), ToolCall("b", "look", {}))),
    ToolMessage("a", "look", "one", images=(Media("1.png", "image/png", b"1"),)),
    ToolMessage("b", "look", "two"),
)


def test_each_dialect_carries_images_of_tools_where_its_provider_reads_them() -> None:
    """X5: after all results of the step in a user message, within the result for Mistral, whose API takes no user
    message there, and as part of the result for Anthropic and Google."""
    sent = wire(LOOKED)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,MQ=="}}
    assert [message["role"] for message in sent["generic"]] == ["user", "assistant", "tool", "tool", "user"]
    assert sent["generic"][-1]["content"] == [{"type": "text", "text": "Images returned by the tool look:"}, image]
    assert [message["role"] for message in sent["mistral"]] == ["user", "assistant", "tool", "tool"]
    assert sent["mistral"][2]["content"] == [{"type": "text", "text": "one"}, image]
    assert [kind for kind, _, _ in sent["pydantic-ai"][-1]] == ["ToolReturnPart"] * 2
    text, binary = sent["pydantic-ai"][-1][0][1]
    assert (text, binary.data, binary.media_type) == ("one", b"1", "image/png")
    assert json.dumps(sent["local"]).count("MQ==") == 0


def test_images_of_a_turn_that_ended_after_its_tools_join_the_next_question() -> None:
    """X5: roles alternate for servers that insist on it."""
    last = wire([*LOOKED, UserMessage(("and now?",))])["generic"][-1]
    assert [part["type"] for part in last["content"]] == ["text", "image_url", "text"]


@pytest.mark.anyio
async def test_a_model_that_sees_no_images_is_sent_none() -> None:
    """X5: the text of the result names them, and their contents are not even read."""
    model = ScriptedModel(answers([Asks("a", "look", {"x": 1})], ["The end."]))
    shelf = Shelf()
    async with running(agents={"chat": chat(model, Trace("look", [], images=True), files=shelf)}, world=World()) as it:
        await it.turn(await it.new_session(), "first")
    assert model.requests[-1].messages[-1] == ToolMessage("a", "look", "done")
    assert (list(shelf.contents), shelf.reads) == (["1.png"], [])
