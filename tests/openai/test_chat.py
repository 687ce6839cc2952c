"""Chat completions with the official Python client."""

import json
from typing import Any

import pytest
from openai import APIError, BadRequestError, InternalServerError, OpenAI, RateLimitError

from tests.chat.model_server import ScriptedModelServer
from tests.http.client import Served
from tests.http.streams import said
from tests.openai.scripts import CHAT_TOOL, TIDE, Tide, calls_function, named, thinks_and_says
from tests.upstream import Hang, Head, answers, delta, says, sse

HELLO: Any = [{"role": "user", "content": "Hello"}]


def test_whole_and_streamed(client: OpenAI, up: ScriptedModelServer) -> None:
    """Text, reasoning and usage arrive whole and in chunks, and the parameters reach the model."""
    up.play("chat", thinks_and_says("Hm. ", "Good ", "morning."))
    settings: dict[str, Any] = {
        "stop": ["END"],
        "seed": 7,
        "temperature": 0.1,
        "presence_penalty": 0.5,
        "reasoning_effort": "low",
        "response_format": {"type": "json_object"},
    }
    messages: Any = [{"role": "system", "content": "Be kind."}, *HELLO]
    whole = client.chat.completions.create(model=named("chat"), messages=messages, max_completion_tokens=50, **settings)
    choice = whole.choices[0]
    assert (choice.message.content, choice.finish_reason) == ("Good morning.", "stop")
    assert choice.message.to_dict()["reasoning_content"] == "Hm. "
    assert whole.usage is not None
    assert whole.usage.total_tokens == 12
    asked = up.asked("chat")
    assert {name: asked[name] for name in settings} == settings
    assert asked["max_tokens"] == 50
    chunks = list(
        client.chat.completions.create(
            model=named("chat"), messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
    )
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == "Good morning."
    assert "".join(delta.to_dict().get("reasoning_content", "") for delta in deltas) == "Hm. "  # type: ignore[misc]
    assert deltas[0].role == "assistant"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage


def test_typed_helper_and_structured_output(client: OpenAI, up: ScriptedModelServer) -> None:
    """The streaming helper parses the answer; `parse` sends the schema."""
    up.play("chat typed", thinks_and_says("", *TIDE))
    with client.chat.completions.stream(model=named("chat typed"), messages=HELLO, response_format=Tide) as stream:
        text = "".join(event.delta for event in stream if event.type == "content.delta")
        final = stream.get_final_completion()
    assert text == TIDE
    assert final.choices[0].message.parsed == Tide(place="Brest", hours=[6, 18])
    assert up.asked("chat typed")["response_format"]["json_schema"]["name"] == "Tide"
    parsed = client.chat.completions.parse(model=named("chat typed"), messages=HELLO, response_format=Tide)
    assert parsed.choices[0].message.parsed == Tide(place="Brest", hours=[6, 18])


@pytest.mark.parametrize("streamed", [False, True])
def test_function_tools_round_trip(streamed: bool, client: OpenAI, up: ScriptedModelServer, shared: Served) -> None:
    """The client gets the call and sends its result back with the whole history; the model sees both."""
    model = f"chat tools {streamed}"
    up.play(model, calls_function('{"ci', 'ty":"Brest"}'), says("Rain."))
    if streamed:
        with client.chat.completions.stream(model=named(model), messages=HELLO, tools=[CHAT_TOOL]) as stream:
            stream.until_done()
            first: Any = stream.get_final_completion()
    else:
        first = client.chat.completions.create(model=named(model), messages=HELLO, tools=[CHAT_TOOL])
    choice = first.choices[0]
    (call,) = choice.message.tool_calls
    assert (choice.finish_reason, call.id) == ("tool_calls", "call_1")
    assert json.loads(call.function.arguments) == {"city": "Brest"}
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": "rain"}
    raw = client.chat.completions.with_raw_response.create(
        model=named(model), messages=[*HELLO, choice.message, result], tools=[CHAT_TOOL], parallel_tool_calls=False
    )
    assert raw.parse().choices[0].message.content == "Rain."
    asked = up.asked(model, 2)
    assert [m["role"] for m in asked["messages"]] == ["user", "assistant", "tool"]
    assert asked["messages"][2]["content"] == "rain"
    assert asked["parallel_tool_calls"] is False
    shown = shared.messages(raw.headers["holdfast-session"])
    assert [m["role"] for m in shown] == ["user", "assistant", "user", "assistant"]
    assert shown[2]["parts"][0]["result"] == "rain"
    assert said(shown[3]) == "Rain."


def test_history_of_the_call_becomes_the_session(client: OpenAI, up: ScriptedModelServer, shared: Served) -> None:
    """The messages of the call become those of a session; instructions in mid-conversation are moved to its beginning
    and reported."""
    up.play("adopted", says("Yes."))
    messages: Any = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "One"},
        {"role": "assistant", "content": "Two"},
        {"role": "developer", "content": "Briefer."},
        {"role": "user", "content": [{"type": "text", "text": "Three?"}]},
    ]
    raw = client.chat.completions.with_raw_response.create(model=named("adopted"), messages=messages, user="somebody")
    assert [m["content"] for m in up.asked("adopted")["messages"]] == ["Be brief.\n\nBriefer.", "One", "Two", "Three?"]
    assert raw.headers["holdfast-ignored"] == "user, messages[3]"
    assert [said(m) for m in shared.messages(raw.headers["holdfast-session"])] == ["One", "Two", "Three?", "Yes."]


