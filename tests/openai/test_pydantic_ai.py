"""pydantic-ai as a client: its chat and its responses models."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.chat.model_server import ScriptedModelServer
from tests.http.client import Served
from tests.http.streams import GUARD
from tests.openai.scripts import TIDE, Tide, calls_function, named, thinks_and_says
from tests.upstream import says

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[OpenAIChatModel, OpenAIResponsesModel], ids=["chat", "responses"])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@asynccontextmanager
async def model_of(served: Served, kind: Any, model: str) -> AsyncIterator[Any]:
    async with AsyncOpenAI(base_url=f"{served.url}/v1", api_key="none", timeout=GUARD, max_retries=0) as client:
        yield kind(named(model), provider=OpenAIProvider(openai_client=client))


async def test_streamed_text(kind: Any, shared: Served, up: ScriptedModelServer) -> None:
    """Its agent streams the answer, with instructions and usage."""
    model = f"pydantic text {kind.__name__}"
    up.play(model, thinks_and_says("Hm. ", "Good ", "morning."))
    async with model_of(shared, kind, model) as asked:
        agent = Agent(asked, instructions="Be kind.")
        async with agent.run_stream("Hello") as result:
            pieces = [piece async for piece in result.stream_text(delta=True)]
    assert "".join(pieces) == "Good morning."
    assert result.usage.output_tokens == 5
    assert up.asked(model)["messages"][0] == {"role": "system", "content": "Be kind."}


async def test_tools_and_structured_output(kind: Any, shared: Served, up: ScriptedModelServer) -> None:
    """Its tool gets the model's arguments, the result goes back, and the output is typed."""
    model = f"pydantic tools {kind.__name__}"
    up.play(model, calls_function('{"ci', 'ty":"Brest"}'), says(TIDE))
    asked: list[str] = []

    def get_weather(city: str) -> str:
        asked.append(city)
        return "rain"

    async with model_of(shared, kind, model) as ours:
        agent = Agent(ours, output_type=NativeOutput(Tide), tools=[get_weather])
        result = await agent.run("Tides?")
    assert (result.output, asked) == (Tide(place="Brest", hours=[6, 18]), ["Brest"])
    messages = up.asked(model, 2)["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "tool"]
    assert messages[2]["content"] == "rain"
