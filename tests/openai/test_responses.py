"""Responses with the official Python client."""

import json
from typing import Any

import pytest
from openai import BadRequestError, NotFoundError, OpenAI

from tests.chat.model_server import PROVIDER, ScriptedModelServer, calls
from tests.chat.questions import told
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import said
from tests.openai.conftest import client_of
from tests.openai.scripts import PNG, TIDE, TOOL, Tide, calls_function, named, thinks_and_says
from tests.upstream import Hang, Head, PauseAt, delta, says, sse


def test_text_and_reasoning(client: OpenAI, up: ScriptedModelServer) -> None:
    """A plain call returns text, reasoning and usage, and its parameters reach the model."""
    up.play("text", thinks_and_says("Hm. ", "Good ", "morning."))
    answer = client.responses.create(
        model=named("text"),
        input="Hello",
        instructions="Be kind.",
        temperature=0.5,
        top_p=0.9,
        max_output_tokens=100,
        reasoning={"effort": "low"},
        metadata={"purpose": "test"},
    )
    assert (answer.status, answer.output_text) == ("completed", "Good morning.")
    assert [item.type for item in answer.output] == ["reasoning", "message"]
    thought: Any = answer.output[0]
    assert thought.summary[0].text == "Hm. "
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (7, 5)
    assert (answer.metadata, answer.temperature, answer.instructions) == ({"purpose": "test"}, 0.5, "Be kind.")
    asked = up.asked("text")
    assert [m["content"] for m in asked["messages"]] == ["Be kind.", "Hello"]
    wanted = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 100, "reasoning_effort": "low"}
    assert {name: asked[name] for name in wanted} == wanted
    assert "tools" not in asked
    again = client.responses.retrieve(answer.id)
    assert again.to_dict() == answer.to_dict()


