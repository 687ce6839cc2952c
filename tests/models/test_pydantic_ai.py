"""Anthropic and Google through pydantic-ai's models, against upstreams that speak their wire formats."""

import base64
import gzip
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from holdfast.core.events import ReasoningDelta, TextDelta, ToolDelta
from holdfast.core.parts import ReasoningPart, TextPart
from holdfast.models.provider_config import ProviderConfig
from holdfast.models.pydantic_ai_models import PydanticAIModel, PydanticAIModels
from holdfast.models.request_policy import RequestPolicy, Timeouts
from holdfast.ports.model import (
    AssistantMessage,
    Media,
    Model,
    ModelError,
    ModelInfo,
    ModelRequest,
    ProviderKind,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from tests.models.asking import HELLO, KEY, Naps, Outcome, joined, outcome
from tests.upstream import GUARD, Chunk, End, Hang, Head, Script, Step, Upstream, answers, upstream

pytestmark = pytest.mark.anyio
SIGNATURE = base64.b64encode(b"signed").decode()
LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {"where": {"type": "string"}}})
ASKED = ModelRequest("Be kind.", (UserMessage(("Where is it sunny?",)),), (LOOK,))


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """The library takes seconds to import, which no test's guard counts."""
    import holdfast.models.pydantic_ai_stream  # noqa: F401


# ---- their wire formats ----


def named(*events: dict[str, Any]) -> list[Step]:
    return [Chunk(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode()) for e in events]


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[Step]:
    return named(
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": d} for d in deltas),
        {"type": "content_block_stop", "index": index},
    )


def begun() -> list[Step]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": []}
    start = {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}}
    return [Head(), *named(start)]


def ended(reason: str, tokens: int = 20) -> list[Step]:
    delta = {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}}
    return [*named({**delta, "usage": {"output_tokens": tokens}}, {"type": "message_stop"}), End()]


CLAUDE: Script = [
    *begun(),
    *block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Let me "},
        {"type": "thinking_delta", "thinking": "see."},
        {"type": "signature_delta", "signature": SIGNATURE},
    ),
    *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "I will look."}),
    *block(
        2,
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"where":'},
        {"type": "input_json_delta", "partial_json": ' "Łódź"}'},
    ),
    *ended("tool_use"),
]
CLAUDE_SAYS: Script = [
    *begun(),
    *block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Sunny."}),
    *ended("end_turn"),
]


def gemini(*parts: dict[str, Any], finish: str | None = None) -> Step:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 20, "totalTokenCount": 30}
    data = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-x", "responseId": "r1"}
    return Chunk(f"data: {json.dumps(data)}\r\n\r\n".encode())


GEMINI: Script = [
    Head(),
    gemini({"text": "Let me see.", "thought": True}),
    gemini({"text": "I will look."}),
    gemini({"functionCall": {"name": "look", "args": {"where": "Łódź"}}, "thoughtSignature": SIGNATURE}),
    gemini({"text": ""}, finish="STOP"),
    End(),
]
HALF_CLAUDE = [*begun(), *block(0, {"type": "text", "text": "Half"})[:1]]
HALF_GEMINI = [Head(), gemini({"text": "Half"})]
GEMINI_SAYS: Script = [Head(), gemini({"text": "Sunny."}, finish="STOP"), End()]


@asynccontextmanager
async def asked(kind: ProviderKind, up: Upstream, timeouts: Timeouts | None = None) -> AsyncIterator[Model]:
    limits = timeouts or Timeouts(GUARD, GUARD, GUARD, GUARD)
    providers = PydanticAIModels(RequestPolicy(limits, attempts=3, sleep=Naps(), jitter=lambda: 0.0))
    abilities: Any = frozenset({"tools", "images", "documents", "reasoning"})
    config = ProviderConfig(name=kind, kind=kind, base_url=up.url, api_key=KEY, key_name="THE_KEY")
    try:
        yield PydanticAIModel(ModelInfo(f"{kind}/m", "m", kind, abilities=abilities), config, f"{kind}-m", providers)
    finally:
        await providers.aclose()


