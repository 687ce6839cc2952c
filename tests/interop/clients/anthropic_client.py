"""The official Anthropic client for Python."""

import anthropic
from pydantic import BaseModel
from scenarios import Scenarios, told

scenarios = Scenarios(
    lambda url: anthropic.Anthropic(base_url=url.removesuffix("/v1"), api_key="none", max_retries=0, timeout=30)
)
USER = {"role": "user", "content": "Hello"}
TOOL = {
    "name": "get_weather",
    "description": "The weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


class Tide(BaseModel):
    place: str
    hours: list[int]


@scenarios.add
def plain(client, model):
    """A whole and a streamed answer."""
    whole = client.messages.create(model=model, max_tokens=500, system="Be kind.", messages=[USER])
    with client.messages.stream(model=model, max_tokens=500, messages=[USER]) as stream:
        streamed = "".join(stream.text_stream)
        final = stream.get_final_message()
    return [whole.content[-1].text, streamed, final.stop_reason, final.usage.output_tokens]


@scenarios.add
def tools(client, model):
    """A streamed tool call, and its result."""
    with client.messages.stream(model=model, max_tokens=500, messages=[USER], tools=[TOOL]) as stream:
        asked = stream.get_final_message()
    use = asked.content[-1]
    result = {"type": "tool_result", "tool_use_id": use.id, "content": "rain"}
    messages = [USER, {"role": "assistant", "content": asked.content}, {"role": "user", "content": [result]}]
    answer = client.messages.create(model=model, max_tokens=500, messages=messages, tools=[TOOL])
    return [asked.stop_reason, use.input, answer.content[0].text]


@scenarios.add
def runner(client, model):
    """The client's own loop over tools."""

    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """The weather.

        Args:
            city: Where.
        """
        return f"rain in {city}"

    final = client.beta.messages.tool_runner(
        model=model, max_tokens=500, messages=[USER], tools=[get_weather]
    ).until_done()
    return final.content[0].text


@scenarios.add
def structured(client, model):
    found = client.messages.parse(model=model, max_tokens=500, messages=[USER], output_format=Tide)
    return found.parsed_output.model_dump()


@scenarios.add
def thinking(client, model):
    """Reasoning is a thinking block, which is sent back."""
    wanted = {"model": model, "max_tokens": 5000, "thinking": {"type": "enabled", "budget_tokens": 1024}}
    with client.messages.stream(messages=[USER], **wanted) as stream:
        first = stream.get_final_message()
    messages = [USER, {"role": "assistant", "content": first.content}, USER]
    second = client.messages.create(messages=messages, **wanted)
    return [[block.type for block in first.content], second.content[-1].text]


@scenarios.add
def tokens(client, model):
    return client.messages.count_tokens(model=model, messages=[USER]).input_tokens > 0


@scenarios.add
def models(client):
    return [model.id for model in client.models.list()]


@scenarios.add
def failures(client, model):
    def stream():
        with client.messages.stream(model=model, max_tokens=500, messages=[USER]) as stream:
            stream.until_done()

    return [told(client.messages.create, model=model, max_tokens=500, messages=[USER]), told(stream)]


@scenarios.add
def breaks(client, model):
    """The provider fails in mid-stream."""
    seen = []
    try:
        with client.messages.stream(model=model, max_tokens=500, messages=[USER]) as stream:
            for text in stream.text_stream:
                seen.append(text)
    except anthropic.APIError as error:
        return ["".join(seen), error.body["error"]["type"]]


@scenarios.add
def leave(client, model):
    with client.messages.stream(model=model, max_tokens=500, messages=[USER]) as stream:
        return next(stream.text_stream)


scenarios.serve()
