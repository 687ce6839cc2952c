"""What programs written for OpenAI's own server rely on."""

import json
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from openai import APIStatusError, BadRequestError, NotFoundError, OpenAI

from tests.chat.model_server import ScriptedModelServer
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import until
from tests.openai.conftest import client_of
from tests.openai.scripts import PNG, calls_function, named
from tests.upstream import End, Head, answers, delta, says, sse

FUNCTION: Any = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}


def test_a_request_of_codex_is_accepted(client: OpenAI, up: ScriptedModelServer) -> None:
    """Its metadata and OpenAI's hosted tools are ignored and reported; functions in a namespace reach the model under a
    flat name, and their calls come back under both names."""
    script = calls_function('{"city": 1}', name="docs__weather")
    up.play("codex", script, script, says("Rain."))
    tools: Any = [
        FUNCTION,
        {"type": "namespace", "name": "docs", "description": "Docs.", "tools": [FUNCTION]},
        {"type": "web_search", "external_web_access": False},
    ]
    how: Any = {"tools": tools, "store": False, "extra_body": {"client_metadata": {"x": "y"}}}
    answer = client.responses.create(model=named("codex"), input="Hello", **how)
    assert [tool["function"]["name"] for tool in up.asked("codex")["tools"]] == ["weather", "docs__weather"]
    assert answer.to_dict()["holdfast"]["ignored"] == ["client_metadata", "tools[2]"]
    call: Any = answer.output[0].to_dict()
    assert (call["type"], call["name"], call["namespace"]) == ("function_call", "weather", "docs")
    events = list(client.responses.create(model=named("codex"), input="Hello", stream=True, **how))
    done: Any = next(event for event in events if event.type == "response.output_item.done").to_dict()
    assert (done["item"]["name"], done["item"]["namespace"]) == ("weather", "docs")
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "rain"}
    items: Any = [{"role": "user", "content": "Hello"}, call, result]
    assert client.responses.create(model=named("codex"), input=items, **how).output_text == "Rain."
    assert up.asked("codex", 3)["messages"][1]["tool_calls"][0]["function"]["name"] == "docs__weather"