def said(got: Outcome) -> AssistantMessage:
    """The answer, as the agent loop gives it back."""
    thoughts = [d for d in joined(got.deltas) if isinstance(d, ReasoningDelta)]
    return AssistantMessage((*(ReasoningPart(d.text, d.provider) for d in thoughts), TextPart(got.text), *got.calls))


def through_json(got: Outcome) -> ModelRequest:
    """The next request, with everything that was kept having been through the journal."""
    calls = got.calls
    assert json.loads(json.dumps([c.provider for c in calls])) == [c.provider for c in calls]
    result = ToolMessage(calls[0].call_id, "look", "sunny there")
    return ModelRequest("Be kind.", (*ASKED.messages, said(got), result), (LOOK,))


# ---- what is common to both ----


@pytest.mark.parametrize(("kind", "script"), [("anthropic", CLAUDE), ("google", GEMINI)])
async def test_thinking_text_and_a_call(kind: ProviderKind, script: Script) -> None:
    """All that a provider says arrives as deltas of ours, the call complete, with usage."""
    async with upstream(script) as up, asked(kind, up) as model:
        got = await outcome(model, ASKED)
    assert got.failed is None
    assert (got.reasoning, got.text) == ("Let me see.", "I will look.")
    (call,) = got.calls
    assert (call.name, call.args, call.invalid) == ("look", {"where": "Łódź"}, None)
    written = [d for d in got.deltas if isinstance(d, ToolDelta)]
    assert {d.call_id for d in written} == {call.call_id}
    assert json.loads("".join(d.args_delta or "" for d in written)) == call.args
    assert [(u.input_tokens, u.output_tokens) for u in got.usage] == [(10, 20)]


async def test_usage_of_absurd_size_is_dropped() -> None:
    """The answer is kept; a number that no database or page can hold is not."""
    script = [*begun(), *block(0, {"type": "text", "text": "Yes"}), *ended("end_turn", 10**400)]
    async with upstream(script) as up, asked("anthropic", up) as model:
        got = await outcome(model, ASKED)
    assert (got.failed, got.text, got.usage) == (None, "Yes", [])


async def test_anthropic_goes_on_with_signed_thinking() -> None:
    """The block of thinking goes back with its signature, before the call that it led to."""
    async with upstream(CLAUDE, CLAUDE_SAYS) as up, asked("anthropic", up) as model:
        first = await outcome(model, ASKED)
        second = await outcome(model, through_json(first))
        assert (second.text, second.finish_reason, second.failed) == ("Sunny.", "stop", None)
        assert first.finish_reason == "tool_calls"
        assert KEY in str(up.exchanges[0].headers)
        sent = up.exchanges[1].json()
    assert "Be kind." in json.dumps(sent["system"])
    thinking, text, use = sent["messages"][1]["content"]
    assert (thinking["type"], thinking["thinking"], thinking["signature"]) == ("thinking", "Let me see.", SIGNATURE)
    assert text["text"] == "I will look."
    assert (use["id"], use["input"]) == ("toolu_1", {"where": "Łódź"})
    (result,) = sent["messages"][2]["content"]
    assert result["tool_use_id"] == "toolu_1"
    assert "sunny there" in json.dumps(result)
    assert sent["tools"][0]["name"] == "look"


async def test_google_goes_on_with_the_calls_signature() -> None:
    """The thought signature goes back with the call that carried it."""
    async with upstream(GEMINI, GEMINI_SAYS) as up, asked("google", up) as model:
        second = await outcome(model, through_json(await outcome(model, ASKED)))
        assert second.text == "Sunny."
        assert up.exchanges[0].headers["x-goog-api-key"] == KEY
        contents = up.exchanges[1].json()["contents"]
    (call,) = [part for part in contents[1]["parts"] if "functionCall" in part]
    assert base64.urlsafe_b64decode(call["thoughtSignature"].replace("+", "-").replace("/", "_")) == b"signed"
    (answer,) = [part for part in contents[2]["parts"] if "functionResponse" in part]
    assert "sunny there" in json.dumps(answer)


