"""The Anthropic SDK (Node) on /v1/messages."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.chat.model_server import ScriptedModelServer
from tests.http.client import Served
from tests.interop.environments import ClientProcess
from tests.interop.scripts import HALF, WEATHER, refuses
from tests.openai.scripts import named
from tests.upstream import says

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def client() -> Iterator[ClientProcess]:
    with ClientProcess("anthropic-node", "anthropic_client.mjs") as started:
        yield started


def test_plain_and_streamed_answers(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """`create` and `stream` answer."""
    up.play("anjs text", says("Good ", "morning."))
    assert client.run("plain", shared, model=named("anjs text")) == ["Good morning.", "Good morning.", "end_turn"]


def test_tools(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """A streamed tool call is answered with its result."""
    up.play("anjs tools", *WEATHER)
    assert client.run("tools", shared, model=named("anjs tools")) == ["tool_use", {"city": "Brest"}, "Rain."]


@pytest.mark.parametrize(
    ("status", "expected"),
    [(429, ["RateLimitError", 429]), (400, ["BadRequestError", 400]), (500, ["ServiceUnavailableError", 503])],
)
def test_failing_upstream(
    status: int, expected: list[Any], shared: Served, client: ClientProcess, up: ScriptedModelServer
) -> None:
    """A provider that fails throws the error of its kind, streamed or not."""
    up.play(f"anjs fails {status}", refuses(status))
    assert client.run("failures", shared, model=named(f"anjs fails {status}")) == [expected] * 2


def test_leaving_a_stream_closes_the_upstream(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """Breaking out of a stream cancels the call to the provider."""
    up.play("anjs leaves", HALF)
    assert client.run("leave", shared, model=named("anjs leaves")) == "One "
    up.closed("anjs leaves")
