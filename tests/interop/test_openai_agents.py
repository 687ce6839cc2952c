"""openai-agents: the Agents SDK over both APIs."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.chat.model_server import ScriptedModelServer, calls
from tests.http.client import Served
from tests.http.conftest import Start
from tests.interop.environments import ClientProcess
from tests.interop.scripts import HALF, TIDE_FIELDS, WEATHER, refuses
from tests.openai.scripts import TIDE, named
from tests.upstream import says

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def client() -> Iterator[ClientProcess]:
    with ClientProcess("openai", "agents_client.py") as started:
        yield started


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_plain_and_streamed_answers(api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """A run answers whole and streamed."""
    up.play(f"agents text {api}", says("Good ", "morning."))
    assert client.run("plain", shared, model=named(f"agents text {api}"), api=api) == ["Good morning."] * 3


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_tools(api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """A streamed run executes its tool and sends the result back."""
    up.play(f"agents tools {api}", *WEATHER)
    assert client.run("tools", shared, model=named(f"agents tools {api}"), api=api) == "Rain."
    assert up.asked(f"agents tools {api}", 2)["messages"][-1]["content"] == "rain in Brest"


def test_history_on_the_server(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """With `previous_response_id` only what is new is sent, and the model sees the whole conversation."""
    up.play("agents stateful", *WEATHER)
    found = client.run("stateful", shared, model=named("agents stateful"), api="responses")
    assert found == ["Rain.", "Sure."]
    roles = [message["role"] for message in up.asked("agents stateful", 3)["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_structured_output(api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """The final output is the model that the agent declares."""
    up.play(f"agents structured {api}", says(TIDE))
    assert client.run("structured", shared, model=named(f"agents structured {api}"), api=api) == TIDE_FIELDS


@pytest.mark.parametrize("api", ["responses", "chat"])
@pytest.mark.parametrize(("status", "expected"), [(429, ["RateLimitError", 429]), (500, ["InternalServerError", 503])])
def test_failing_upstream(
    status: int, expected: list[Any], api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer
) -> None:
    """A provider that fails raises the error of its kind."""
    model = f"agents fails {api} {status}"
    up.play(model, refuses(status))
    assert client.run("fails", shared, model=named(model), api=api) == expected


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_cancel_in_mid_stream(api: str, shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """Cancelling a run closes the call to the provider."""
    up.play(f"agents cancels {api}", HALF)
    assert client.run("cancel", shared, model=named(f"agents cancels {api}"), api=api) is True
    up.closed(f"agents cancels {api}")


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_an_agent_of_the_server(api: str, start: Start, client: ClientProcess, up: ScriptedModelServer) -> None:
    """The calls that `agent:chat` makes of the server's tools are shown, and the SDK does not try to run them."""
    up.play(f"agents server {api}", calls(("c1", "list_files", {})), says("Done."))
    served = start(more={"models": {"default": named(f"agents server {api}")}})
    assert client.run("tools", served, model="agent:chat", api=api, own=False) == "Done."