@pytest.mark.parametrize(
    ("kind", "script"),
    [("anthropic", [*begun(), Hang()]), ("anthropic", [Hang()]), ("google", [Head(), Hang()]), ("google", [Hang()])],
)
async def test_cancel_before_the_first_delta_closes_the_upstream(kind: ProviderKind, script: Script) -> None:
    """C7: in mid-await, before and after the head of the answer."""
    async with upstream(script) as up, asked(kind, up) as model, anyio.create_task_group() as group:
        group.start_soon(outcome, model)
        await up.asked()
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await up.closed()


@pytest.mark.parametrize(("kind", "script"), [("anthropic", HALF_CLAUDE), ("google", HALF_GEMINI)])
async def test_cancel_in_mid_stream_closes_the_upstream(kind: ProviderKind, script: Script) -> None:
    """C7: what was said is kept, and the connection is closed without waiting for the next chunk."""
    async with upstream([*script, Hang()]) as up, asked(kind, up) as model:
        seen: list[Any] = []
        with anyio.CancelScope() as scope:
            async with model.stream(HELLO) as answer:
                async for deltas in answer:
                    seen.extend(deltas)
                    scope.cancel()
        assert seen == [TextDelta("Half")]
        await up.closed()


PACKED = gzip.compress(bytes(40_000_000))
PACKED_HEADERS = {"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}


@pytest.mark.parametrize("kind", ["anthropic", "google"])
@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ([Head(headers=PACKED_HEADERS), Chunk(PACKED), End()], "compressed"),
        ([Head(), *[Chunk(b"x" * 1_000_000)] * 40, End()], "too large"),
    ],
    ids=["compressed", "one line"],
)
async def test_an_answer_without_end_is_refused(kind: ProviderKind, script: Script, problem: str) -> None:
    """A line of an answer has a limit, and a compressed answer, which can expand a thousand times, is not read."""
    async with upstream(script) as up, asked(kind, up) as model:
        got = await outcome(model)
    assert got.code == "protocol"
    assert problem in str(got.failed)


@pytest.mark.parametrize("kind", ["anthropic", "google"])
async def test_a_refused_key(kind: ProviderKind) -> None:
    """The failure is ours, with the place of the key in it and the key nowhere."""
    refusal = answers(401, {"type": "error", "error": {"type": "authentication_error", "message": f"bad {KEY}"}})
    async with upstream(refusal) as up, asked(kind, up) as model:
        got = await outcome(model)
    assert got.code == "auth"
    assert "THE_KEY" in str(got.failed)
    assert KEY not in str(got.failed)


@pytest.mark.parametrize(("kind", "answer"), [("anthropic", CLAUDE_SAYS), ("google", GEMINI_SAYS)])
async def test_an_overload_is_asked_again(kind: ProviderKind, answer: Script) -> None:
    """Before the first delta another attempt is made, and not more of them than the policy says."""
    busy = answers(503, {"error": {"type": "overloaded_error", "message": "Overloaded"}})
    async with upstream(busy, answer) as up, asked(kind, up) as model:
        assert (await outcome(model)).text == "Sunny."
        assert len(up.exchanges) == 2
    async with upstream(busy) as up, asked(kind, up) as model:
        got = await outcome(model)
        assert len(up.exchanges) == 3
    assert got.code == "unavailable"


async def test_an_error_in_mid_stream_keeps_what_was_said() -> None:
    """E1: Anthropic's overload in the middle of an answer."""
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    async with upstream([*HALF_CLAUDE, *named(overloaded), End()]) as up, asked("anthropic", up) as model:
        got = await outcome(model)
    assert got.text == "Half"
    assert got.code == "unavailable"


