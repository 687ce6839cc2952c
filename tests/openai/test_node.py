"""Node clients: the official one, and the Vercel AI SDK with its OpenAI provider."""

import json
from typing import Any

import pytest

from tests.chat.model_server import ScriptedModelServer
from tests.http.client import Served
from tests.http.conftest import Start
from tests.openai import node_clients
from tests.openai.scripts import CHAT_TOOL, TIDE, TOOL, calls_function, named, thinks_and_says
from tests.upstream import Hang, Head, PauseAt, Script, delta, says, sse

HALF: Script = [Head(), *sse(delta(content="Half an ")), Hang()]


@pytest.fixture(scope="session", autouse=True)
def packages() -> None:
    missing = node_clients.fetch()
    if missing is not None:
        print(f"\n{missing}")
        pytest.skip(missing)


def ask(served: Served, scenario: str, **argument: Any) -> Any:
    return node_clients.run(served, "openai.mjs", scenario, **argument)


def test_text_and_reasoning(shared: Served, up: ScriptedModelServer) -> None:
    """Text and reasoning, whole and streamed, with the events in order."""
    up.play("node text", thinks_and_says("Hm. ", "Good ", "morning."))
    found = ask(shared, "text", model=named("node text"))
    assert (found["status"], found["text"]) == ("completed", "Good morning.")
    assert found["kinds"] == ["reasoning", "message"]
    assert [event["sequence_number"] for event in found["events"]] == list(range(len(found["events"])))
    assert found["events"][-1]["type"] == "response.completed"


def test_structured_output_and_the_typed_helper(shared: Served, up: ScriptedModelServer) -> None:
    """`responses.stream` and `responses.parse` return what the schema describes."""
    up.play("node structured", thinks_and_says("", *TIDE))
    found = ask(shared, "structured", model=named("node structured"))
    assert found == {"streamed": json.loads(TIDE), "parsed": json.loads(TIDE)}


@pytest.mark.parametrize("scenario", ["tools", "chat"])
def test_function_tools_round_trip(scenario: str, shared: Served, up: ScriptedModelServer) -> None:
    """Functions are called and answered in responses, and in chat completions with the streaming helper."""
    model = f"node {scenario}"
    up.play(model, calls_function('{"ci', 'ty":"Brest"}'), says("Rain."))
    found = ask(shared, scenario, model=named(model), tool=TOOL, chatTool=CHAT_TOOL)
    assert (found["args"], found["text"]) == ('{"city":"Brest"}', "Rain.")
    assert [m["role"] for m in up.asked(model, 2)["messages"]] == ["user", "assistant", "tool"]


@pytest.mark.parametrize("killed", [False, True])
def test_leave_and_resume(killed: bool, start: Start, shared: Served, up: ScriptedModelServer) -> None:
    """X1 L5: the program exits in mid-stream; another one resumes at its number without a gap or a duplicate, also if
    the server was killed in between."""
    model = f"node leaves {killed}"
    rest = [Hang()] if killed else [PauseAt(model), *says("two.")[1:]]
    up.play(model, [Head(), *sse(delta(content="One ")), *rest], says("two."))
    served = start(auto_continue=True) if killed else shared
    seen = ask(served, "leave", model=named(model))
    if killed:
        served.kill()
        served = start(auto_continue=True)
    else:
        up.let(model)
    rid = seen[0]["response"]["id"]
    resumed = ask(served, "resume", id=rid, after=seen[-1]["sequence_number"])
    assert seen + resumed == ask(served, "resume", id=rid)
    assert resumed[-1]["response"]["output"][0]["content"][0]["text"] == "One two."


def test_cancel_keeps_the_partial(shared: Served, up: ScriptedModelServer) -> None:
    """C2: the response to the cancel has the output so far."""
    up.play("node cancel", HALF)
    seen = ask(shared, "leave", model=named("node cancel"))
    assert ask(shared, "cancel", id=seen[0]["response"]["id"]) == {"status": "cancelled", "text": "Half an "}
    up.closed("node cancel")


def test_closing_a_plain_stream_closes_the_upstream(shared: Served, up: ScriptedModelServer) -> None:
    """L3: breaking out of the loop closes the connection."""
    up.play("node close", HALF)
    assert ask(shared, "close", model=named("node close")) is True
    up.closed("node close")


def test_errors(shared: Served) -> None:
    """Unknown ids and wrong types raise the client's error classes, with the parameter."""
    missing, wrong, hot = ask(shared, "errors", model=named("default"))
    assert (missing["name"], missing["status"]) == ("NotFoundError", 404)
    assert (wrong["name"], wrong["param"]) == ("BadRequestError", "input")
    assert (hot["name"], hot["param"]) == ("BadRequestError", "temperature")


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_vercel_text(api: str, shared: Served, up: ScriptedModelServer) -> None:
    """The AI SDK streams text, reasoning and usage, and generates a whole text."""
    model = f"vercel text {api}"
    up.play(model, thinks_and_says("Hm. ", "Good ", "morning."))
    found = node_clients.run(shared, "vercel.mjs", "text", model=named(model), api=api)
    assert (found["text"], found["whole"], found["finish"]) == ("Good morning.", "Good morning.", "stop")
    assert found["usage"]["outputTokens"] == 5
    if api == "responses":
        assert found["reasoning"] == "Hm. "


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_vercel_tools(api: str, shared: Served, up: ScriptedModelServer) -> None:
    """The AI SDK runs its tool and sends the result back; in responses it refers to the stored call."""
    model = f"vercel tools {api}"
    up.play(model, calls_function('{"ci', 'ty":"Brest"}'), says("Rain."))
    found = node_clients.run(shared, "vercel.mjs", "tools", model=named(model), api=api)
    calls = [["get_weather", {"city": "Brest"}]]
    assert found == {"text": "Rain.", "calls": calls, "results": ["rain in Brest"]}
    messages = up.asked(model, 2)["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "tool"]
    assert "rain in Brest" in messages[2]["content"]


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_vercel_structured(api: str, shared: Served, up: ScriptedModelServer) -> None:
    """The AI SDK's structured output matches its schema."""
    model = f"vercel structured {api}"
    up.play(model, says(TIDE))
    assert node_clients.run(shared, "vercel.mjs", "structured", model=named(model), api=api) == json.loads(TIDE)
    assert up.asked(model)["response_format"]["type"] == "json_schema"
