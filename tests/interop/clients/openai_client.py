"""The official Python client."""

import threading

import openai
from pydantic import BaseModel
from scenarios import Scenarios, told

scenarios = Scenarios(lambda url: openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=30))
TOOL = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
CHAT_TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": TOOL["parameters"]}}
USER = {"role": "user", "content": "Hello"}


class Tide(BaseModel):
    place: str
    hours: list[int]


@scenarios.add
def plain(client, model):
    """Whole and streamed answers of both APIs."""
    chat = client.chat.completions.create(model=model, messages=[USER])
    chunks = client.chat.completions.create(model=model, messages=[USER], stream=True)
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    response = client.responses.create(model=model, input="Hello")
    with client.responses.stream(model=model, input="Hello") as stream:
        streamed = stream.get_final_response().output_text
    return [chat.choices[0].message.content, "".join(pieces), response.output_text, streamed]


@scenarios.add
def tools(client, model):
    """A function is called and answered, in both APIs."""
    with client.chat.completions.stream(model=model, messages=[USER], tools=[CHAT_TOOL]) as stream:
        message = stream.get_final_completion().choices[0].message
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "rain"}
    messages = [USER, message.model_dump(exclude_none=True), result]
    chat = client.chat.completions.create(model=model, messages=messages, tools=[CHAT_TOOL])
    return [message.tool_calls[0].function.arguments, chat.choices[0].message.content]


@scenarios.add
def response_tools(client, model):
    first = client.responses.create(model=model, input="Weather?", tools=[TOOL])
    call = next(item for item in first.output if item.type == "function_call")
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
    second = client.responses.create(model=model, input=[output], previous_response_id=first.id, tools=[TOOL])
    return [call.arguments, second.output_text]


@scenarios.add
def structured(client, model):
    parsed = client.responses.parse(model=model, input="Tides?", text_format=Tide).output_parsed
    chat = client.chat.completions.parse(model=model, messages=[USER], response_format=Tide)
    return [parsed.model_dump(), chat.choices[0].message.parsed.model_dump()]


@scenarios.add
def failures(client, model):
    """What each kind of call raises."""

    def stream(create, **more):
        for _ in create(model=model, stream=True, **more):
            pass

    return [
        told(client.responses.create, model=model, input="Hello"),
        told(stream, client.responses.create, input="Hello"),
        told(client.chat.completions.create, model=model, messages=[USER]),
        told(stream, client.chat.completions.create, messages=[USER]),
    ]


@scenarios.add
def refusals(client, model):
    """Mistakes of the caller."""
    return [
        told(client.responses.create, model="agent:none", input="Hello"),
        told(client.responses.create, model=model, input=5),
        told(client.responses.retrieve, "resp_none"),
    ]


@scenarios.add
def leave(client, model):
    """Close a plain stream after its first text."""
    with client.responses.create(model=model, input="Go", stream=True) as stream:
        return next(event.delta for event in stream if event.type == "response.output_text.delta")


@scenarios.add
def begin(client, model):
    """Start a background response, and leave its stream after the first text."""
    seen = []
    with client.responses.create(model=model, input="Count", background=True, stream=True) as stream:
        for event in stream:
            seen.append(event)
            if event.type == "response.output_text.delta":
                break
    return [seen[0].response.id, seen[-1].sequence_number, seen[-1].delta]


@scenarios.add
def resume(client, response, after):
    """The rest of the stream, and the response afterwards."""
    events = list(client.responses.retrieve(response, stream=True, starting_after=after))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    whole = client.responses.retrieve(response)
    return [[event.sequence_number for event in events], text, whole.status, whole.output_text]


@scenarios.add
def cancel(client, model):
    """Cancel a background response from another thread while its stream is read."""
    with client.responses.create(model=model, input="Count", background=True, stream=True) as stream:
        events = iter(stream)
        created = next(events)
        next(event for event in events if event.type == "response.output_text.delta")
        other = threading.Thread(target=client.responses.cancel, args=[created.response.id])
        other.start()
        last = list(events)[-1]
        other.join()
    return [last.type, last.response.status, client.responses.retrieve(created.response.id).output_text]


@scenarios.add
def approval(client):
    """A tool of an agent of the server that asks first: the client approves it."""
    first = client.responses.create(model="agent:chat", input="Write")
    request = first.output[-1]
    answer = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True}
    second = client.responses.create(model="agent:chat", input=[answer], previous_response_id=first.id)
    return [request.type, request.name, second.status, second.output_text]


scenarios.serve()
