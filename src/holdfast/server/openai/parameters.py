"""Resolves the `model` of a call, and decides about every other known parameter: honored, refused by name, or ignored
and reported as ignored. The honored ones become settings of the run, under the names that chat completions have for
them. Unknown ones are refused by `schemas`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never

from holdfast.core.parts import Json
from holdfast.core.session import API
from holdfast.server.openai import client_tools
from holdfast.server.openai import schemas as s
from holdfast.server.openai.errors import ParameterError, unsupported
from holdfast.server.openai.model_names import Target

SOURCE: Final = API
REFUSED: Final[Mapping[str, str]] = {
    "n": "A call makes one answer. Send the call again for another.",
    "logprobs": "Log probabilities are not available.",
    "top_logprobs": "Log probabilities are not available.",
    "logit_bias": "It is not passed on to any provider.",
    "modalities": "Only text output is available.",
    "audio": "Only text output is available.",
    "image": "Only text output is available.",
    "functions": "Use 'tools'.",
    "function_call": "Use 'tool_choice'.",
    "web_search_options": "A model alone has no server tools. The model 'agent:chat' has some.",
    "prompt": "There are no stored prompts. Send 'instructions' and 'input'.",
    "max_tool_calls": "Only the client calls the client's tools.",
    "truncation": "Input is never truncated; input that does not fit is refused.",
    "context_management": "Input is never truncated; input that does not fit is refused.",
    "moderation": "There is no moderation.",
    "access_programs": "There are no access programs.",
}
"""Parameters that would change the answer if they were ignored, each with the reason."""
NO_EFFECT: Final[Mapping[str, tuple[Any, ...]]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "truncation": ("disabled",),
    "service_tier": ("auto", "default"),
}
"""Values that ask for what happens anyway."""
IGNORED: Final = (
    "user",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "prediction",
    "verbosity",
    "client_metadata",
)
"""Parameters without which the answer is as good. Responses report them as ignored."""
REQUIRED_SUPPORT: Final = frozenset({"tools", "tool_choice", "response_format", "stop", "max_tokens"})
"""Settings that are refused for a model they do not reach: the answer would not be what was asked for. Other settings
are ignored there, and reported."""
_IGNORED_INCLUDES: Final = frozenset({"reasoning.encrypted_content"})
_NO_PARAMETERS: Final[Mapping[str, Json]] = {"type": "object", "properties": {}}
_SAME_NAME: Final = (
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


@dataclass(frozen=True, slots=True)
class RunSettings:
    values: dict[str, Json]
    ignored: list[str]  # Names of the parameters that are ignored


def settings_of_response(body: s.ResponseRequest, target: Target) -> RunSettings:
    tools, hosted = _response_tools(body)
    choice: Json = body.tool_choice
    if isinstance(choice, s.ChosenFunction):
        choice = _choose(choice.name, tools, "tool_choice.name")
    wanted = {
        **_tool_settings(tools, choice, parallel=body.parallel_tool_calls),
        "temperature": ("temperature", body.temperature),
        "top_p": ("top_p", body.top_p),
        "max_tokens": ("max_output_tokens", body.max_output_tokens),
        "reasoning_effort": ("reasoning.effort", None if body.reasoning is None else body.reasoning.effort),
        "response_format": ("text.format", None if body.text is None else _answer_format(body.text.format)),
    }
    return _select(wanted, target, [*_ignored(body), *hosted])


def _response_tools(body: s.ResponseRequest) -> tuple[list[dict[str, Json]], list[str]]:
    """The functions that the model is offered, and the paths of the tools that are ignored."""
    given = [(f"tools[{n}]", tool) for n, tool in enumerate(body.tools or ())]
    for m, item in enumerate(() if isinstance(body.input, str) else body.input):
        if isinstance(item, s.AdditionalToolsItem):
            given += [(f"input[{m}].tools[{n}]", tool) for n, tool in enumerate(item.tools)]
    functions: list[dict[str, Json]] = []
    ignored: list[str] = []
    for param, tool in given:
        match tool:
            case s.FunctionTool() | s.CustomTool():
                functions.append(_client_tool(tool))
            case s.NamespaceTool(name=namespace):
                functions += [_client_tool(inner, namespace) for inner in tool.tools]
            case s.HostedTool():
                ignored.append(param)
            case _:
                assert_never(tool)
    return functions, ignored


def _client_tool(tool: s.FunctionTool | s.CustomTool, namespace: str | None = None) -> dict[str, Json]:
    name = client_tools.flat_name(namespace, tool.name)
    if isinstance(tool, s.FunctionTool):
        return {**_function(tool), "name": name}
    about = {"name": name, "description": client_tools.custom_description(tool), "strict": None}
    return {**about, "parameters": dict(client_tools.CUSTOM_PARAMETERS)}


def settings_of_chat(body: s.ChatRequest, target: Target) -> RunSettings:
    if body.max_tokens is not None and body.max_completion_tokens is not None:
        raise ParameterError("max_tokens", "Send either 'max_tokens' or 'max_completion_tokens', not both.")
    limit = "max_tokens" if body.max_completion_tokens is None else "max_completion_tokens"
    tools = [_function(tool.function) for tool in body.tools or ()]
    choice: Json = body.tool_choice
    if isinstance(choice, s.ChosenChatFunction):
        choice = _choose(choice.function.name, tools, "tool_choice.function.name")
    wanted = {
        **{name: (name, getattr(body, name)) for name in _SAME_NAME},
        **_tool_settings(tools, choice, parallel=body.parallel_tool_calls),
        "max_tokens": (limit, getattr(body, limit)),
        "response_format": ("response_format", _answer_format(body.response_format)),
    }
    return _select(wanted, target, _ignored(body))


def _ignored(body: s.ResponseRequest | s.ChatRequest) -> list[str]:
    """The parameters that are ignored whatever the model."""
    sent = {name: getattr(body, name) for name in body.model_fields_set}
    wanted = [name for name, value in sent.items() if value is not None and value not in NO_EFFECT.get(name, ())]
    for name in wanted:
        if name in REFUSED:
            raise unsupported(name, REFUSED[name])
    ignored: list[str] = [name for name in IGNORED if name in wanted]
    if isinstance(body, s.ResponseRequest):
        for n, included in enumerate(body.include or ()):
            if included not in _IGNORED_INCLUDES:
                raise unsupported(f"include[{n}]", f"'{included[:100]}' is not available.")
            ignored.append(f"include[{n}]")
        if body.text is not None and body.text.verbosity is not None:
            ignored.append("text.verbosity")
        if body.reasoning is not None and body.reasoning.context is not None:
            ignored.append("reasoning.context")
    return ignored


RequestedSettings = dict[str, tuple[str, Json]]  # By the name of the setting: the name of the parameter, and its value


def _select(wanted: RequestedSettings, target: Target, ignored: list[str]) -> RunSettings:
    values: dict[str, Json] = {}
    for name, (param, value) in wanted.items():
        if value is None:
            continue
        if name in target.accepts:
            values[name] = value
        elif name in REQUIRED_SUPPORT:
            raise unsupported(param, f"{target.name!r} does not support it.")
        else:
            ignored.append(param)
    return RunSettings(values, ignored)


def _tool_settings(tools: Sequence[Mapping[str, Json]], choice: Json, *, parallel: bool | None) -> RequestedSettings:
    """Without tools there is nothing to choose."""
    if choice == "required" and not tools:
        raise ParameterError("tool_choice", "'tool_choice' is 'required', but 'tools' is empty.")
    return {
        "tools": ("tools", tools or None),
        "tool_choice": ("tool_choice", choice if tools else None),
        "parallel_tool_calls": ("parallel_tool_calls", parallel if tools else None),
    }


def _function(spec: s.FunctionSpec) -> dict[str, Json]:
    parameters = dict(_NO_PARAMETERS) if spec.parameters is None else spec.parameters
    return {"name": spec.name, "description": spec.description, "parameters": parameters, "strict": spec.strict}


def _choose(name: str, tools: Sequence[Mapping[str, Json]], param: str) -> Json:
    if name not in {tool["name"] for tool in tools}:
        raise ParameterError(param, f"Tool choice '{name[:100]}' not found in 'tools'.")
    return {"type": "function", "function": {"name": name}}


def _answer_format(wanted: s.TextFormat | s.ChatFormat | None) -> Json:
    """Responses have the fields of `json_schema` one level higher than chat completions."""
    match wanted:
        case s.JsonSchemaFormat():
            return {"type": "json_schema", "json_schema": _named_schema(wanted)}
        case s.ChatJsonSchemaFormat():
            return {"type": "json_schema", "json_schema": _named_schema(wanted.json_schema)}
        case s.PlainFormat(type="json_object"):
            return {"type": "json_object"}
        case _:
            return None


def _named_schema(given: s.NamedSchema) -> dict[str, Json]:
    optional = {"description": given.description, "strict": given.strict}
    kept = {name: value for name, value in optional.items() if value is not None}
    return {"name": given.name, "schema": given.json_schema, **kept}
