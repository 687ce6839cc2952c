"""Refused requests have OpenAI's error shape and name the parameter; ignored parameters are reported."""

from pathlib import Path
from typing import Any

import pytest
from openai import APIStatusError, AuthenticationError, BadRequestError, NotFoundError, OpenAI, RateLimitError

from holdfast.server.authenticator import issue_token, set_password
from holdfast.storage.key_file import KeyFile
from tests.chat.model_server import ScriptedModelServer
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import until
from tests.openai.conftest import client_of
from tests.openai.scripts import CHAT_TOOL, PNG, TOOL, named
from tests.upstream import answers, says

USER: Any = [{"role": "user", "content": "Hello"}]
FUNCTION: Any = {"type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("param", "body"),
    [
        ("temperature", {"input": "Hello", "temperature": "hot"}),
        ("temperature", {"input": "Hello", "temperature": 3}),
        ("stream", {"input": "Hello", "stream": "yes"}),
        ("max_output_tokens", {"input": "Hello", "max_output_tokens": 0}),
        ("metadata.a", {"input": "Hello", "metadata": {"a": 1}}),
        ("input[0].role", {"input": [{"role": "nobody", "content": "x"}]}),
        ("input[0].content", {"input": [{"role": "user", "content": 5}]}),
        ("input[0].content[0].text", {"input": [{"role": "user", "content": [{"type": "input_text"}]}]}),
        (
            "input[0].content[0].image_url",
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": PNG}]}]},
        ),
        ("input[0].content[0].type", {"input": [{"role": "user", "content": [{"type": "input_audio"}]}]}),
        ("input[0].type", {"input": [{"type": "computer_call"}]}),
        ("input[0].call_id", {"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}),
        ("input[0].id", {"input": [{"type": "item_reference", "id": "msg_none_0"}]}),
        ("input", {"input": []}),
        ("input", {"input": ""}),
        ("input", {"input": [{"role": "assistant", "content": "x"}]}),
        ("tools[0].type", {"input": "Hello", "tools": [{"type": "computer"}]}),
        ("tools[0].parameters", {"input": "Hello", "tools": [{"type": "function", "name": "f", "parameters": 1}]}),
        ("tool_choice", {"input": "Hello", "tool_choice": "required"}),
        ("tool_choice.name", {"input": "Hello", "tools": [TOOL], "tool_choice": {"type": "function", "name": "other"}}),
        ("text.format.type", {"input": "Hello", "text": {"format": {"type": "xml"}}}),
        ("text.format.schema", {"input": "Hello", "text": {"format": {"type": "json_schema", "name": "a"}}}),
        ("reasoning.effort", {"input": "Hello", "reasoning": {"effort": "heroic"}}),
        ("truncation", {"input": "Hello", "truncation": "auto"}),
        ("include[0]", {"input": "Hello", "include": ["message.output_text.logprobs"]}),
        ("previous_response_id", {"input": "Hello", "previous_response_id": "resp_none"}),
        ("conversation", {"input": "Hello", "conversation": "conv_none"}),
        ("store", {"input": "Hello", "store": False, "background": True}),
        ("no_such_parameter", {"input": "Hello", "no_such_parameter": 1}),
        ("messages", {"messages": []}),
        ("messages[0].role", {"messages": [{"role": "wizard", "content": "x"}]}),
        ("messages[1].tool_call_id", {"messages": [*USER, {"role": "tool", "tool_call_id": "c", "content": "x"}]}),
        ("messages[0].tool_calls[0].id", {"messages": [{"role": "assistant", "tool_calls": [FUNCTION]}]}),
        ("messages[1].content", {"messages": [*USER, {"role": "assistant"}]}),
        ("messages", {"messages": [*USER, {"role": "assistant", "content": "x"}]}),
        ("n", {"messages": USER, "n": 2}),
        ("logprobs", {"messages": USER, "logprobs": True}),
        ("logit_bias", {"messages": USER, "logit_bias": {"1": 5}}),
        ("functions", {"messages": USER, "functions": [{"name": "f"}]}),
        ("stop", {"messages": USER, "stop": 5}),
        ("modalities", {"messages": USER, "modalities": ["text", "audio"]}),
        ("max_tokens", {"messages": USER, "max_tokens": 5, "max_completion_tokens": 5}),
        (
            "tool_choice.function.name",
            {"messages": USER, "tools": [CHAT_TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}},
        ),
        ("response_format.json_schema", {"messages": USER, "response_format": {"type": "json_schema"}}),
    ],
)
def test_a_wrong_call_names_its_parameter(param: str, body: dict[str, Any], client: OpenAI, shared: Served) -> None:
    """An invalid or unsupported parameter is a 400 that names it, and no run is created."""
    before = shared.get("/api/runs", params={"limit": 1})["items"]
    path = "/chat/completions" if "messages" in body else "/responses"
    with pytest.raises(BadRequestError) as refused:
        client.post(path, cast_to=object, body={"model": named("default"), **body})
    assert refused.value.param == param
    assert refused.value.type == "invalid_request_error"
    assert shared.get("/api/runs", params={"limit": 1})["items"] == before


def test_unknown_ids_are_not_found(client: OpenAI) -> None:
    """Unknown ids are 404, in the same shape."""
    for call in (client.responses.retrieve, client.responses.cancel, client.responses.delete):
        with pytest.raises(NotFoundError) as missing:
            call("resp_none")
        assert "resp_none" in missing.value.message
    with pytest.raises(NotFoundError) as unknown:
        client.chat.completions.create(model="anthropic/nobody", messages=USER)
    assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
    with pytest.raises(NotFoundError):
        client.models.retrieve("nobody/knows")
    with pytest.raises(NotFoundError):
        client.get("/engines", cast_to=object)


def test_models_are_listed_and_found(client: OpenAI) -> None:
    """Available models and agents are listed under the names that a call accepts."""
    listed = [model.id for model in client.models.list()]
    assert named("default") in listed
    assert "agent:chat" in listed
    assert client.models.retrieve(named("default")).owned_by == "testing"


def test_model_may_be_named_without_its_provider(client: OpenAI, up: ScriptedModelServer) -> None:
    """The bare name of a model is accepted, and the response repeats it."""
    up.play("bare-name", says("Here."))
    answer = client.responses.create(model="bare-name", input="Hello")
    assert (answer.output_text, answer.model) == ("Here.", "bare-name")


def test_parameters_that_a_provider_does_not_accept(start: Start, up: ScriptedModelServer) -> None:
    """Parameters that do not reach the model are refused if the answer would be wrong without them; others are ignored
    and reported."""
    own = {"deep": {"kind": "deepseek", "base_url": up.url, "api_key": "k", "models": ["deep-1"]}}
    served = start(more={"providers": own})
    up.play("deep-1", says("Fine."))
    with client_of(served) as client:
        raw = client.chat.completions.with_raw_response.create(
            model="deep/deep-1", messages=USER, seed=1, reasoning_effort="low", temperature=0.5, user="me"
        )
        assert raw.headers["holdfast-ignored"] == "user, seed, reasoning_effort"
        asked = up.asked("deep-1")
        assert (asked["temperature"], "seed" in asked, "user" in asked) == (0.5, False, False)
        answer = client.responses.create(model="deep/deep-1", input="Hi", reasoning={"effort": "low"})
        assert answer.to_dict()["holdfast"]["ignored"] == ["reasoning.effort"]  # type: ignore[index]
        for param, value in (("tools", [CHAT_TOOL]), ("stop", "x"), ("max_tokens", 5)):
            body = {"model": "demo/scripted", "messages": USER, param: value}
            with pytest.raises(BadRequestError) as refused:
                client.post("/chat/completions", cast_to=object, body=body)
            assert refused.value.param == param


def test_bearer_token_where_there_is_a_password(start: Start, tmp_path: Path, up: ScriptedModelServer) -> None:
    """With a password, the API key must be an access token; another key is refused in OpenAI's shape."""
    (tmp_path / "data").mkdir(mode=0o700)
    keys = KeyFile(tmp_path / "data")
    set_password(keys, "a long password")
    secret = issue_token(keys, "program", 0.0)[1]
    served = start()
    up.play("guarded", says("Come in."))
    with client_of(served) as stranger, pytest.raises(AuthenticationError) as refused:
        stranger.models.list()
    assert (refused.value.code, refused.value.type) == ("invalid_api_key", "authentication_error")
    with client_of(served).with_options(api_key=secret) as client:
        assert client.responses.create(model=named("guarded"), input="Hello").output_text == "Come in."


def test_malformed_requests_have_the_same_shape(shared: Served) -> None:
    """Wrong paths, methods, bodies and sizes below /v1 have OpenAI's error shape, elsewhere the native one."""
    json_type = {"Content-Type": "application/json"}
    for status, method, path, how in (
        (404, "GET", "/v1/nothing", {}),
        (405, "PATCH", "/v1/responses", {"headers": json_type}),
        (400, "POST", "/v1/responses", {"content": b"{", "headers": json_type}),
        (415, "POST", "/v1/responses", {"content": b"a=1", "headers": {"Content-Type": "text/plain"}}),
        (413, "POST", "/v1/responses", {"content": b" " * (9 << 20), "headers": json_type}),
    ):
        answer = shared.http.request(method, path, **how)
        assert answer.status_code == status
        assert answer.json()["error"]["message"]
        assert answer.json()["error"]["type"] == "invalid_request_error"
    assert shared.http.get("/api/runs/none").headers["content-type"] == "application/problem+json"


def test_wrong_lifetime_is_refused(client: OpenAI) -> None:
    """An unknown lifetime is a 400 that names the header."""
    with pytest.raises(APIStatusError) as refused:
        client.responses.create(model=named("default"), input="x", extra_headers={"Holdfast-Lifetime": "eternal"})
    assert (refused.value.status_code, refused.value.param) == (400, "Holdfast-Lifetime")


def test_a_setting_that_the_model_rejects_is_the_requests_fault(client: OpenAI, up: ScriptedModelServer) -> None:
    """The provider's 400 stays one, with the provider's words."""
    up.play("picky", answers(400, {"error": {"message": "temperature must be 1"}}))
    with pytest.raises(BadRequestError, match="temperature must be 1") as refused:
        client.chat.completions.create(model=named("picky"), messages=USER, temperature=0.3)
    assert refused.value.code == "unsupported_parameter"
    begun = client.responses.create(model=named("picky"), input="hello", temperature=0.3, background=True)
    failed = until(lambda: client.responses.retrieve(begun.id), lambda response: response.status == "failed")
    assert failed.error is not None
    assert failed.error.code == "invalid_prompt"


def test_a_reached_budget_is_not_asked_again(start: Start) -> None:
    """Each API says it in its own shape. The clients, which repeat any other 429, are told that it does not help."""
    server = start()
    budget = {"period": "day", "unit": "tokens", "limit": 0, "action": "refuse"}
    server.set_budgets(budget)
    with client_of(server).with_options(max_retries=5) as client:
        with pytest.raises(RateLimitError, match="The daily budget of 0 tokens is used up") as refused:
            client.responses.create(model=named("budget"), input="hi")
        assert (refused.value.type, refused.value.code) == ("insufficient_quota", "insufficient_quota")
        with pytest.raises(RateLimitError):
            client.chat.completions.create(model=named("budget"), messages=USER)
    body = {"model": named("budget"), "messages": USER, "max_tokens": 5}
    response = server.http.post("/v1/messages", json=body)
    assert (response.status_code, response.headers["x-should-retry"]) == (429, "false")
    assert response.json()["error"]["type"] == "rate_limit_error"
    assert 'holdfast_http_requests_total{method="POST",status="429"} 3.0' in server.http.get("/metrics").text
