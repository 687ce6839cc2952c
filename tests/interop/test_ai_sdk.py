"""Vercel AI SDK: its OpenAI, OpenAI-compatible and Anthropic providers."""

from collections.abc import Iterator

import pytest

from tests.chat.model_server import ScriptedModelServer
from tests.http.client import Served
from tests.interop.environments import ClientProcess
from tests.interop.scripts import HALF, TIDE_FIELDS, WEATHER, refuses
from tests.openai.scripts import TIDE, named
from tests.upstream import Close, Head, delta, says, sse

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def client() -> Iterator[ClientProcess]:
    with ClientProcess("ai-sdk", "ai_sdk_client.mjs") as started:
        yield started


@pytest.mark.parametrize("api", ["responses", "chat", "compatible", "anthropic"])
def test_plain_and_streamed_answers(api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """`generateText` and `streamText` answer."""
    up.play(f"ai text {api}", says("Good ", "morning."))
    expected = ["Good morning.", "Good morning.", "stop"]
    assert client.run("plain", shared, model=named(f"ai text {api}"), api=api) == expected


@pytest.mark.parametrize("api", ["responses", "chat", "compatible", "anthropic"])
def test_tools_and_history(api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """`streamText` executes its tool, and the messages of its answer continue the conversation."""
    up.play(f"ai tools {api}", *WEATHER)
    found = client.run("tools", shared, model=named(f"ai tools {api}"), api=api)
    assert found == [["rain in Brest"], "Rain.", "Sure."]
    roles = [message["role"] for message in up.asked(f"ai tools {api}", 3)["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]


@pytest.mark.parametrize("api", ["responses", "chat", "compatible", "anthropic"])
def test_structured_output(api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """`Output.object` returns what the schema describes."""
    up.play(f"ai structured {api}", says(TIDE))
    assert client.run("structured", shared, model=named(f"ai structured {api}"), api=api) == TIDE_FIELDS


@pytest.mark.parametrize("api", ["responses", "chat", "compatible", "anthropic"])
@pytest.mark.parametrize(("status", "expected"), [(429, 429), (500, 503)])
def test_failing_upstream(
    status: int, expected: int, api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer
) -> None:
    """A provider that fails throws from `generateText` with its status, and is an error part of `streamText`."""
    model = f"ai fails {api} {status}"
    up.play(model, refuses(status))
    found = client.run("fails", shared, model=named(model), api=api)
    assert found["whole"][1] == expected
    assert "error" in found["parts"]
    assert "says no" in found["message"]


@pytest.mark.parametrize("api", ["responses", "chat", "compatible", "anthropic"])
def test_failure_in_mid_stream(api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """A provider that breaks after some text is an error part of the stream, with the reason."""
    model = f"ai breaks {api}"
    up.play(model, [Head(), *sse(delta(content="One "), {"error": {"message": "The provider says no."}}), Close()])
    found = client.run("fails", shared, model=named(model), api=api)
    assert "error" in found["parts"]
    assert "says no" in str(found["message"])


@pytest.mark.parametrize("api", ["responses", "chat", "compatible", "anthropic"])
def test_abort_in_mid_stream(api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """Aborting a stream cancels the call to the provider."""
    up.play(f"ai leaves {api}", HALF)
    assert client.run("leave", shared, model=named(f"ai leaves {api}"), api=api) is True
    up.closed(f"ai leaves {api}")
