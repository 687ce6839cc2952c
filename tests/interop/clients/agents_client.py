"""The OpenAI Agents SDK."""

import asyncio

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from pydantic import BaseModel
from scenarios import Scenarios, described

set_tracing_disabled(True)
scenarios = Scenarios(lambda url: url)


class Tide(BaseModel):
    place: str
    hours: list[int]


@function_tool
def get_weather(city: str) -> str:
    """The weather."""
    return f"rain in {city}"


def agent(url, model, api, **more):
    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=30)
    kind = OpenAIResponsesModel if api == "responses" else OpenAIChatCompletionsModel
    return Agent(name="Pilot", instructions="Be kind.", model=kind(model=model, openai_client=client), **more)


@scenarios.add
async def plain(url, model, api):
    """A whole and a streamed answer."""
    whole = await Runner.run(agent(url, model, api), "Hello")
    streamed = Runner.run_streamed(agent(url, model, api), "Hello")
    pieces = []
    async for event in streamed.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            pieces.append(event.data.delta)
    return [whole.final_output, "".join(pieces), streamed.final_output]


@scenarios.add
async def tools(url, model, api, own=True):
    """Two steps with a tool, streamed."""
    result = Runner.run_streamed(agent(url, model, api, tools=[get_weather] if own else []), "Weather?")
    async for _ in result.stream_events():
        pass
    return result.final_output


@scenarios.add
async def stateful(url, model, api):
    """The history is kept by the server: only the tool's result is sent."""
    settings = ModelSettings(store=True)
    pilot = agent(url, model, api, tools=[get_weather], model_settings=settings)
    first = await Runner.run(pilot, "Weather?", auto_previous_response_id=True)
    second = await Runner.run(pilot, "Sure?", previous_response_id=first.last_response_id)
    return [first.final_output, second.final_output]


@scenarios.add
async def structured(url, model, api):
    result = await Runner.run(agent(url, model, api, output_type=Tide), "Tides?")
    return result.final_output.model_dump()


@scenarios.add
async def fails(url, model, api):
    try:
        await Runner.run(agent(url, model, api), "Hello")
    except Exception as error:
        return described(error)


@scenarios.add
async def cancel(url, model, api):
    """Cancel after the first text."""
    result = Runner.run_streamed(agent(url, model, api), "Hello")
    async for event in result.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            result.cancel()
    await asyncio.sleep(0)
    return True


scenarios.serve()