async def test_a_provider_that_hangs_is_given_up() -> None:
    """The time to the first delta is limited here too."""
    timeouts = Timeouts(connect=GUARD, first_token=1.0, idle=GUARD, stalled=GUARD)
    async with upstream([*begun(), Hang()]) as up, asked("anthropic", up, timeouts) as model:
        got = await outcome(model)
        await up.closed()
    assert got.code == "timeout"


async def test_pictures_and_settings_arrive() -> None:
    """Media, limits and stop words are in the provider's own form; what it does not know is left out."""
    png = Media("a.png", "image/png", b"\x89PNG")
    unknown = {"top_k": 3, "seed": 1, "presence_penalty": 0.5, "frequency_penalty": 0.5}
    request = ModelRequest(None, (UserMessage(("See", png)),), settings={"max_tokens": 77, "stop": "END", **unknown})
    async with upstream(CLAUDE_SAYS) as up, asked("anthropic", up) as model:
        await outcome(model, request)
        sent = up.exchanges[0].json()
    assert (sent["max_tokens"], sent["stop_sequences"]) == (77, ["END"])
    assert not unknown.keys() & sent.keys()
    kinds = [part["type"] for part in sent["messages"][0]["content"]]
    assert kinds == ["text", "image"]


async def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is not needed until one of its models is asked, and then the sentence names the extra."""
    monkeypatch.setitem(sys.modules, "holdfast.models.pydantic_ai_stream", None)
    async with upstream(CLAUDE_SAYS) as up, asked("anthropic", up) as model:
        with pytest.raises(ModelError, match=r"holdfast\[providers\]"):
            async with model.stream(HELLO):
                pass


# ---- keys ----


async def test_a_new_key_is_used_at_once_and_the_old_client_is_closed() -> None:
    """M1: a key that was replaced in the settings is not sent again; an answer under way with it ends undisturbed."""
    async with upstream(CLAUDE_SAYS, CLAUDE_SAYS, CLAUDE_SAYS) as up, asked("anthropic", up) as model:
        assert isinstance(model, PydanticAIModel)
        renewed = replace(model, config=replace(model.config, api_key="sk-new"))
        with anyio.fail_after(GUARD):
            async with model.stream(HELLO) as first:
                old = model.models._clients["anthropic", "anthropic-m"].http
                assert (await outcome(renewed, HELLO)).text == "Sunny."
                assert not old.is_closed
                async for _ in first:
                    pass
        assert old.is_closed
        assert (await outcome(renewed, HELLO)).text == "Sunny."
        keys = [[key for key in (KEY, "sk-new") if key in str(exchange.headers)] for exchange in up.exchanges]
    assert keys == [[KEY], ["sk-new"], ["sk-new"]]


@pytest.mark.parametrize(("kind", "script"), [("anthropic", CLAUDE_SAYS), ("google", GEMINI_SAYS)])
async def test_images_of_tools_reach_the_provider(kind: ProviderKind, script: Script) -> None:
    """X5: Anthropic gets them in the result, Google beside it."""
    image = Media("1.png", "image/png", b"\x89PNG\r\n\x1a\n")
    call = ToolCall("toolu_1", "look", {"where": "here"})
    seen = ToolMessage("toolu_1", "look", "a picture", images=(image,))
    request = ModelRequest(None, (*ASKED.messages, AssistantMessage((call,)), seen), (LOOK,))
    async with upstream(script) as up, asked(kind, up) as model:
        assert (await outcome(model, request)).text == "Sunny."
        sent = up.exchanges[0].json()
    assert base64.b64encode(image.data).decode() in json.dumps(sent)
    if kind == "anthropic":
        (result,) = sent["messages"][-1]["content"]
        assert (result["type"], [part["type"] for part in result["content"]]) == ("tool_result", ["text", "image"])
