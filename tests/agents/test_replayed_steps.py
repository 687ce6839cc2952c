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
from holdfast.ports.model import AssistantMessage, ChatMessage, ModelRequest, ToolCall, ToolMessage, UserMessage
from holdfast.ports.tool import ToolTraits
from tests.agents.models import Asks, Piece, ScriptedModel, Thinks, Trace, chat
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
    results = [ToolMessage(part.call_id, part.name, "done") for part in parts if isinstance(part, ToolCall)]
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

    model = ScriptedModel(script)
    effects: list[str] = []
    tools = Trace("look", effects), Trace("ask", effects, ToolTraits(rule="ask"))
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
    """X5: sequential steps are not merged, and arguments, words and calls are as written, for every dialect."""
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
