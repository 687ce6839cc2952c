"""LangChain: chat models and agents over all three APIs."""

from collections.abc import Iterator

import pytest

from tests.chat.model_server import ScriptedModelServer
from tests.http.client import Served
from tests.interop.environments import ClientProcess
from tests.interop.scripts import HALF, TIDE_FIELDS, WEATHER, refuses
from tests.openai.scripts import TIDE, named, thinks_and_says
from tests.upstream import says

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def client() -> Iterator[ClientProcess]:
    with ClientProcess("langchain", "langchain_client.py") as started:
        yield started


@pytest.mark.parametrize("api", ["responses", "chat", "anthropic"])
def test_plain_and_streamed_answers(api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """A chat model answers whole and streamed, with its usage."""
    up.play(f"lc text {api}", thinks_and_says("", "Good ", "morning."))
    found = client.run("plain", shared, model=named(f"lc text {api}"), api=api)
    assert found == ["Good morning.", "Good morning.", 5]


@pytest.mark.parametrize("api", ["responses", "chat", "anthropic"])
def test_agent_with_tools(api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """`create_agent` executes its tool and sends the result back."""
    up.play(f"lc tools {api}", *WEATHER)
    found = client.run("tools", shared, model=named(f"lc tools {api}"), api=api)
    assert [kind for kind, _ in found] == ["human", "ai", "tool", "ai"]
    assert found[-1][1] == "Rain."
    assert "rain in Brest" in up.asked(f"lc tools {api}", 2)["messages"][-1]["content"]


@pytest.mark.parametrize("api", ["responses", "chat", "anthropic"])
def test_structured_output(api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """`with_structured_output` returns the model that the schema describes."""
    up.play(f"lc structured {api}", says(TIDE))
    assert client.run("structured", shared, model=named(f"lc structured {api}"), api=api) == TIDE_FIELDS


@pytest.mark.parametrize("api", ["responses", "chat", "anthropic"])
@pytest.mark.parametrize(("status", "expected"), [(429, 429), (500, 503)])
def test_failing_upstream(
    status: int, expected: int, api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer
) -> None:
    """A provider that fails raises an error with its status, streamed or not."""
    model = f"lc fails {api} {status}"
    up.play(model, refuses(status))
    found = client.run("fails", shared, model=named(model), api=api)
    assert [code for _, code in found] == [expected] * 2


@pytest.mark.parametrize("api", ["responses", "chat", "anthropic"])
def test_leaving_a_stream_closes_the_upstream(
    api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer
) -> None:
    """Closing a stream cancels the call to the provider."""
    up.play(f"lc leaves {api}", HALF)
    assert client.run("leave", shared, model=named(f"lc leaves {api}"), api=api) == "One "
    up.closed(f"lc leaves {api}")
