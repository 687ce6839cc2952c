"""How the client wants it answered: tools, format and sampling as the settings of a run, in the chat format's words,
and what of it does not reach the model."""

from collections.abc import Mapping
from typing import Any, Final

from holdfast.core.parts import Json
from holdfast.core.values import dataclass
from holdfast.faces.openai import look
from holdfast.faces.openai.errors import Wrong, unsupported
from holdfast.faces.openai.requests import ChatIn, ResponseIn
from holdfast.faces.openai.targets import Target

_MUST: Final = frozenset({"tools", "tool_choice", "response_format", "stop", "max_tokens"})
"""Without these the answer would be another one than was asked for: where they do not reach the model, the call is
refused. Others only colour it."""
_CHOICES: Final = ("auto", "none", "required")
_FORMATS: Final = ("text", "json_object", "json_schema")
_NO_PARAMETERS: Final[Mapping[str, Json]] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class Wishes:
    settings: dict[str, Json]
    ignored: list[str]


def of_response(body: ResponseIn, target: Target) -> Wishes:
    tools = [_response_tool(tool, f"tools[{n}]") for n, tool in enumerate(body.tools or ())]
    asked = {
        "tools": ("tools", tools or None),
        "tool_choice": ("tool_choice", _response_choice(body.tool_choice, tools)),
        "parallel_tool_calls": ("parallel_tool_calls", body.parallel_tool_calls if tools else None),
        "temperature": ("temperature", body.temperature),
        "top_p": ("top_p", body.top_p),
        "max_tokens": ("max_output_tokens", body.max_output_tokens),
        "reasoning_effort": ("reasoning.effort", None if body.reasoning is None else body.reasoning.effort),
        "response_format": ("text.format", _text_format(None if body.text is None else body.text.format)),
    }
    return _fit(asked, target)


def of_chat(body: ChatIn, target: Target) -> Wishes:
    if body.max_tokens is not None and body.max_completion_tokens is not None:
        raise Wrong("max_tokens", "Send either 'max_tokens' or 'max_completion_tokens', not both.")
    tools = [_chat_tool(tool, f"tools[{n}]") for n, tool in enumerate(body.tools or ())]
    limit = "max_tokens" if body.max_completion_tokens is None else "max_completion_tokens"
    plain = (
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "repeat_penalty",
        "seed",
        "stop",
        "presence_penalty",
        "frequency_penalty",
        "reasoning_effort",
    )
    asked: dict[str, tuple[str, Json]] = {name: (name, getattr(body, name)) for name in plain}
    asked |= {
        "tools": ("tools", tools or None),
        "tool_choice": ("tool_choice", _chat_choice(body.tool_choice, tools)),
        "parallel_tool_calls": ("parallel_tool_calls", body.parallel_tool_calls if tools else None),
        "max_tokens": (limit, getattr(body, limit)),
        "response_format": ("response_format", _format(body.response_format, "response_format")),
    }
    return _fit(asked, target)


def _fit(asked: Mapping[str, tuple[str, Json]], target: Target) -> Wishes:
    """By their names here: what they are called in the call, and the value."""
    settings: dict[str, Json] = {}
    ignored: list[str] = []
    for name, (param, value) in asked.items():
        if value is None:
            continue
        if name in target.knows:
            settings[name] = value
        elif name in _MUST:
            raise unsupported(param, f"It cannot be passed on to {target.name!r}.")
        else:
            ignored.append(param)
    return Wishes(settings, ignored)


# ---- tools ----


def _response_tool(tool: dict[str, Any], param: str) -> dict[str, Json]:
    kind = look.text(tool.get("type"), f"{param}.type")
    if kind != "function":
        raise unsupported(f"{param}.type", f"Only functions of the client's own can be called, not '{kind[:50]}'.")
    return _function(tool, param)


def _chat_tool(tool: dict[str, Any], param: str) -> dict[str, Json]:
    kind = look.text(tool.get("type"), f"{param}.type")
    if kind != "function":
        raise unsupported(f"{param}.type", f"Only functions of the client's own can be called, not '{kind[:50]}'.")
    return _function(look.thing(tool.get("function"), f"{param}.function"), f"{param}.function")


def _function(function: dict[str, Any], param: str) -> dict[str, Json]:
    strict = function.get("strict")
    if not isinstance(strict, bool | None):
        raise look.wrong_type(f"{param}.strict", "a boolean", strict)
    parameters = function.get("parameters")
    name = look.text(function.get("name"), f"{param}.name")
    if not name:
        raise Wrong(f"{param}.name", f"'{param}.name' is empty.")
    return {
        "name": name,
        "description": look.optional_text(function, "description", param),
        "parameters": dict(_NO_PARAMETERS) if parameters is None else look.thing(parameters, f"{param}.parameters"),
        "strict": strict,
    }


def _response_choice(choice: Json, tools: list[dict[str, Json]]) -> Json:
    if isinstance(choice, dict):
        kind = look.text(choice.get("type"), "tool_choice.type")
        if kind != "function":
            raise unsupported("tool_choice.type", f"A function can be chosen, not '{kind[:50]}'.")
        return _named(look.text(choice.get("name"), "tool_choice.name"), tools, "tool_choice.name")
    return _word(choice, tools)


def _chat_choice(choice: Json, tools: list[dict[str, Json]]) -> Json:
    if isinstance(choice, dict):
        kind = look.text(choice.get("type"), "tool_choice.type")
        if kind != "function":
            raise unsupported("tool_choice.type", f"A function can be chosen, not '{kind[:50]}'.")
        function = look.thing(choice.get("function"), "tool_choice.function")
        return _named(look.text(function.get("name"), "tool_choice.function.name"), tools, "tool_choice.function.name")
    return _word(choice, tools)


def _word(choice: Json, tools: list[dict[str, Json]]) -> str | None:
    if choice is None:
        return None
    word = look.one_of(choice, _CHOICES, "tool_choice")
    if tools:
        return word
    if word == "required":
        raise Wrong("tool_choice", "'tool_choice' requires a tool, and no 'tools' were sent.")
    return None


def _named(name: str, tools: list[dict[str, Json]], param: str) -> Json:
    if name not in {tool["name"] for tool in tools}:
        raise Wrong(param, f"Tool choice '{name[:100]}' not found in 'tools'.")
    return {"type": "function", "function": {"name": name}}


# ---- the form of the answer ----


def _text_format(given: dict[str, Any] | None) -> Json:
    """`{type: json_schema, name, schema, strict}` is `{type: json_schema, json_schema: {…}}` in the chat format."""
    if given is None or look.one_of(given.get("type"), _FORMATS, "text.format.type") != "json_schema":
        return _format(given, "text.format")
    return {"type": "json_schema", "json_schema": _schema(given, "text.format")}


def _format(given: dict[str, Any] | None, param: str) -> Json:
    if given is None:
        return None
    match look.one_of(given.get("type"), _FORMATS, f"{param}.type"):
        case "json_object":
            return {"type": "json_object"}
        case "json_schema":
            place = f"{param}.json_schema"
            return {"type": "json_schema", "json_schema": _schema(look.thing(given.get("json_schema"), place), place)}
        case _:
            return None


def _schema(given: dict[str, Any], param: str) -> dict[str, Json]:
    name = look.text(given.get("name"), f"{param}.name")
    schema = look.thing(given.get("schema"), f"{param}.schema")
    kept = {key: given[key] for key in ("description", "strict") if given.get(key) is not None}
    return {"name": name, "schema": schema, **kept}
