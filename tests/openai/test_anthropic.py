"""`/v1/messages` with Anthropic's own client."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from anthropic import Anthropic, APIStatusError, AuthenticationError, BadRequestError, NotFoundError, RateLimitError
from starlette.exceptions import HTTPException

from holdfast.agents.scripted_agent import Hang as ScriptedHang
from holdfast.server import error_responses
from tests.chat.model_server import ScriptedModelServer
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import GUARD
from tests.openai.in_process import fetching
from tests.openai.scripts import calls_function, named, thinks_and_says
from tests.storage_interceptors import until
from tests.upstream import Hang, Head, answers, delta, says, sse

HELLO: Any = [{"role": "user", "content": "Hello"}]
TOOL: Any = {"name": "get_weather", "description": "Tells.", "input_schema": {"type": "object", "properties": {}}}


def claude_of(served: Served, key: str = "none") -> Anthropic:
    return Anthropic(base_url=served.url, api_key=key, timeout=GUARD, max_retries=0)


@pytest.fixture
def claude(shared: Served) -> Iterator[Anthropic]:
    with claude_of(shared) as client:
        yield client


@pytest.mark.parametrize("streamed", [False, True])
def test_text_reasoning_and_usage(streamed: bool, claude: Anthropic, up: ScriptedModelServer) -> None:
    """The blocks of a message arrive whole and streamed, and the parameters reach the model."""
    model = f"claude {streamed}"
    up.play(model, thinks_and_says("Hm. ", "Good ", "morning."))
    how: Any = {"model": named(model), "max_tokens": 50, "messages": HELLO, "system": "Be kind."}
    how |= {"extra_body": {"temperature": 0.5}}
    how |= {"stop_sequences": ["END"]}
    if streamed:
        with claude.messages.stream(**how) as stream:
            assert "".join(stream.text_stream) == "Good morning."
            message: Any = stream.get_final_message()
    else:
        message = claude.messages.create(**how)
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert (message.content[0].thinking, message.content[1].text) == ("Hm. ", "Good morning.")
    assert (message.role, message.stop_reason, message.model) == ("assistant", "end_turn", named(model))
    assert message.usage.input_tokens + message.usage.output_tokens == 12
    asked = up.asked(model)
    assert [m["content"] for m in asked["messages"]] == ["Be kind.", "Hello"]
    assert (asked["max_tokens"], asked["temperature"], asked["stop"]) == (50, 0.5, ["END"])


@pytest.mark.parametrize("streamed", [False, True])
def test_a_tool_is_called_and_answered(streamed: bool, claude: Anthropic, up: ScriptedModelServer) -> None:
    """The client gets the call and sends its result back with the history; the model sees both."""
    model = f"claude tools {streamed}"
    up.play(model, calls_function('{"ci', 'ty":"Brest"}'), says("Rain."))
    how: Any = {"model": named(model), "max_tokens": 50, "tools": [TOOL], "tool_choice": {"type": "any"}}
    if streamed:
        with claude.messages.stream(messages=HELLO, **how) as stream:
            first: Any = stream.get_final_message()
    else:
        first = claude.messages.create(messages=HELLO, **how)
    (call,) = first.content
    assert (first.stop_reason, call.type, call.name, call.input) == (
        "tool_use",
        "tool_use",
        "get_weather",
        {"city": "Brest"},
    )
    assert up.asked(model)["tool_choice"] == "required"
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "rain"}]}
    said: Any = {"role": "user", "content": [result, {"type": "text", "text": "So?"}]}
    second: Any = claude.messages.create(
        messages=[*HELLO, {"role": "assistant", "content": first.content}, said], **how
    )
    assert second.content[0].text == "Rain."
    messages = up.asked(model, 2)["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "user"]
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == '{"city":"Brest"}'
    assert (messages[2]["content"], messages[3]["content"]) == ("rain", "So?")


@pytest.mark.parametrize("arguments", ['{"x":1e999}', '{"x":NaN}', '{"x":-Infinity}', '{"x":', "[1]", '{"x":' * 5000])
def test_input_that_json_cannot_carry_is_passed_on_as_text(
    arguments: str, shared: Served, up: ScriptedModelServer
) -> None:
    """E1: the response is JSON that every client can parse."""
    model = f"claude input {arguments[:12]} {len(arguments)}"
    up.play(model, calls_function(arguments))
    body = {"model": named(model), "max_tokens": 50, "messages": HELLO, "tools": [TOOL]}
    answer = shared.http.post("/v1/messages", json=body)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    (call,) = json.loads(answer.text, parse_constant=refuse)["content"]
    assert (call["type"], call["input"]) == ("tool_use", {"invalid": arguments})


@pytest.mark.parametrize("streamed", [False, True])
def test_errors_have_their_status_and_shape(streamed: bool, claude: Anthropic, up: ScriptedModelServer) -> None:
    """E1: a wrong call, an unknown model and a failing provider raise the errors that the client knows."""
    model = f"claude fails {streamed}"
    up.play(model, answers(429, {"error": {"message": "insufficient_quota"}}))
    with pytest.raises(RateLimitError) as limited:
        claude.messages.create(model=named(model), max_tokens=5, messages=HELLO, stream=streamed)
    body: Any = limited.value.body
    assert (body["type"], body["error"]["type"]) == ("error", "rate_limit_error")
    with pytest.raises(NotFoundError):
        claude.messages.create(model="agent:none", max_tokens=5, messages=HELLO, stream=streamed)
    wrong: Any = [{"role": "user", "content": [{"type": "film"}]}]
    with pytest.raises(BadRequestError) as refused:
        claude.messages.create(model=named(model), max_tokens=5, messages=wrong, stream=streamed)
    assert "messages[0].content[0].type" in str(refused.value.message)


def test_a_failure_after_output_is_in_the_stream(claude: Anthropic, up: ScriptedModelServer) -> None:
    """E1: what was written is sent, then the error."""
    up.play("claude broke", [Head(), *sse(delta(content="Half"), {"error": {"message": "it broke"}}), Hang()])
    seen: list[str] = []
    with (
        pytest.raises(APIStatusError, match="it broke"),
        claude.messages.stream(model=named("claude broke"), max_tokens=5, messages=HELLO) as stream,
    ):
        seen += stream.text_stream
    assert seen == ["Half"]


def test_tokens_are_estimated(claude: Anthropic) -> None:
    """A longer conversation counts more."""
    short = claude.messages.count_tokens(model="any", messages=HELLO).input_tokens
    long = claude.messages.count_tokens(model="any", messages=[{"role": "user", "content": "x" * 4000}]).input_tokens
    assert 0 < short < 1000 < long


def test_an_image_reaches_the_model(shared: Served, claude: Anthropic, up: ScriptedModelServer) -> None:
    """An image that the model is not known to read is refused by name, as in the other calls."""
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    said: Any = [{"role": "user", "content": [{"type": "image", "source": source}, {"type": "text", "text": "What?"}]}]
    with pytest.raises(BadRequestError, match="image"):
        claude.messages.create(model=named("claude blind"), max_tokens=5, messages=said)


def test_the_key_is_a_token_of_the_server(start: Start, up: ScriptedModelServer) -> None:
    """With a password, `x-api-key` must be a token."""
    served = start(password="secret enough")
    with pytest.raises(AuthenticationError):
        claude_of(served, "wrong").messages.create(model=named("claude key"), max_tokens=5, messages=HELLO)
    login = httpx.post(f"{served.url}/api/login", verify=False, json={"password": "secret enough"})
    made = httpx.post(f"{served.url}/api/tokens", verify=False, json={"name": "claude"}, cookies=login.cookies)
    token = made.json()["token"]
    message: Any = claude_of(served, token).messages.create(model=named("claude key"), max_tokens=5, messages=HELLO)
    assert message.content[0].text == "Fine."


def test_refusals_have_the_shape_of_the_format(start: Start, shared: Served) -> None:
    """Errors of the access checks and of the address are in Anthropic's shape, with their headers."""
    call = {"model": "any", "max_tokens": 5, "messages": HELLO}
    denied = httpx.post(f"{start(password='secret enough').url}/v1/messages", verify=False, json=call)
    assert (denied.status_code, denied.json()["type"]) == (401, "error")
    assert denied.json()["error"]["type"] == "authentication_error"
    assert denied.headers["www-authenticate"] == "Bearer"
    wrong = httpx.get(f"{shared.url}/v1/messages", verify=False)
    assert (wrong.status_code, wrong.json()["error"]["type"]) == (405, "invalid_request_error")
    assert wrong.headers["allow"] == "POST"
    large = httpx.post(f"{shared.url}/v1/messages", verify=False, json={**call, "system": "x" * (8 << 20)})
    assert (large.status_code, large.json()["error"]["type"]) == (413, "request_too_large")


