"""What reaches a model: calls of the client's functions and their results, its tools, and its settings."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.agents.chat.model_messages import NOT_RUN, conversation
from holdfast.core.ids import LOCAL, MessageId, SessionId
from holdfast.core.parts import Part, ReasoningPart, TextPart, ToolPart
from holdfast.core.session import Message
from holdfast.models import pydantic_ai_messages
from holdfast.models.catalog import CatalogSettings, ModelCatalog
from holdfast.models.provider_config import ProviderConfig
from holdfast.ports.model import (
    AssistantMessage,
    ModelError,
    ModelRequest,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from holdfast.system import SystemClock


def said(*turns: tuple[Any, list[Part]]) -> list[Any]:
    messages = [
        Message(MessageId(f"msg_{n}"), LOCAL, SessionId("ses_1"), role, None, 0.0, parts=tuple(parts))
        for n, (role, parts) in enumerate(turns)
    ]
    return conversation(messages, {})


def call(call_id: str, args: str = '{"city":"Brest"}') -> ToolPart:
    return ToolPart(call_id, "get_weather", args, "not_run")


def result(call_id: str, text: str) -> ToolPart:
    return ToolPart(call_id, "get_weather", {}, "done", text)


def test_results_that_came_later_answer_their_calls() -> None:
    """Each call is followed by its result, in the order of the calls, then by the user's text; reasoning is sent back,
    because the turn continues."""
    found = said(
        ("user", [TextPart("Weather?")]),
        ("assistant", [ReasoningPart("Two places."), call("c1"), call("c2")]),
        ("user", [result("c2", "sun"), result("c1", "rain"), TextPart("Well?")]),
    )
    asked, answered, first, second, last = found
    assert (asked, last) == (UserMessage(("Weather?",)), UserMessage(("Well?",)))
    assert isinstance(answered, AssistantMessage)
    assert [type(part) for part in answered.parts] == [ReasoningPart, ToolCall, ToolCall]
    assert [first, second] == [ToolMessage("c1", "get_weather", "rain"), ToolMessage("c2", "get_weather", "sun")]


def test_call_without_a_result_is_shown_as_not_run() -> None:
    """The model is told that a call without a result was not run."""
    found = said(
        ("user", [TextPart("Weather?")]), ("assistant", [ReasoningPart("Hm."), call("c1")]), ("user", [TextPart("So?")])
    )
    assert found[2] == ToolMessage("c1", "get_weather", NOT_RUN, is_error=True)
    assert not any(isinstance(part, ReasoningPart) for part in found[1].parts)


def test_invalid_arguments_keep_the_result_of_the_client() -> None:
    """A call with invalid arguments, which the client answered, is not lost."""
    found = said(
        ("user", [TextPart("?")]), ("assistant", [call("c1", "{city")]), ("user", [result("c1", "no such city")])
    )
    assert found[1].parts[0].invalid is not None
    assert found[2] == ToolMessage("c1", "get_weather", "no such city")


def test_tool_choice_and_strictness_reach_pydantic_ai() -> None:
    """The chosen function is passed on in pydantic-ai's form; without tools there is no choice."""
    tool = ToolSpec("f", "", {"type": "object"}, strict=True)
    chosen = {"tool_choice": {"type": "function", "function": {"name": "f"}}}
    asked = ModelRequest(None, (UserMessage(("x",)),), (tool,), chosen)
    assert dict(pydantic_ai_messages.settings(asked, "google"))["tool_choice"] == ["f"]
    assert pydantic_ai_messages.parameters(asked).function_tools[0].strict is True
    assert "tool_choice" not in pydantic_ai_messages.settings(ModelRequest(None, asked.messages, (), chosen), "google")


@pytest.mark.anyio
async def test_catalog_knows_which_settings_reach_a_model(tmp_path: Path) -> None:
    """The settings depend on the adapter of the provider; an unknown id has none."""
    providers = (
        ProviderConfig(name="a", kind="anthropic", api_key="k", models=("claude",)),
        ProviderConfig(name="m", kind="mistral", api_key="k", models=("small",), abilities=("images",)),
    )
    async with ModelCatalog(CatalogSettings(providers=providers, ports={}), SystemClock()) as catalogue:
        anthropic, mistral = await catalogue.knows("a/claude"), await catalogue.knows("m/small")
        assert {"tools", "tool_choice", "temperature", "stop"} <= anthropic
        assert not {"seed", "response_format"} & anthropic
        assert {"tools", "response_format", "seed", "images"} <= mistral
        assert not {"reasoning_effort", "documents"} & mistral
        assert await catalogue.knows("demo/scripted") == frozenset()
        with pytest.raises(ModelError):
            await catalogue.knows("openai/gpt")
