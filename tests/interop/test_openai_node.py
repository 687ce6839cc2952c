"""openai (Node): both APIs, background responses and resuming."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.chat.model_server import ScriptedModelServer
from tests.http.client import Served
from tests.http.conftest import Start
from tests.interop.environments import ClientProcess
from tests.interop.scripts import HALF, TIDE_FIELDS, WEATHER, refuses
from tests.openai.scripts import TIDE, named
from tests.upstream import says

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def client() -> Iterator[ClientProcess]:
    with ClientProcess("openai-node", "openai_client.mjs") as started:
        yield started


def test_plain_and_streamed_answers(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """Both APIs answer whole and streamed, through the typed helpers too."""
    up.play("js text", says("Good ", "morning."))
    assert client.run("plain", shared, model=named("js text")) == ["Good morning."] * 4


def test_tool_runner(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """The client's own loop over streamed chat completions runs the tool and sends its result."""
    up.play("js tools", *WEATHER)
    assert client.run("tools", shared, model=named("js tools")) == "Rain."
    assert up.asked("js tools", 2)["messages"][-1]["content"] == "rain in Brest"


def test_functions_of_responses(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """A function is called, and its result reaches the model."""
    up.play("js response tools", *WEATHER)
    found = client.run("responseTools", shared, model=named("js response tools"))
    assert found == ['{"city":"Brest"}', "Rain."]


def test_structured_output(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """`parse` of both APIs returns what the schema describes."""
    up.play("js structured", says(TIDE))
    assert client.run("structured", shared, model=named("js structured")) == [TIDE_FIELDS] * 2


@pytest.mark.parametrize(
    ("status", "expected"),
    [(429, ["RateLimitError", 429]), (400, ["BadRequestError", 400]), (500, ["InternalServerError", 503])],
)
def test_failing_upstream(
    status: int, expected: list[Any], shared: Served, client: ClientProcess, up: ScriptedModelServer
) -> None:
    """A provider that fails throws the error of its kind, streamed or not."""
    up.play(f"js fails {status}", refuses(status))
    assert client.run("failures", shared, model=named(f"js fails {status}")) == [expected] * 4


def test_leaving_a_stream_closes_the_upstream(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """Breaking out of a plain stream cancels the call to the provider."""
    up.play("js leaves", HALF)
    assert client.run("leave", shared, model=named("js leaves")) == "One "
    up.closed("js leaves")


def test_background_survives_kill(start: Start, client: ClientProcess, up: ScriptedModelServer) -> None:
    """A background response whose server is killed with -9 continues, and its stream resumes without a gap."""
    up.play("js background", HALF, says("two."))
    served = start(auto_continue=True)
    response, number, text = client.run("begin", served, model=named("js background"))
    served.kill()
    again = start(auto_continue=True)
    numbers, rest, status, whole = client.run("resume", again, response=response, after=number)
    assert numbers == list(range(number + 1, number + 1 + len(numbers)))
    assert (text + rest, status, whole) == ("One two.", "completed", "One two.")


def test_cancel_in_mid_stream(shared: Served, client: ClientProcess, up: ScriptedModelServer) -> None:
    """Cancelling ends the stream, keeps the output and closes the call to the provider."""
    up.play("js cancels", HALF)
    expected = ["response.incomplete", "cancelled", "One "]
    assert client.run("cancel", shared, model=named("js cancels")) == expected
    up.closed("js cancels")