def test_the_headers_of_an_error_are_kept() -> None:
    """A request whose body is late ends its connection in every shape."""
    late = HTTPException(408, "Too late.", {"Connection": "close"})
    for path in ("/v1/messages", "/v1/responses", "/api/sessions"):
        assert error_responses.from_exception(path, late).headers["connection"] == "close"


def test_a_token_limit_that_cannot_be_honored_is_ignored(claude: Anthropic) -> None:
    """The format requires `max_tokens`, so a model that does not take it can be used all the same."""
    raw = claude.messages.with_raw_response.create(model="demo/scripted", max_tokens=5, messages=HELLO)
    assert "max_tokens" in raw.headers["holdfast-ignored"]
    assert raw.parse().role == "assistant"


def test_the_url_of_a_document_is_not_dropped(claude: Anthropic) -> None:
    """A document by URL is fetched or refused like any other file by URL."""
    source = {"type": "url", "url": "https://example.com/tide.pdf"}
    said: Any = [{"role": "user", "content": [{"type": "document", "source": source}]}]
    with pytest.raises(BadRequestError, match="fetch_urls"):
        claude.messages.create(model=named("claude url"), max_tokens=5, messages=said)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.anyio
async def test_a_cut_response_has_the_shape_of_the_format(streamed: bool, tmp_path: Path) -> None:
    """A message that the server cannot finish sending because it stops ends with an error in Anthropic's shape."""
    call = {"model": "agent:chat", "max_tokens": 5, "messages": HELLO, "stream": streamed}
    answers: list[httpx.Response] = []
    async with fetching(tmp_path, ScriptedHang()) as (it, _, client):

        async def ask() -> None:
            answers.append(await client.post("/v1/messages", json=call))

        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await until(lambda: it.agent.upstreams == 1)
                it.engine.feed.stop()
    (answer,) = answers
    if streamed:
        assert '"type":"error"' in answer.text
        return
    assert (answer.status_code, answer.json()["type"]) == (503, "error")
    assert answer.json()["error"]["type"] == "overloaded_error"
    assert answer.headers["retry-after"] == "2"


