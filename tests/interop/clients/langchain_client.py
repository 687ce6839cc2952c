"""LangChain with its OpenAI and Anthropic integrations."""

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel
from scenarios import Scenarios, told

scenarios = Scenarios(lambda url: url)


class Tide(BaseModel):
    place: str
    hours: list[int]


@tool
def get_weather(city: str) -> str:
    """The weather."""
    return f"rain in {city}"


def model_of(url, model, api):
    if api == "anthropic":
        base = url.removesuffix("/v1")
        return ChatAnthropic(model=model, base_url=base, api_key="none", max_retries=0, timeout=30, stream_usage=True)
    return ChatOpenAI(
        model=model, base_url=url, api_key="none", max_retries=0, timeout=30, use_responses_api=api == "responses"
    )


@scenarios.add
def plain(url, model, api):
    """A whole and a streamed answer."""
    chosen = model_of(url, model, api)
    whole = chosen.invoke([("system", "Be kind."), ("user", "Hello")])
    pieces = [chunk.text for chunk in chosen.stream("Hello")]
    return [str(whole.text), "".join(map(str, pieces)), whole.usage_metadata["output_tokens"]]


@scenarios.add
def tools(url, model, api):
    """An agent that calls a tool."""
    agent = create_agent(model_of(url, model, api), [get_weather])
    messages = agent.invoke({"messages": [("user", "Weather?")]})["messages"]
    return [[message.type, str(message.text)] for message in messages]


@scenarios.add
def structured(url, model, api):
    return model_of(url, model, api).with_structured_output(Tide, method="json_schema").invoke("Tides?").model_dump()


@scenarios.add
def fails(url, model, api):
    chosen = model_of(url, model, api)
    return [told(chosen.invoke, "Hello"), told(lambda: list(chosen.stream("Hello")))]


@scenarios.add
def leave(url, model, api):
    """Close a stream after its first text."""
    stream = model_of(url, model, api).stream("Hello")
    first = next(str(chunk.text) for chunk in stream if chunk.text)
    stream.close()
    return first


scenarios.serve()