@pytest.mark.parametrize("streamed", [False, True])
def test_a_custom_tool_takes_free_text(streamed: bool, client: OpenAI, up: ScriptedModelServer) -> None:
    """A custom tool, here among the input and in a namespace as Codex sends it, reaches the model as a function with
    one text; its call and its output are those of a custom tool again, and the replay has the same items."""
    model = f"custom {streamed}"
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: WORD"}
    custom = {"type": "custom", "name": "exec", "description": "Runs.", "format": grammar}
    tools = {"type": "additional_tools", "tools": [{"type": "namespace", "name": "functions", "tools": [custom]}]}
    message = {"type": "message", "role": "user", "content": "Go"}
    up.play(model, calls_function('{"inp', 'ut":"echo \\"a\\""}', name="functions__exec"), says("Done."))
    how: Any = {"model": named(model), "input": [tools, message], "extra_body": {"reasoning": {"context": "all_turns"}}}
    if streamed:
        events: list[Any] = [event.model_dump() for event in client.responses.create(stream=True, **how)]
        kinds = [event["type"] for event in events if "custom" in event["type"]]
        assert kinds == ["response.custom_tool_call_input.delta", "response.custom_tool_call_input.done"]
        assert next(event for event in events if event["type"] == kinds[0])["delta"] == 'echo "a"'
        first = events[-1]["response"]
    else:
        first = client.responses.create(**how).model_dump()
    (call,) = first["output"]
    assert (call["type"], call["name"], call["namespace"]) == ("custom_tool_call", "exec", "functions")
    assert (call["input"], call["status"]) == ('echo "a"', "completed")
    assert client.responses.retrieve(first["id"]).model_dump()["output"] == [call]
    (offered,) = up.asked(model)["tools"]
    assert offered["function"]["name"] == "functions__exec"
    assert "start: WORD" in offered["function"]["description"]
    content = [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": PNG}]
    output = {"type": "custom_tool_call_output", "call_id": "call_1", "output": content}
    again: Any = {**how, "input": [tools, message, call, output]}
    second = client.responses.create(**again)
    assert second.output_text == "Done."
    assert second.model_dump()["holdfast"]["ignored"] == ["reasoning.context", "input[3].output[1]"]
    _, called, answered = up.asked(model, 2)["messages"]
    assert json.loads(called["tool_calls"][0]["function"]["arguments"]) == {"input": 'echo "a"'}
    assert answered["content"] == "a[An image]"


@pytest.mark.parametrize("kind", ["function", "custom"])
@pytest.mark.parametrize("streamed", [False, True])
def test_deeply_nested_arguments_break_no_response(
    streamed: bool, kind: str, client: OpenAI, up: ScriptedModelServer
) -> None:
    """E1: the client gets what the model wrote, can read it again, and goes on with the next turn."""
    model = f"nested {kind} {streamed}"
    arguments = '{"input":' + "[" * 20_000 + "]" * 20_000 + "}"
    up.play(model, calls_function(arguments), says("Done."))
    tool: Any = {"type": kind, "name": "get_weather", **({} if kind == "custom" else {"parameters": {}})}
    how: Any = {"model": named(model), "tools": [tool]}
    if streamed:
        events: list[Any] = [event.model_dump() for event in client.responses.create(input="Go", stream=True, **how)]
        first = events[-1]["response"]
    else:
        first = client.responses.create(input="Go", **how).model_dump()
    (call,) = first["output"]
    assert call["input" if kind == "custom" else "arguments"] == arguments
    assert client.responses.retrieve(first["id"]).model_dump()["output"] == [call]
    result: Any = {"type": f"{call['type']}_output", "call_id": call["call_id"], "output": "no"}
    second = client.responses.create(input=[result], previous_response_id=first["id"], **how)
    assert second.output_text == "Done."


@pytest.mark.parametrize("streamed", [False, True])
def test_a_response_that_fails_before_output_has_an_error_status(
    streamed: bool, client: OpenAI, up: ScriptedModelServer
) -> None:
    """E1: clients raise an error instead of showing an empty response; a background response reports its failure."""
    model = f"failing {streamed}"
    up.play(model, answers(400, {"error": {"message": "bad idea"}}))
    with pytest.raises(APIStatusError) as failed:
        client.responses.create(model=named(model), input="Hello", stream=streamed)
    assert failed.value.status_code == 400
    assert "bad idea" in failed.value.message
    again = client.responses.create(model=named(model), input="Hello", background=True, stream=True)
    final: Any = list(again)[-1]
    assert final.type == "response.failed"
    assert final.response.error.to_dict()["type"] == "invalid_request_error"


def test_cached_and_reasoning_tokens_are_counted(client: OpenAI, up: ScriptedModelServer, shared: Served) -> None:
    """O3: the details of the provider's usage reach the client of either call, and the run."""
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    up.play(
        "usage", [Head(), *sse(delta(content="Hi.", finish="stop"), {"choices": [], "usage": usage}, "[DONE]"), End()]
    )
    response = client.responses.create(model=named("usage"), input="Hello")
    assert response.usage is not None
    assert response.usage.input_tokens_details.cached_tokens == 8
    assert response.usage.output_tokens_details.reasoning_tokens == 5
    raw = client.chat.completions.with_raw_response.create(
        model=named("usage"), messages=[{"role": "user", "content": "Hello"}]
    )
    chat: Any = raw.parse().usage
    assert (chat.prompt_tokens_details.cached_tokens, chat.completion_tokens_details.reasoning_tokens) == (8, 5)
    run = shared.run(raw.headers["holdfast-run"])
    assert (run["usage"]["cached_tokens"], run["usage"]["reasoning_tokens"]) == (8, 5)


def test_a_model_is_found_by_its_short_name(client: OpenAI) -> None:
    """A name that calls accept can be retrieved."""
    listed = next(model for model in client.models.list() if "/" in model.id)
    short = listed.id.partition("/")[2]
    assert client.models.retrieve(short).id == listed.id


def test_an_unknown_address_says_what_there_is(shared: Served) -> None:
    """A wrong path or method is an error in OpenAI's shape that lists the calls."""
    for method, path in (("GET", "/v1/engines"), ("DELETE", "/v1/models")):
        found = httpx.request(method, shared.url + path)
        assert found.status_code in (404, 405)
        assert "chat/completions" in found.json()["error"]["message"]


def test_embeddings_are_those_of_the_provider(client: OpenAI, up: ScriptedModelServer) -> None:
    """The request is passed on with the model's own name, and the response comes back as it is."""
    data = [{"object": "embedding", "index": 0, "embedding": [0.25, -1.0]}]
    found = {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    up.play("embed", answers(200, found))
    answer = client.embeddings.create(model=named("embed"), input=["Hello"], encoding_format="float", dimensions=2)
    assert answer.data[0].embedding == [0.25, -1.0]
    asked = up.asked("embed")
    assert (asked["input"], asked["dimensions"], asked["encoding_format"]) == (["Hello"], 2, "float")
    up.play("embed fails", answers(400, {"error": {"message": "no vectors here"}}))
    with pytest.raises(NotFoundError) as unknown:
        client.embeddings.create(model="openai/none", input="Hello", encoding_format="float")
    assert unknown.value.code == "model_not_found"
    with pytest.raises(APIStatusError) as failed:
        client.embeddings.create(model=named("embed fails"), input="Hello", encoding_format="float")
    assert failed.value.status_code == 400
    assert "no vectors here" in failed.value.message


def test_a_head_request_is_a_get_without_a_body(shared: Served) -> None:
    """Programs that look whether a server is there get the status; streams have no head alone."""
    for path in ("/v1/models", "/api/sessions"):
        found = httpx.head(shared.url + path)
        assert (found.status_code, found.content) == (200, b"")
        assert int(found.headers["content-length"]) > 0
    assert httpx.head(f"{shared.url}/api/events").status_code == 405


def test_a_conversation_has_items_and_metadata(client: OpenAI, up: ScriptedModelServer) -> None:
    """Items are added without an answer, listed and found; the model is shown them; the metadata can change."""
    up.play("items of conversation", says("Three."))
    first: Any = {"type": "message", "role": "user", "content": "One"}
    conversation = client.conversations.create(items=[first], metadata={"topic": "a"})
    added = client.conversations.items.create(
        conversation.id, items=[{"type": "message", "role": "assistant", "content": "Two"}]
    )
    assert [item.type for item in added.data] == ["message"]
    answer = client.responses.create(model=named("items of conversation"), input="And?", conversation=conversation.id)
    assert answer.output_text == "Three."
    assert [m["content"] for m in up.asked("items of conversation")["messages"]] == ["One", "Two", "And?"]
    listed: list[Any] = list(client.conversations.items.list(conversation.id, order="asc"))
    assert [item.content[0].text for item in listed] == ["One", "Two", "And?", "Three."]
    found: Any = client.conversations.items.retrieve(listed[1].id, conversation_id=conversation.id)
    assert found.content[0].text == "Two"
    assert client.conversations.update(conversation.id, metadata={"topic": "b"}).metadata == {"topic": "b"}
    assert client.conversations.retrieve(conversation.id).metadata == {"topic": "b"}
    with pytest.raises(NotFoundError):
        client.conversations.items.retrieve("msg_none", conversation_id=conversation.id)


def test_input_tokens_are_estimated(client: OpenAI) -> None:
    """A longer input counts more, and so does the conversation before it."""
    short = client.responses.input_tokens.count(model="any", input="Hello").input_tokens
    long = client.responses.input_tokens.count(model="any", input="x" * 4000).input_tokens
    assert 0 < short < 1000 < long
    before = client.responses.create(model=named("counted"), input="y" * 4000)
    assert client.responses.input_tokens.count(input="Hello", previous_response_id=before.id).input_tokens > 1000


def test_completions_are_stored(client: OpenAI, up: ScriptedModelServer) -> None:
    """A completion can be retrieved, listed with its messages, and erased; a response is not one."""
    up.play("stored", says("Kept."))
    made = client.chat.completions.create(model=named("stored"), messages=[{"role": "user", "content": "Hello"}])
    kept = client.chat.completions.retrieve(made.id)
    assert (kept.id, kept.choices, kept.usage) == (made.id, made.choices, made.usage)
    assert made.id in listed(client, "stored", [made.id])
    assert len(client.chat.completions.messages.list(made.id).data) == 1
    response = client.responses.create(model=named("stored"), input="Hello")
    with pytest.raises(NotFoundError):
        client.chat.completions.retrieve(response.id)
    client.chat.completions.delete(made.id)
    with pytest.raises(NotFoundError):
        client.chat.completions.retrieve(made.id)


def listed(client: OpenAI, model: str, made: Sequence[str]) -> list[str]:
    """The completions of a model, oldest first, once these are among them: the last runs may still be settling."""
    return until(
        lambda: [each.id for each in client.chat.completions.list(model=named(model), order="asc")],
        lambda found: set(made) <= set(found),
    )


def test_stored_completions_are_paged_in_both_orders(client: OpenAI, up: ScriptedModelServer) -> None:
    """A page has so many, whatever other runs are between them; runs of other models and responses are not listed."""
    up.play("paged", *[says("x")] * 8)
    up.play("paged more", says("x"))
    made = []
    for n in range(5):
        asked: Any = {"role": "user", "content": f"Hello {n}"}
        tool: Any = {"type": "function", "function": {"name": "background", "parameters": {"background": {}}}}
        made.append(client.chat.completions.create(model=named("paged"), messages=[asked], tools=[tool]).id)
        if n < 3:
            client.responses.create(model=named("paged"), input="Hello")
    client.chat.completions.create(model=named("paged more"), messages=[{"role": "user", "content": "Hello"}])
    assert listed(client, "paged", made) == made
    for order, expected in (("asc", made), ("desc", made[::-1])):
        query: Any = {"model": named("paged"), "order": order, "limit": 2}
        assert [each.id for each in client.chat.completions.list(**query).data] == expected[:2]
        assert [each.id for each in client.chat.completions.list(**query)] == expected
    assert len(client.chat.completions.list(limit=2).data) == 2
    for after in ("chatcmpl-none", client.responses.create(model=named("paged"), input="Hello").id):
        with pytest.raises(BadRequestError):
            client.chat.completions.list(after=after)


def test_completions_are_listed_whatever_their_settings_contain(client: OpenAI, up: ScriptedModelServer) -> None:
    """The names and values of a client's schema are no facts about its completion."""
    up.play("listed", *[says("{}")] * 2)
    other = named("not listed")
    of_response = {"x": {"a": 1, "background": False, "store": True}}
    of_other = {"openai": {"model": other, "ignored": []}}
    made = []
    for inner in (of_response, of_other):
        schema: Any = {"type": "object", "properties": inner}
        answer: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        asked: Any = [{"role": "user", "content": "Hello"}]
        made.append(client.chat.completions.create(model=named("listed"), messages=asked, response_format=answer).id)
    assert listed(client, "listed", made) == made
    assert list(client.chat.completions.list(model=other)) == []


def test_the_messages_of_a_completion_are_chat_messages(client: OpenAI, up: ScriptedModelServer) -> None:
    """They are listed in the format in which they were sent, with the calls and results of tools."""
    up.play("stored messages", says("Rain."))
    called = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    sent: Any = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        {"role": "user", "content": "So?"},
    ]
    made = client.chat.completions.create(model=named("stored messages"), messages=sent)
    listed = client.chat.completions.messages.list(made.id).data
    assert [{k: v for k, v in message.to_dict().items() if k != "id"} for message in listed] == sent
    rest = client.chat.completions.messages.list(made.id, after=listed[1].id, limit=1).data
    assert [message.id for message in rest] == [listed[2].id]


def test_an_unknown_place_in_a_list_is_refused(client: OpenAI) -> None:
    """A client that pages from a deleted completion is told, instead of beginning again."""
    with pytest.raises(APIStatusError) as refused:
        client.chat.completions.list(after="chatcmpl-none")
    error: Any = refused.value.body
    assert (refused.value.status_code, error["param"]) == (400, "after")


def test_a_refused_conversation_leaves_nothing(start: Start) -> None:
    """No empty chat remains, and the error names the field that was sent."""
    served = start()
    image: Any = {"type": "input_image", "file_id": "file_none"}
    item: Any = {"type": "message", "role": "user", "content": [image]}
    with client_of(served) as client, pytest.raises(APIStatusError) as refused:
        client.conversations.create(items=[item])
    error: Any = refused.value.body
    assert error["param"] == "items[0].content[0].file_id"
    assert served.get("/api/sessions")["items"] == []


def test_an_image_by_url_is_fetched_only_if_allowed(start: Start, up: ScriptedModelServer, client: OpenAI) -> None:
    """By default a URL is refused; with `fetch_urls` it is fetched, but never from this machine."""
    image: Any = {"type": "image_url", "image_url": {"url": f"{up.url}/image.png"}}
    messages: Any = [{"role": "user", "content": [image]}]
    with pytest.raises(APIStatusError) as refused:
        client.chat.completions.create(model=named("image"), messages=messages)
    assert refused.value.status_code == 400
    assert "fetch_urls" in refused.value.message
    with client_of(start(more={"fetch_urls": True})) as fetching, pytest.raises(APIStatusError) as unreachable:
        fetching.chat.completions.create(model=named("image"), messages=messages)
    assert unreachable.value.status_code == 400
    assert "could not be fetched" in unreachable.value.message
