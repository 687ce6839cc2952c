"""pydantic-ai with its OpenAI and Anthropic models."""

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from scenarios import Scenarios, described

scenarios = Scenarios(lambda url: url)


class Tide(BaseModel):
    place: str
    hours: list[int]


def agent(url, model, api, **more):
    if api == "anthropic":
        client = AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key="none", max_retries=0, timeout=30)
        chosen = AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client))
    else:
        provider = OpenAIProvider(openai_client=AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=30))
        chosen = (OpenAIResponsesModel if api == "responses" else OpenAIChatModel)(model, provider=provider)
    return Agent(chosen, instructions="Be kind.", **more)


@scenarios.add
async def plain(url, model, api):
    """A whole and a streamed answer."""
    whole = await agent(url, model, api).run("Hello")
    async with agent(url, model, api).run_stream("Hello") as result:
        pieces = [piece async for piece in result.stream_text(delta=True)]
    return [whole.output, "".join(pieces)]


@scenarios.add
async def tools(url, model, api):
    """A tool in a streamed run, and a second turn with the history."""
    pilot = agent(url, model, api)

    @pilot.tool_plain
    def get_weather(city: str) -> str:
        return f"rain in {city}"

    async with pilot.run_stream("Weather?") as result:
        first = await result.get_output()
    second = await pilot.run("Sure?", message_history=result.all_messages())
    return [first, second.output]


@scenarios.add
async def structured(url, model, api):
    wanted = Tide if api == "anthropic" else NativeOutput(Tide)
    result = await agent(url, model, api, output_type=wanted).run("Tides?")
    return result.output.model_dump()


@scenarios.add
async def fails(url, model, api):
    try:
        await agent(url, model, api).run("Hello")
    except Exception as error:
        return described(error)


@scenarios.add
async def leave(url, model, api):
    """Leave a stream after its first text."""
    async with agent(url, model, api).run_stream("Hello") as result:
        async for piece in result.stream_text(delta=True, debounce_by=None):
            return piece


scenarios.serve()