@pytest.mark.parametrize("older", [False, True])
def test_structured_output_reaches_the_model(older: bool, claude: Anthropic, up: ScriptedModelServer) -> None:
    """The schema of the answer is passed on under both of its names, and so is the effort."""
    model = f"claude schema {older}"
    schema = {"type": "object", "properties": {"hours": {"type": "array", "items": {"type": "integer"}}}}
    form = {"type": "json_schema", "schema": schema}
    wanted = {"output_format": form} if older else {"output_config": {"format": form, "effort": "high"}}
    up.play(model, says('{"hours":[6]}'))
    claude.messages.create(model=named(model), max_tokens=50, messages=HELLO, extra_body=wanted)
    asked = up.asked(model)
    assert asked["response_format"]["json_schema"]["schema"] == schema
    assert asked.get("reasoning_effort") == (None if older else "high")


def test_a_thread_is_refused_so_that_the_client_does_without(claude: Anthropic) -> None:
    """The refusal has the code at which Anthropic's client sends the whole conversation instead."""
    thread = {"thread": {"type": "create"}}
    with pytest.raises(BadRequestError) as raised:
        claude.messages.create(model=named("default"), max_tokens=50, messages=HELLO, extra_body=thread)
    body: Any = raised.value.body
    assert body["error"]["details"] == {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
