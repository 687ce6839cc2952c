"""LiteLLM as a library."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chat.model_server import ScriptedModelServer
from tests.http.client import Served
from tests.interop.environments import ClientProcess
from tests.interop.scripts import HALF, TIDE_FIELDS, WEATHER, refuses
from tests.openai.scripts import TIDE, named
from tests.upstream import says

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def client() -> Iterator[ClientProcess]:
    with ClientProcess("litellm", "litellm_client.py") as started:
        yield started


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_plain_and_streamed_answers(api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """`completion` answers whole and streamed."""
    up.play(f"ll text {api}", says("Good ", "morning."))
    assert client.run("plain", shared, model=named(f"ll text {api}"), api=api) == ["Good morning."] * 2


def test_responses(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """`responses` answers whole and streamed."""
    up.play("ll responses", says("Good ", "morning."))
    expected = ["Good morning.", "response.completed"]
    assert client.run("responses", shared, model=named("ll responses")) == expected


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_tools(api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """A function is called, and its result reaches the model."""
    up.play(f"ll tools {api}", *WEATHER)
    arguments, text = client.run("tools", shared, model=named(f"ll tools {api}"), api=api)
    assert (json.loads(arguments), text) == ({"city": "Brest"}, "Rain.")


def test_structured_output(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """A pydantic model as `response_format` reaches the provider as a schema."""
    up.play("ll structured", says(TIDE))
    assert client.run("structured", shared, model=named("ll structured")) == TIDE_FIELDS
    assert up.asked("ll structured")["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("api", "status", "expected"),
    [
        ("openai", 429, ["RateLimitError", 429]),
        ("openai", 500, ["ServiceUnavailableError", 503]),
        ("anthropic", 429, ["RateLimitError", 429]),
        ("anthropic", 500, ["InternalServerError", 500]),
    ],
)
def test_failing_upstream(
    api: str, status: int, expected: list[Any], shared: Served, client: ClientProcess, up: ScriptedModelServer
) -> None:
    """A provider that fails raises the error of its kind, streamed or not. LiteLLM itself makes a 500 of Anthropic's
    `overloaded_error`, which has the status 503 here."""
    model = f"ll fails {api} {status}"
    up.play(model, refuses(status))
    assert client.run("fails", shared, model=named(model), api=api) == [expected] * 2


def test_leaving_a_stream_closes_the_upstream(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """Closing a stream cancels the call to the provider."""
    up.play("ll leaves", HALF)
    assert client.run("leave", shared, model=named("ll leaves")) == "One "
    up.closed("ll leaves")
