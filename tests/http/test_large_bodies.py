"""Large JSON bodies: what a body may have, and that long ones are still accepted."""

import contextlib
import http.client
import json
from threading import current_thread, main_thread
from typing import Annotated, Any, cast

import httpx
import pytest
from pydantic import AfterValidator, TypeAdapter
from starlette.applications import Starlette

from holdfast.server.context import ApiContext
from holdfast.server.openai.schemas import ChatRequest
from holdfast.server.routing import Router
from holdfast.server.schemas.base import RequestModel
from tests.http.client import Served
from tests.steps import count_steps

SIZE = 8 * 1024 * 1024 - 1000
MESSAGE = {"role": "user", "content": "x"}
CHAT = f'"model": "agent:chat", "messages": [{json.dumps(MESSAGE)}]'

NASTY: dict[str, tuple[str, str, str, str]] = {
    "empty messages": ("/v1/chat/completions", '{"messages": [', "{},", "]}"),
    "empty lists": ("/v1/chat/completions", '{"messages": [', "[],", "]}"),
    "numbers": ("/v1/responses", '{"input": [', "0,", "]}"),
    "parts": ("/v1/chat/completions", '{"messages": [{"role": "user", "content": [', '{"type": "text"},', "]}]}"),
    "nested lists": ("/v1/chat/completions", f'{{{CHAT}, "user": [', "[" * 90 + "]" * 90 + ",", "]}"),
    "deep": ("/v1/messages", '{"messages": ', "[", ""),
    "fields": ("/v1/messages", "{", '"a": 0,', "}"),
    "texts": ("/api/sessions", '{"tags": [', '"",', "]}"),
    "settings": ("/api/sessions", '{"settings": {', '"\\u00e9": [],', "}}"),
    "compared runs": ("/api/compare", '{"runs": [', "{},", "]}"),
    "embeddings": ("/v1/embeddings", '{"model": "m", "input": [', "0,", "]}"),
}


