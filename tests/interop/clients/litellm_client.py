"""LiteLLM as a library."""

import litellm
from pydantic import BaseModel
from scenarios import Scenarios, told

litellm.suppress_debug_info = True
scenarios = Scenarios(lambda url: url)
USER = {"role": "user", "content": "Hello"}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}


class Tide(BaseModel):
    place: str
    hours: list[int]


def how(url, model, api="openai"):
    base = url.removesuffix("/v1") if api == "anthropic" else url
    return {"model": f"{api}/{model}", "api_base": base, "api_key": "none", "max_retries": 0, "timeout": 30}


@scenarios.add
def plain(url, model, api):
    """A whole and a streamed answer."""
    whole = litellm.completion(messages=[USER], **how(url, model, api))
    stream = litellm.completion(messages=[USER], stream=True, **how(url, model, api))
    pieces = [chunk.choices[0].delta.content or "" for chunk in stream]
    return [whole.choices[0].message.content, "".join(pieces)]


@scenarios.add
def responses(url, model):
    whole = litellm.responses(input="Hello", **how(url, model))
    events = list(litellm.responses(input="Hello", stream=True, **how(url, model)))
    return [whole.output[-1].content[0].text, str(events[-1].type.value)]


@scenarios.add
def tools(url, model, api):
    first = litellm.completion(messages=[USER], tools=[TOOL], **how(url, model, api)).choices[0].message
    result = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "rain"}
    second = litellm.completion(messages=[USER, first, result], tools=[TOOL], **how(url, model, api))
    return [first.tool_calls[0].function.arguments, second.choices[0].message.content]


@scenarios.add
def structured(url, model):
    found = litellm.completion(messages=[USER], response_format=Tide, **how(url, model))
    return Tide.model_validate_json(found.choices[0].message.content).model_dump()


@scenarios.add
def fails(url, model, api):
    def stream():
        list(litellm.completion(messages=[USER], stream=True, **how(url, model, api)))

    return [told(litellm.completion, messages=[USER], **how(url, model, api)), told(stream)]


@scenarios.add
def leave(url, model):
    stream = litellm.completion(messages=[USER], stream=True, **how(url, model))
    first = next(chunk.choices[0].delta.content for chunk in stream if chunk.choices[0].delta.content)
    stream.completion_stream.close()
    return first


scenarios.serve()
