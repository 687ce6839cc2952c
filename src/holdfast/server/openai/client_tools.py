"""The client's tools. Models have functions with flat names, so a tool in a namespace is offered as `namespace__name`,
and a custom tool, whose input is free text, as a function with one text; a call is shown as the client's tool again."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.core.parts import Json
from holdfast.server.openai.schemas import CustomTool

_INPUT: Final = "input"
CUSTOM_PARAMETERS: Final[Mapping[str, Json]] = {
    "type": "object",
    "properties": {_INPUT: {"type": "string"}},
    "required": [_INPUT],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class ClientTool:
    """How the client names a tool, and whether it takes free text."""

    name: str
    namespace: str | None = None
    is_custom: bool = False


ClientTools = Mapping[str, ClientTool]  # By flat name; plain functions are left out


def flat_name(namespace: str | None, name: str) -> str:
    if not namespace:
        return name
    return f"{namespace}{name}" if namespace.endswith("__") else f"{namespace}__{name}"


def of_tools(tools: Json) -> ClientTools:
    """The tools that are offered under another name or as something else, from the stored tools of a call."""
    found: dict[str, ClientTool] = {}
    for tool in tools if isinstance(tools, list) else ():
        match tool:
            case {"type": "namespace", "name": str(namespace), "tools": list(inner)}:
                found |= {flat_name(namespace, name): ClientTool(name, namespace, c) for name, c in _names(inner)}
            case {"type": "custom", "name": str(name)}:
                found[name] = ClientTool(name, is_custom=True)
            case _:
                pass
    return found


def _names(tools: list[Any]) -> Iterator[tuple[str, bool]]:
    for tool in tools:
        match tool:
            case {"name": str(name), "type": kind}:
                yield name, kind == "custom"
            case _:
                pass


def sent_tools(sent: Mapping[str, Any]) -> Json:
    """The tools in the body of a call: its own, and those among its input."""
    given = sent.get("input")
    items = given if isinstance(given, list) else []
    more = [tool for item in items if item.get("type") == "additional_tools" for tool in item["tools"]]
    return [*(sent.get("tools") or ()), *more] or None


def custom_description(tool: CustomTool) -> str | None:
    """The description with the grammar of the input, which a function has no other place for."""
    match tool.format:
        case {"type": "grammar", "syntax": str(syntax), "definition": str(definition)}:
            grammar = f"The input matches this {syntax} grammar:\n{definition}"
            return f"{tool.description}\n\n{grammar}" if tool.description else grammar
        case _:
            return tool.description


def custom_arguments(text: str) -> str:
    """The arguments of the function for a custom tool with this input."""
    return json.dumps({_INPUT: text}, ensure_ascii=False)


def custom_input(arguments: str) -> str:
    """The input of a custom tool. A model that writes free text instead of arguments means the same."""
    try:
        read = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    text = read.get(_INPUT) if isinstance(read, dict) else None
    return text if isinstance(text, str) else arguments
