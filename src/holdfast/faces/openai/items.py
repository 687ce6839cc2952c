"""Items of a response's input, and messages of a chat, read into a `Script`. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.core.parts import Json, Part, Text, Tool
from holdfast.faces.openai import look, said
from holdfast.faces.openai.errors import Wrong, unsupported
from holdfast.faces.openai.said import Script

_ROLES: Final = ("user", "assistant", "system", "developer")
_CHAT_ROLES: Final = (*_ROLES, "tool")


def references(given: str | Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Ids of items that are named and not sent, each with its place."""
    if isinstance(given, str):
        return []
    return [
        (look.text(item.get("id"), f"input[{n}].id"), f"input[{n}].id")
        for n, item in enumerate(given)
        if item.get("type") == "item_reference"
    ]


def read_input(given: str | Sequence[dict[str, Any]], script: Script, referred: Mapping[str, Part]) -> Script:
    """`referred`: the output items that are only named."""
    if isinstance(given, str):
        script.say("user", Text(given))
        return script
    for n, item in enumerate(given):
        _item(item, f"input[{n}]", script, referred)
    return script


def _item(item: dict[str, Any], param: str, script: Script, referred: Mapping[str, Part]) -> None:
    kind = look.text(item.get("type", "message"), f"{param}.type")
    match kind:
        case "message":
            role = look.one_of(item.get("role"), _ROLES, f"{param}.role")
            _message(role, item.get("content"), param, script)
        case "function_call":
            call_id = look.text(item.get("call_id"), f"{param}.call_id")
            name = look.text(item.get("name"), f"{param}.name")
            script.call(call_id, name, look.text(item.get("arguments"), f"{param}.arguments"))
        case "function_call_output":
            call_id = look.text(item.get("call_id"), f"{param}.call_id")
            script.result(call_id, said.words(item.get("output"), f"{param}.output"), f"{param}.call_id")
        case "reasoning":
            for field in ("summary", "content"):
                if item.get(field):
                    script.say("assistant", *said.thought(said.words(item[field], f"{param}.{field}")))
        case "mcp_call":
            _own_call(item, param, script)
        case "item_reference":
            part = referred[item["id"]]
            script.say("assistant", part)
            if isinstance(part, Tool):
                script.calls[part.call_id] = part.name
        case _:
            raise unsupported(f"{param}.type", f"Items of the type '{kind[:50]}' are not taken.")


def _own_call(item: dict[str, Any], param: str, script: Script) -> None:
    """A call that an agent of ours has made and answered, sent back."""
    call_id = look.text(item.get("id"), f"{param}.id")
    name = look.text(item.get("name"), f"{param}.name")
    arguments = look.text(item.get("arguments"), f"{param}.arguments")
    script.say("assistant", Tool(call_id, name, arguments, "done", item.get("output"), bool(item.get("error"))))


def _message(role: str, content: Json, param: str, script: Script) -> None:
    place = f"{param}.content"
    match role:
        case "user":
            script.say("user", *said.content(content, place))
        case "assistant":
            script.say("assistant", Text(said.words(content, place)))
        case _:
            script.instruct(said.words(content, place), param)


def read_chat(messages: Sequence[dict[str, Any]], script: Script) -> Script:
    for n, message in enumerate(messages):
        param = f"messages[{n}]"
        role = look.one_of(message.get("role"), _CHAT_ROLES, f"{param}.role")
        if role == "tool":
            call_id = look.text(message.get("tool_call_id"), f"{param}.tool_call_id")
            output = said.words(message.get("content"), f"{param}.content")
            script.result(call_id, output, f"{param}.tool_call_id")
        elif role == "assistant":
            _assistant(message, param, script)
        else:
            _message(role, message.get("content"), param, script)
    return script


def _assistant(message: dict[str, Any], param: str, script: Script) -> None:
    thought = look.optional_text(message, "reasoning_content", param)
    calls = look.things(message.get("tool_calls") or [], f"{param}.tool_calls")
    if message.get("function_call") is not None:
        raise unsupported(f"{param}.function_call", "Send it as 'tool_calls'.")
    script.say("assistant", *said.thought(thought or ""))
    given = message.get("content")
    if given is None and not calls:
        given = look.optional_text(message, "refusal", param)
        if given is None:
            raise Wrong(f"{param}.content", f"'{param}' has neither content nor tool calls.")
    if given is not None and (text := said.words(given, f"{param}.content")):
        script.say("assistant", Text(text))
    for n, call in enumerate(calls):
        place = f"{param}.tool_calls[{n}]"
        asked = look.thing(call, place)
        function = look.thing(asked.get("function"), f"{place}.function")
        name = look.text(function.get("name"), f"{place}.function.name")
        arguments = look.text(function.get("arguments"), f"{place}.function.arguments")
        script.call(look.text(asked.get("id"), f"{place}.id"), name, arguments)
