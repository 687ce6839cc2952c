"""What reaches a model: the client's calls and their results, its tools, and the settings that a provider knows."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.agents.chat.history import NOT_RUN, conversation
from holdfast.agents.models import provider_wire
from holdfast.agents.models.catalogue import Catalogue, CatalogueSettings
from holdfast.agents.models.port import AssistantSaid, ModelFailed, Request, ToolCall, ToolSaid, ToolSpec, UserSaid
from holdfast.agents.models.provider_config import ProviderConfig
from holdfast.core.ids import LOCAL, MessageId, SessionId
from holdfast.core.parts import Part, Reasoning, Text, Tool
from holdfast.core.session import Message
from holdfast.system import SystemClock


def said(*turns: tuple[Any, list[Part]]) -> list[Any]:
    messages = [
        Message(MessageId(f"msg_{n}"), LOCAL, SessionId("ses_1"), role, None, 0.0, parts=tuple(parts))
        for n, (role, parts) in enumerate(turns)
    ]
    return conversation(messages, {})


def call(call_id: str, args: str = '{"city":"Brest"}') -> Tool:
    return Tool(call_id, "get_weather", args, "not_run")


def result(call_id: str, text: str) -> Tool:
    return Tool(call_id, "get_weather", {}, "done", text)


def test_results_that_came_later_answer_their_calls() -> None:
    """Each call is followed by its result, in the calls' order, then by what the person says; thoughts go back too,
    because the turn goes on."""
    found = said(
        ("user", [Text("Weather?")]),
        ("assistant", [Reasoning("Two places."), call("c1"), call("c2")]),
        ("user", [result("c2", "sun"), result("c1", "rain"), Text("Well?")]),
    )
    asked, answered, first, second, last = found
    assert (asked, last) == (UserSaid(("Weather?",)), UserSaid(("Well?",)))
    assert isinstance(answered, AssistantSaid)
    assert [type(part) for part in answered.parts] == [Reasoning, ToolCall, ToolCall]
    assert [first, second] == [ToolSaid("c1", "get_weather", "rain"), ToolSaid("c2", "get_weather", "sun")]


def test_call_that_nobody_answered_is_told_as_not_run() -> None:
    """A client that goes on without a result does not make the model believe that there was one."""
    found = said(("user", [Text("Weather?")]), ("assistant", [Reasoning("Hm."), call("c1")]), ("user", [Text("So?")]))
    assert found[2] == ToolSaid("c1", "get_weather", NOT_RUN, is_error=True)
    assert not any(isinstance(part, Reasoning) for part in found[1].parts)


def test_arguments_that_are_no_json_go_back_with_the_clients_word_on_them() -> None:
    """A call that the model wrote wrongly, and that the client answered, is not lost."""
    found = said(("user", [Text("?")]), ("assistant", [call("c1", "{city")]), ("user", [result("c1", "no such city")]))
    assert found[1].parts[0].invalid is not None
    assert found[2] == ToolSaid("c1", "get_weather", "no such city")


def test_tool_choice_and_strictness_reach_a_provider_of_the_library() -> None:
    """A chosen function is named as pydantic-ai wants it; without tools there is nothing to choose."""
    tool = ToolSpec("f", "", {"type": "object"}, strict=True)
    chosen = {"tool_choice": {"type": "function", "function": {"name": "f"}}}
    asked = Request(None, (UserSaid(("x",)),), (tool,), chosen)
    assert dict(provider_wire.settings(asked, "google"))["tool_choice"] == ["f"]
    assert provider_wire.parameters(asked).function_tools[0].strict is True
    assert "tool_choice" not in provider_wire.settings(Request(None, asked.messages, (), chosen), "google")


@pytest.mark.anyio
async def test_catalogue_says_what_reaches_a_model(tmp_path: Path) -> None:
    """What is honoured is what the adapter passes on, by provider; an id that names nothing has nothing."""
    providers = (
        ProviderConfig(name="a", kind="anthropic", api_key="k", models=("claude",)),
        ProviderConfig(name="m", kind="mistral", api_key="k", models=("small",), abilities=("images",)),
    )
    async with Catalogue(CatalogueSettings(providers=providers, ports={}), SystemClock()) as catalogue:
        anthropic, mistral = await catalogue.knows("a/claude"), await catalogue.knows("m/small")
        assert {"tools", "tool_choice", "temperature", "stop"} <= anthropic
        assert not {"seed", "response_format"} & anthropic
        assert {"tools", "response_format", "seed", "images"} <= mistral
        assert not {"reasoning_effort", "documents"} & mistral
        assert await catalogue.knows("demo/scripted") == frozenset()
        with pytest.raises(ModelFailed):
            await catalogue.knows("openai/gpt")
