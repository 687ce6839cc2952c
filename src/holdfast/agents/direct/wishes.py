"""What a run's settings say of how its one model is to be asked. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from holdfast.agents.models.port import ToolSpec
from holdfast.core.parts import Json
from holdfast.core.values import dataclass
from holdfast.ports import AgentFailed, Turn

PASSED: Final = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "max_tokens",
    "seed",
    "stop",
    "presence_penalty",
    "frequency_penalty",
    "repeat_penalty",
    "reasoning_effort",
    "response_format",
    "tool_choice",
    "parallel_tool_calls",
)
"""What goes to the model as it is, where its provider knows it."""


@dataclass(frozen=True, slots=True)
class Wishes:
    system: str | None
    tools: tuple[ToolSpec, ...]
    settings: Mapping[str, Json]


def read(turn: Turn) -> Wishes:
    """The run's own settings go before the session's. A run without instructions of its own has the session's."""
    merged: dict[str, Json] = {}
    for settings in (turn.session.settings, turn.run.settings):
        if isinstance(settings, dict):
            merged |= settings
    system = merged.get("instructions", turn.session.system)
    if not isinstance(system, str | None):
        raise AgentFailed("bad-request", "settings.instructions is not a text.")
    passed = {name: merged[name] for name in PASSED if merged.get(name) is not None}
    return Wishes(system or None, _tools(merged.get("tools")), passed)


def _tools(given: Json) -> tuple[ToolSpec, ...]:
    if given is None:
        return ()
    if not isinstance(given, list):
        raise AgentFailed("bad-request", "settings.tools is not a list of functions.")
    return tuple(_tool(item) for item in given)


def _tool(item: Any) -> ToolSpec:
    match item:
        case {"name": str(name), "parameters": dict(parameters)}:
            strict = item.get("strict")
            return ToolSpec(name, str(item.get("description") or ""), parameters, strict)
        case _:
            raise AgentFailed("bad-request", "A tool in settings.tools has no name or no parameters.")