def test_messages_of_the_client_reach_the_model_as_they_are(client: OpenAI, up: ScriptedModelServer) -> None:
    """X5: neighbors of one role are not merged, and the arguments of earlier calls are not written anew."""
    up.play("as they are", says("Yes."))
    arguments = '{ "city":"Brest",  "n": 1.0 }'
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": arguments}}
    again = {**call, "id": "call_2"}
    messages: Any = [
        {"role": "user", "content": "One"},
        {"role": "user", "content": "Two"},
        {"role": "assistant", "content": "Three"},
        {"role": "assistant", "content": "Four", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
        {"role": "assistant", "content": None, "tool_calls": [again]},
        {"role": "tool", "tool_call_id": "call_2", "content": "sun"},
        {"role": "user", "content": "Five"},
        {"role": "user", "content": "Six"},
    ]
    client.chat.completions.create(model=named("as they are"), messages=messages)
    assert up.asked("as they are")["messages"] == messages


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("status", "problem", "kind"),
    [(429, "slow down", RateLimitError), (400, "bad idea", BadRequestError), (401, "no such key", InternalServerError)],
)
def test_failure_before_the_first_output_has_a_status(
    streamed: bool, status: int, problem: str, kind: type[APIError], client: OpenAI, up: ScriptedModelServer
) -> None:
    """E1: a request that the model rejects fails with a status and a reason, streamed or not. A rejected key of the
    server's is not an authentication error of the client's."""
    model = f"chat refused {status} {streamed}"
    up.play(model, answers(status, {"error": {"message": problem}}))
    with pytest.raises(kind) as refused:
        client.chat.completions.create(model=named(model), messages=HELLO, stream=streamed)
    assert refused.value.body is not None
    assert refused.value.response.headers["x-should-retry"] == "false"  # type: ignore[attr-defined]


def test_failure_after_the_first_output_is_in_the_stream(
    client: OpenAI, up: ScriptedModelServer, shared: Served
) -> None:
    """E1: the output so far is sent, then the error; the run keeps the output."""
    up.play("chat broke", [Head(), *sse(delta(content="Half"), {"error": {"message": "it broke"}}), Hang()])
    raw = client.chat.completions.with_raw_response.create(model=named("chat broke"), messages=HELLO, stream=True)
    seen: list[Any] = []
    with pytest.raises(APIError, match="it broke"):
        seen.extend(chunk.choices[0].delta.content for chunk in raw.parse())
    assert "".join(seen) == "Half"
    assert said(shared.answer(raw.headers["holdfast-session"])) == "Half"


def test_a_model_alone_has_no_memory(client: OpenAI, up: ScriptedModelServer, shared: Served) -> None:
    """Nothing is recalled for a model alone, and nothing that its client sends is remembered."""
    up.play("forgetful", says("Noted."))
    words: Any = [{"role": "user", "content": "Remember that my name is Ada."}]
    answer = client.chat.completions.with_raw_response.create(model=named("forgetful"), messages=words)
    run = shared.get(f"/api/runs/{answer.headers['holdfast-run']}")
    assert run["status"] == "complete"
    assert shared.get(f"/api/sessions/{run['session_id']}/memory")["dirty_turns"] == 0
    sent = json.dumps(up.asked("forgetful"))
    assert sent.count("Ada") == 1