def test_stream_and_structured_output(client: OpenAI, up: ScriptedModelServer) -> None:
    """Events are numbered in order; the typed helper parses the answer. Schemas reach the model in the chat format."""
    up.play("stream", thinks_and_says("Hm. ", *TIDE))
    events = list(client.responses.create(model=named("stream"), input="Tides?", stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == TIDE
    with client.responses.stream(model=named("stream"), input="Tides?", text_format=Tide) as stream:
        seen = [event.type for event in stream]
        final = stream.get_final_response()
    assert final.output_parsed == Tide(place="Brest", hours=[6, 18])
    assert "response.reasoning_summary_text.delta" in seen
    form = up.asked("stream", 2)["response_format"]
    assert (form["type"], form["json_schema"]["strict"]) == ("json_schema", True)
    assert form["json_schema"]["schema"]["required"] == ["place", "hours"]
    parsed = client.responses.parse(model=named("stream"), input="Tides?", text_format=Tide)
    assert parsed.output_parsed == final.output_parsed
    client.responses.create(model=named("stream"), input="JSON", text={"format": {"type": "json_object"}})
    assert up.asked("stream", 4)["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize("way", ["previous", "sent back", "by reference"])
def test_function_tools_round_trip(way: str, client: OpenAI, up: ScriptedModelServer, shared: Served) -> None:
    """A call of the client's function completes the run; its output starts the next turn, however it is sent."""
    model = f"round trip {way}"
    up.play(model, calls_function('{"ci', 'ty":"Brest"}', thinks="Where? "), says("Rain."))
    first = client.responses.create(
        model=named(model), input="Weather?", tools=[TOOL], tool_choice={"type": "function", "name": "get_weather"}
    )
    call: Any = next(item for item in first.output if item.type == "function_call")
    assert (first.status, call.name, json.loads(call.arguments)) == ("completed", "get_weather", {"city": "Brest"})
    asked = up.asked(model)
    assert asked["tools"][0]["function"]["strict"] is True
    assert asked["tool_choice"] == {"type": "function", "function": {"name": "get_weather"}}
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
    how: dict[str, Any] = {"input": [result], "previous_response_id": first.id}
    if way == "sent back":
        how = {"input": [{"role": "user", "content": "Weather?"}, *first.output, result]}
    elif way == "by reference":
        items = [{"type": "item_reference", "id": item.id} for item in first.output]
        how = {"input": [{"role": "user", "content": "Weather?"}, *items, result]}
    second = client.responses.create(model=named(model), tools=[TOOL], **how)
    assert second.output_text == "Rain."
    messages = up.asked(model, 2)["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "tool"]
    assert messages[1]["tool_calls"][0]["id"] == messages[2]["tool_call_id"] == call.call_id
    assert json.loads(messages[1]["tool_calls"][0]["function"]["arguments"]) == {"city": "Brest"}
    assert messages[2]["content"] == "rain"
    run = shared.run(f"run_{first.id.removeprefix('resp_')}")
    assert (run["status"], run["finish_reason"]) == ("complete", "tool_calls")


def test_streamed_call_of_a_function(client: OpenAI, up: ScriptedModelServer) -> None:
    """The typed helper gets the arguments in deltas and parses them."""
    up.play("streamed call", calls_function('{"ci', 'ty":"Brest"}'))
    with client.responses.stream(model=named("streamed call"), input="Weather?", tools=[TOOL]) as stream:
        deltas = [event.delta for event in stream if event.type == "response.function_call_arguments.delta"]
        final = stream.get_final_response()
    assert "".join(deltas) == '{"city":"Brest"}'
    call: Any = final.output[0]
    assert call.parsed_arguments == {"city": "Brest"}


def test_previous_response_branches(client: OpenAI, up: ScriptedModelServer, shared: Served) -> None:
    """O2: two calls after one response are two branches below it with the same past; no message is lost."""
    up.play("branches", says("Root."), says("Left."), says("Right."), says("Leaf."))
    model = named("branches")
    root = client.responses.create(model=model, input="One", instructions="Only here.")
    left = client.responses.create(model=model, input="Two", previous_response_id=root.id)
    right = client.responses.create(model=model, input="Three", previous_response_id=root.id)
    leaf = client.responses.create(model=model, input="Four", previous_response_id=left.id)
    assert [r.output_text for r in (root, left, right, leaf)] == ["Root.", "Left.", "Right.", "Leaf."]
    assert up.asked("branches", 1)["messages"][0] == {"role": "system", "content": "Only here."}
    assert told(up.asked("branches", 3)) == [("user", "One"), ("assistant", "Root."), ("user", "Three")]
    assert [text for _, text in told(up.asked("branches", 4))] == ["One", "Root.", "Two", "Left.", "Four"]
    assert len({r.conversation.id for r in (root, left, right, leaf) if r.conversation}) == 1
    assert client.responses.retrieve(right.id).output_text == "Right."
    sid = "ses_" + str(root.conversation and root.conversation.id.removeprefix("conv_"))
    assert [said(m) for m in shared.messages(sid)] == ["One", "Root.", "Two", "Left.", "Four", "Leaf."]
    siblings = shared.messages(sid)[2]["siblings"]
    assert len(siblings) == 2


def test_branches_of_one_response_at_the_same_time(client: OpenAI, up: ScriptedModelServer) -> None:
    """O2: a branch does not wait for another one that is being answered, and has the same past."""
    held = [Head(), *sse(delta(content="Left")), PauseAt("beside"), *says(".")[1:]]
    up.play("beside", says("Root."), held, says("Right."))
    model = named("beside")
    root = client.responses.create(model=model, input="One")
    left = client.responses.create(model=model, input="Two", previous_response_id=root.id, background=True)
    up.reached("beside")
    with pytest.raises(BadRequestError, match="still in progress"):
        client.responses.create(model=model, input="Too soon", previous_response_id=left.id)
    right = client.responses.create(model=model, input="Three", previous_response_id=root.id)
    assert right.output_text == "Right."
    assert told(up.asked("beside", 3)) == [("user", "One"), ("assistant", "Root."), ("user", "Three")]
    up.let("beside")
    ended = list(client.responses.retrieve(left.id, stream=True))[-1]
    assert ended.type == "response.completed"
    assert ended.response.output_text == "Left."


def test_items_of_the_client_reach_the_model_as_they_are(client: OpenAI, up: ScriptedModelServer) -> None:
    """X5: two user messages are two, also at the beginning of a conversation, and calls made in turn stay apart."""
    up.play("items", says("Yes."))
    conversation = client.conversations.create()
    call: Any = {"type": "function_call", "call_id": "a", "name": "weather", "arguments": '{ "city": 1 }'}
    items: Any = [
        {"role": "user", "content": "One"},
        {"role": "user", "content": "Two"},
        {"type": "message", "role": "assistant", "content": "Three"},
        {"type": "message", "role": "assistant", "content": "Four"},
        call,
        {"type": "function_call_output", "call_id": "a", "output": "rain"},
        {**call, "call_id": "b"},
        {"type": "function_call_output", "call_id": "b", "output": "sun"},
    ]
    answer = client.responses.create(model=named("items"), input=items, conversation=conversation.id)
    assert answer.conversation is not None
    assert answer.conversation.id == conversation.id
    asked = up.asked("items")["messages"]
    assert [m["role"] for m in asked] == ["user", "user", *["assistant"] * 2, "tool", "assistant", "tool"]
    assert [m["content"] for m in asked] == ["One", "Two", "Three", "Four", "rain", None, "sun"]
    assert asked[3]["tool_calls"][0]["function"]["arguments"] == call["arguments"]


def test_conversation_continues_at_its_head(client: OpenAI, up: ScriptedModelServer) -> None:
    """A conversation is a session: each response has the earlier ones as its past, and the client keeps only the id."""
    up.play("conversation", says("One."), says("Two."))
    conversation = client.conversations.create(metadata={"topic": "numbers"})
    for text in ("First", "Second"):
        answer = client.responses.create(model=named("conversation"), input=text, conversation=conversation.id)
        assert answer.conversation is not None
        assert answer.conversation.id == conversation.id
    assert [text for _, text in told(up.asked("conversation", 2))] == ["First", "One.", "Second"]
    assert client.conversations.retrieve(conversation.id).metadata == {"topic": "numbers"}
    client.conversations.delete(conversation.id)
    with pytest.raises(NotFoundError):
        client.conversations.retrieve(conversation.id)


def test_input_items_and_deleting(client: OpenAI, up: ScriptedModelServer) -> None:
    """Input items can be listed. A deleted response is gone; the responses below it are not."""
    up.play("deleting", says("One."), says("Two."))
    first = client.responses.create(model=named("deleting"), input="First")
    second = client.responses.create(model=named("deleting"), input="Second", previous_response_id=first.id)
    shown: Any = list(client.responses.input_items.list(second.id, order="asc", limit=2))
    assert [item.content[0].text for item in shown] == ["First", "One.", "Second"]
    client.responses.delete(first.id)
    with pytest.raises(NotFoundError):
        client.responses.retrieve(first.id)
    assert client.responses.retrieve(second.id).output_text == "Two."
    client.responses.delete(second.id)
    with pytest.raises(NotFoundError):
        client.responses.retrieve(second.id)


def test_images_and_files(start: Start, up: ScriptedModelServer) -> None:
    """Images and files in the call reach a model that reads them."""
    provider = {"base_url": up.url, "models": ["sees"], "abilities": ["images", "documents"]}
    served = start(more={"providers": {PROVIDER: provider}})
    up.play("sees", says("A pixel."))
    with client_of(served) as client:
        content: Any = [
            {"type": "input_text", "text": "What is this?"},
            {"type": "input_image", "image_url": PNG, "detail": "auto"},
            {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,d29yZHM="},
        ]
        answer = client.responses.create(model=named("sees"), input=[{"role": "user", "content": content}])
        items: Any = client.responses.input_items.list(answer.id).data
    assert [part.type for part in items[0].content] == ["input_text", "input_image", "input_file"]
    sent = up.asked("sees")["messages"][0]["content"]
    assert [part["type"] for part in sent] == ["text", "image_url", "text"]
    assert sent[1]["image_url"]["url"] == PNG
    assert "words" in sent[2]["text"]


def test_agent_of_the_server(start: Start, up: ScriptedModelServer) -> None:
    """`agent:chat` asks the chat agent; the calls of its tools are shown as calls of the server's."""
    served = start(more={"tools": {"write_file": "allow"}, "models": {"default": named("agent")}})
    up.play("agent", calls(("c1", "write_file", {"path": "a.txt", "content": "1"}), text="First. "), says("Done."))
    with client_of(served) as client:
        events = list(client.responses.create(model="agent:chat", input="Write", stream=True))
        last: Any = events[-1]
        assert [item.type for item in last.response.output] == ["message", "mcp_call", "message"]
        assert last.response.output[1].name == "write_file"
        assert client.responses.retrieve(last.response.id).to_dict() == last.response.to_dict()
        with pytest.raises(BadRequestError) as refused:
            client.responses.create(model="agent:chat", input="Hi", tools=[TOOL])
        assert refused.value.param == "tools"


def test_length_limit_and_failure(client: OpenAI, up: ScriptedModelServer) -> None:
    """An answer that reached its limit is incomplete; one whose model failed is failed, with the reason."""
    up.play("too long", says("Once upon", finish="length"))
    answer = client.responses.create(model=named("too long"), input="A story", max_output_tokens=16)
    assert answer.status == "incomplete"
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"
    up.play("broken off", [Head(), *sse(delta(content="Half")), *sse({"error": {"message": "it broke"}}), Hang()])
    failed = client.responses.create(model=named("broken off"), input="A story")
    assert (failed.status, failed.output_text) == ("failed", "Half")
    assert failed.error is not None
    assert "it broke" in failed.error.message
