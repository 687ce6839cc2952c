"""The Anthropic SDK (Python) on /v1/messages."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.chat.model_server import ScriptedModelServer
from tests.http.client import Served
from tests.interop.environments import ClientProcess
from tests.interop.scripts import HALF, TIDE_FIELDS, WEATHER, refuses
from tests.openai.scripts import TIDE, named, thinks_and_says
from tests.upstream import Close, Head, delta, says, sse

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def client() -> Iterator[ClientProcess]:
    with ClientProcess("anthropic", "anthropic_client.py") as started:
        yield started


def test_plain_and_streamed_answers(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """`create` and `stream` answer, with the reason and the usage."""
    up.play("an text", thinks_and_says("", "Good ", "morning."))
    expected = ["Good morning.", "Good morning.", "end_turn", 5]
    assert client.run("plain", shared, model=named("an text")) == expected


def test_tools(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """A streamed tool call is answered with its result."""
    up.play("an tools", *WEATHER)
    expected = ["tool_use", {"city": "Brest"}, "Rain."]
    assert client.run("tools", shared, model=named("an tools")) == expected
    assert [m["role"] for m in up.asked("an tools", 2)["messages"]] == ["user", "assistant", "tool"]


def test_tool_runner(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """The client's own loop asks for a thread, is refused, and goes on with the whole conversation."""
    up.play("an runner", *WEATHER)
    assert client.run("runner", shared, model=named("an runner")) == "Rain."
    assert up.asked("an runner", 2)["messages"][-1]["content"] == "rain in Brest"


def test_structured_output(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """`parse` returns the model that the schema describes."""
    up.play("an structured", says(TIDE))
    assert client.run("structured", shared, model=named("an structured")) == TIDE_FIELDS
    assert up.asked("an structured")["response_format"]["type"] == "json_schema"


def test_thinking(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """Reasoning is a thinking block, and can be sent back."""
    up.play("an thinking", thinks_and_says("Hm.", "Good."))
    assert client.run("thinking", shared, model=named("an thinking")) == [["thinking", "text"], "Good."]


def test_tokens_and_models(shared: Served, client: ClientProcess) -> None:
    """Tokens are counted and models listed."""
    assert client.run("tokens", shared, model=named("default")) is True
    assert named("default") in client.run("models", shared)


@pytest.mark.parametrize(
    ("status", "expected"),
    [(429, ["RateLimitError", 429]), (400, ["BadRequestError", 400]), (500, ["ServiceUnavailableError", 503])],
)
def test_failing_upstream(
    status: int, expected: list[Any], shared: Served, client: ClientProcess, up: ScriptedModelServer
) -> None:
    """A provider that fails raises the error of its kind, streamed or not."""
    up.play(f"an fails {status}", refuses(status))
    assert client.run("failures", shared, model=named(f"an fails {status}")) == [expected] * 2


def test_failure_in_mid_stream(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """A provider that breaks after some text raises an API error, here that of an unavailable one."""
    up.play("an breaks", [Head(), *sse(delta(content="One "), {"error": {"message": "no"}}), Close()])
    text, kind = client.run("breaks", shared, model=named("an breaks"))
    assert (text, kind) == ("One ", "overloaded_error")


def test_leaving_a_stream_closes_the_upstream(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """Leaving a stream cancels the call to the provider."""
    up.play("an leaves", HALF)
    assert client.run("leave", shared, model=named("an leaves")) == "One "
    up.closed("an leaves")