def nasty(case: str) -> tuple[str, bytes]:
    path, start, unit, end = NASTY[case]
    return path, (start + (unit * (SIZE // len(unit))).rstrip(",") + end).encode()


def send(served: Served, path: str, body: bytes) -> httpx.Response:
    return served.http.post(path, content=body, headers={"Content-Type": "application/json"})


@pytest.mark.parametrize("case", NASTY)
def test_a_body_of_too_many_values_is_refused(shared: Served, case: str) -> None:
    """The time to read it goes with their number, and nobody else is answered meanwhile. The error says the limit, in
    the API's own shape."""
    path, body = nasty(case)
    answer = send(shared, path, body)
    assert answer.status_code == 413, answer.text[:300]
    limit = "320,000" if path == "/v1/embeddings" else "200,000" if path.startswith("/v1") else "20,000"
    found = answer.json()
    told = found["detail"] if path.startswith("/api") else found["error"]["message"]
    assert f"more than {limit} values" in told
    kind = {"/api": "too-large", "/v1/m": "request_too_large"}.get(path[: 5 if path.startswith("/v1") else 4])
    assert (found if path.startswith("/api") else found["error"])["type"] == (kind or "invalid_request_error")


def test_a_body_of_long_numbers_is_refused(shared: Served) -> None:
    """A number of thousands of digits takes as long to read as hundreds of short ones."""
    body = f'{{{CHAT}, "user": [{",".join(["9" * 4000] * 2000)}]}}'.encode()
    answer = send(shared, "/v1/chat/completions", body)
    assert answer.status_code == 413
    assert "more than 3 MB outside of texts" in answer.json()["error"]["message"]


def test_a_body_in_pieces_is_counted_as_a_whole(shared: Served) -> None:
    """However small they are, and wherever they begin."""
    body = ('{"tags": [' + '"", ' * 30_000 + '""]}').encode()
    pieces = (body[at : at + 1999] for at in range(0, len(body), 1999))
    answer = shared.http.post("/api/sessions", content=pieces, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


def test_a_connection_is_usable_after_a_refusal(shared: Served) -> None:
    """The response comes before the end of the body, and nothing else after it."""
    path, body = nasty("empty messages")
    with contextlib.closing(http.client.HTTPConnection(*shared.address)) as connection:
        for _ in range(3):
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            with connection.getresponse() as refused:
                assert refused.status == 413
                refused.read()
        connection.request("GET", "/healthz")
        with connection.getresponse() as response:
            assert response.status == 200


def test_a_line_of_too_many_values_is_not_imported(shared: Served) -> None:
    """A line is a body of its own; texts in it are not counted."""
    line = '{"type": "session", "format": "holdfast-session", "x": [' + "[]," * 300_000 + '"[[[["]}'
    answer = shared.http.post("/api/import", content=line, headers={"Content-Type": "application/x-ndjson"})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("line 1: has more than 500,000 values")


def conversation(rounds: int) -> list[Any]:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"path": "[[{{,,"}'}}
    asks = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": '[1, 2, {"a": "b"}]' * 20}]}
    return [{"role": "user", "content": "Begin."}, *[asks, result] * rounds]


def test_the_longest_conversation_of_an_agent_is_accepted(shared: Served) -> None:
    """It has as many messages as a call may have, nearly all of them tool calls and their results."""
    body = json.dumps({"model": "agent:chat", "messages": [*conversation(4_999), MESSAGE]}).encode()
    answer = send(shared, "/v1/chat/completions", body)
    assert answer.status_code == 200, answer.text[:300]


def test_long_texts_are_not_counted(shared: Served) -> None:
    """An image is a single text, and so is a file that looks like JSON."""
    content = [{"type": "text", "text": "Read " + "[0,[]," * 300_000}, {"type": "text", "text": '\\"' * 400_000}]
    body = json.dumps({"model": "agent:chat", "messages": [{"role": "user", "content": content}]}).encode()
    assert send(shared, "/v1/chat/completions", body).status_code == 200


def test_as_many_tokens_as_openai_takes_are_embedded(shared: Served) -> None:
    """Clients that count tokens themselves send numbers: at most 300,000 in a call."""
    body = json.dumps({"model": "no/such", "input": [[99_999] * 300] * 1000}).encode()
    answer = send(shared, "/v1/embeddings", body)
    assert answer.status_code == 404, answer.text[:300]
    assert answer.json()["error"]["code"] == "model_not_found"


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/chat/completions", {"messages": [{}] * 50_000}, "messages[0].role"),
        ("/v1/responses", {"input": [{"type": "x"}] * 50_000}, "input[0].type"),
        ("/v1/responses", {"input": "x", "metadata": {str(n): 0 for n in range(50_000)}}, "metadata.0"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{}] * 50_000}]}, "messages[0].content[0]"),
    ],
)
def test_the_first_wrong_item_is_named(shared: Served, path: str, body: dict[str, Any], param: str) -> None:
    """Describing all of them would take the server longer than reading them."""
    answer = send(shared, path, json.dumps(body).encode())
    assert answer.status_code == 400, answer.text[:300]
    assert answer.json()["error"]["param"].startswith(param)


@pytest.mark.anyio
async def test_a_large_body_is_validated_beside_the_event_loop() -> None:
    """A small one is not: changing threads would take longer."""
    threads: list[bool] = []

    class Body(RequestModel):
        text: Annotated[str, AfterValidator(lambda text: threads.append(current_thread() is main_thread()) or text)]

    router = Router("test")

    @router.post("/")
    async def handle(body: Body) -> None: ...

    app = Starlette(routes=[router.endpoints[0].route(cast(ApiContext, None))])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        for size in (1000, 1_000_000):
            assert (await client.post("/", json={"text": "x" * size})).status_code == 200
    assert threads == [True, False]


def test_a_long_list_is_validated_in_steps() -> None:
    """Nothing else of the process runs during a step."""
    part = {"type": "text", "text": ""}
    body = json.dumps({"messages": [{"role": "user", "content": [part] * 500}] * 100})
    adapter = TypeAdapter(ChatRequest)
    adapter.validate_json('{"messages": [{"role": "user", "content": ""}]}')
    assert count_steps(lambda: adapter.validate_json(body)) >= 100
