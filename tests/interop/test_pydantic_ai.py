"""pydantic-ai: agents over all three APIs."""

from collections.abc import Iterator

import pytest

from tests.chat.model_server import ScriptedModelServer
from tests.http.client import Served
from tests.interop.environments import ClientProcess
from tests.interop.scripts import HALF, TIDE_FIELDS, WEATHER, refuses
from tests.openai.scripts import TIDE, calls_function, named
from tests.upstream import says

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def client() -> Iterator[ClientProcess]:
    with ClientProcess("pydantic-ai", "pydantic_ai_client.py") as started:
        yield started


@pytest.mark.parametrize("api", ["responses", "chat", "anthropic"])
def test_plain_and_streamed_answers(api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """An agent answers whole and streamed."""
    up.play(f"pai text {api}", says("Good ", "morning."))
    assert client.run("plain", shared, model=named(f"pai text {api}"), api=api) == ["Good morning."] * 2


@pytest.mark.parametrize("api", ["responses", "chat", "anthropic"])
def test_tools_and_history(api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """A streamed run executes its tool, and a second run continues its history."""
    up.play(f"pai tools {api}", *WEATHER)
    assert client.run("tools", shared, model=named(f"pai tools {api}"), api=api) == ["Rain.", "Sure."]
    roles = [message["role"] for message in up.asked(f"pai tools {api}", 3)["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]


@pytest.mark.parametrize("api", ["responses", "chat", "anthropic"])
def test_structured_output(api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """The output is the model that the agent declares. pydantic-ai knows by the name which models of Anthropic's have
    native output, and gives all others a tool for it."""
    answer = calls_function(TIDE, name="final_result") if api == "anthropic" else says(TIDE)
    up.play(f"pai structured {api}", answer)
    assert client.run("structured", shared, model=named(f"pai structured {api}"), api=api) == TIDE_FIELDS


@pytest.mark.parametrize("api", ["responses", "chat", "anthropic"])
@pytest.mark.parametrize(("status", "expected"), [(429, 429), (500, 503)])
def test_failing_upstream(
    status: int, expected: int, api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer
) -> None:
    """A provider that fails raises an error with its status."""
    model = f"pai fails {api} {status}"
    up.play(model, refuses(status))
    assert client.run("fails", shared, model=named(model), api=api)[1] == expected


@pytest.mark.parametrize("api", ["responses", "chat", "anthropic"])
def test_leaving_a_stream_closes_the_upstream(
    api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer
) -> None:
    """Leaving a streamed run cancels the call to the provider."""
    up.play(f"pai leaves {api}", HALF)
    assert client.run("leave", shared, model=named(f"pai leaves {api}"), api=api) == "One "
    up.closed(f"pai leaves {api}")
