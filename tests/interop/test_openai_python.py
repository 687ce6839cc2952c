"""openai (Python): both APIs, background responses and resuming."""

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
    with ClientProcess("openai", "openai_client.py") as started:
        yield started


def test_plain_and_streamed_answers(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """Both APIs answer whole and streamed, through the typed helpers too."""
    up.play("py text", says("Good ", "morning."))
    assert client.run("plain", shared, model=named("py text")) == ["Good morning."] * 4


@pytest.mark.parametrize("scenario", ["tools", "response_tools"])
def test_functions_round_trip(scenario: str, shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """A function is called, and its result reaches the model."""
    up.play(f"py {scenario}", *WEATHER)
    assert client.run(scenario, shared, model=named(f"py {scenario}")) == ['{"city":"Brest"}', "Rain."]
    assert [m["role"] for m in up.asked(f"py {scenario}", 2)["messages"]] == ["user", "assistant", "tool"]


def test_structured_output(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """`parse` of both APIs returns the model that the schema describes."""
    up.play("py structured", says(TIDE))
    assert client.run("structured", shared, model=named("py structured")) == [TIDE_FIELDS] * 2


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (429, ["RateLimitError", 429]),
        (400, ["BadRequestError", 400]),
        (401, ["InternalServerError", 502]),
        (500, ["InternalServerError", 503]),
    ],
)
def test_failing_upstream(
    status: int, expected: list[Any], shared: Served, client: ClientProcess, up: ScriptedModelServer
) -> None:
    """A provider that fails raises the error of its kind, streamed or not. Its 401 is a 502: the rejected key is the
    server's."""
    up.play(f"py fails {status}", refuses(status))
    assert client.run("failures", shared, model=named(f"py fails {status}")) == [expected] * 4


def test_refusals(shared: Served, client: ClientProcess) -> None:
    """Mistakes of the caller raise the client's classes."""
    found = client.run("refusals", shared, model=named("default"))
    assert found == [["NotFoundError", 404], ["BadRequestError", 400], ["NotFoundError", 404]]


def test_leaving_a_stream_closes_the_upstream(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """Closing a plain stream cancels the call to the provider."""
    up.play("py leaves", HALF)
    assert client.run("leave", shared, model=named("py leaves")) == "One "
    up.closed("py leaves")


def test_background_survives_kill(start: Start, client: ClientProcess, up: ScriptedModelServer) -> None:
    """A background response whose server is killed with -9 continues, and its stream resumes without a gap."""
    up.play("py background", HALF, says("two."))
    served = start(auto_continue=True)
    response, number, text = client.run("begin", served, model=named("py background"))
    served.kill()
    again = start(auto_continue=True)
    numbers, rest, status, whole = client.run("resume", again, response=response, after=number)
    assert numbers == list(range(number + 1, number + 1 + len(numbers)))
    assert (text + rest, status, whole) == ("One two.", "completed", "One two.")


def test_cancel_in_mid_stream(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """Cancelling ends the stream, keeps the output and closes the call to the provider."""
    up.play("py cancels", HALF)
    assert client.run("cancel", shared, model=named("py cancels")) == ["response.incomplete", "cancelled", "One "]
    up.closed("py cancels")


def test_an_agent_of_the_server_asks(start: Start, client: ClientProcess, up: ScriptedModelServer) -> None:
    """A tool of `agent:chat` that needs approval completes the response; the client's answer continues it."""
    up.play("py approval", calls(("c1", "write_file", {"path": "a.txt", "content": "1"})), says("Done."))
    served = start(more={"models": {"default": named("py approval")}})
    assert client.run("approval", served) == ["mcp_approval_request", "write_file", "completed", "Done."]
