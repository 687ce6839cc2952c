"""A request as OpenAI's chat format writes it. Pure."""

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import assert_never

from holdfast.agents.models.dialects import Dialect
from holdfast.agents.models.port import (
    Ability,
    AssistantSaid,
    Media,
    Request,
    Said,
    ToolCall,
    ToolSaid,
    ToolSpec,
    UserSaid,
)
from holdfast.core.parts import Json, Reasoning, Text

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/yaml", "application/x-yaml")
_TEXT_ENDINGS = ("+json", "+xml", "javascript", "toml", "x-sh", "x-python", "sql")


def body(request: Request, model: str, dialect: Dialect, abilities: frozenset[Ability]) -> bytes:
    """The JSON body of a streaming request."""
    messages = _messages(request, dialect, abilities)
    data: dict[str, Json] = {"model": model, "messages": messages, "stream": True}
    if dialect.ask_usage:
        data["stream_options"] = {"include_usage": True}
    for name, value in request.settings.items():
        if name in dialect.settings and value is not None:
            data[dialect.renamed.get(name, name)] = value
    if request.tools:
        data["tools"] = [_tool(tool) for tool in request.tools]
    else:
        data.pop("tool_choice", None)
        data.pop("parallel_tool_calls", None)
    data.update(dialect.extra)
    if request.messages and isinstance(request.messages[-1], AssistantSaid):
        _ask_to_go_on(data, dialect)
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _tool(tool: ToolSpec) -> Json:
    function: dict[str, Json] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def call_ids(request: Request) -> set[str]:
    """Those of the conversation: a new call must not have one of them."""
    said = (part for m in request.messages if isinstance(m, AssistantSaid) for part in m.parts)
    return {part.call_id for part in said if isinstance(part, ToolCall)}


def is_text(media: Media) -> bool:
    kind = media.media_type.partition(";")[0].strip().lower()
    return kind.startswith(_TEXT_TYPES) or kind.endswith(_TEXT_ENDINGS)


def as_text(media: Media) -> str:
    """A text file as part of a message."""
    text = media.data.decode("utf-8", "replace")
    return f"File {media.name}:\n\n{text}\n"


def left_out(media: Media) -> str:
    """Stands for a file that the model cannot read: the rest of the conversation is still worth answering."""
    return f"[The file {media.name} ({media.media_type}, {len(media.data):,} bytes) cannot be read by this model.]"


def data_url(media: Media) -> str:
    return f"data:{media.media_type};base64,{base64.b64encode(media.data).decode('ascii')}"


def _messages(request: Request, dialect: Dialect, abilities: frozenset[Ability]) -> list[Json]:
    messages: list[Json] = []
    if request.system:
        messages.append({"role": "system", "content": request.system})
    since = _turn_begins(request.messages)
    for at, said in enumerate(request.messages):
        match said:
            case UserSaid(content):
                messages.append({"role": "user", "content": _content(content, abilities)})
            case AssistantSaid():
                written = _assistant(said, dialect, this_turn=at > since)
                if written is not None:
                    messages.append(written)
            case ToolSaid(call_id, _, text, is_error):
                shown = f"Error: {text}" if is_error and not text.lower().startswith("error") else text
                messages.append({"role": "tool", "tool_call_id": _id(call_id, dialect), "content": shown})
            case _:
                assert_never(said)
    return messages


def _turn_begins(messages: Sequence[Said]) -> int:
    return max((at for at, said in enumerate(messages) if isinstance(said, UserSaid)), default=-1)


def _content(content: tuple[str | Media, ...], abilities: frozenset[Ability]) -> Json:
    parts = [_part(item, abilities) for item in content]
    if all(part["type"] == "text" for part in parts):  # plain text is what every server takes
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _part(item: str | Media, abilities: frozenset[Ability]) -> dict[str, Json]:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if is_text(item):
        return {"type": "text", "text": as_text(item)}
    if item.media_type.startswith("image/") and "images" in abilities:
        return {"type": "image_url", "image_url": {"url": data_url(item)}}
    if item.media_type == "application/pdf" and "documents" in abilities:
        return {"type": "file", "file": {"filename": item.name, "file_data": data_url(item)}}
    return {"type": "text", "text": left_out(item)}


def _assistant(said: AssistantSaid, dialect: Dialect, *, this_turn: bool) -> Json | None:
    text = "".join(part.text for part in said.parts if isinstance(part, Text))
    calls = [part for part in said.parts if isinstance(part, ToolCall)]
    if not text and not calls:
        return None
    message: dict[str, Json] = {"role": "assistant", "content": text if text or not calls else None}
    thought = [part for part in said.parts if isinstance(part, Reasoning)]
    details = [d for part in thought for d in _details(part.provider)]
    if details:
        message["reasoning_details"] = details
    elif calls and this_turn and dialect.reasoning_back == "tool-turns" and thought:
        message["reasoning_content"] = "".join(part.text for part in thought)
    if calls:
        message["tool_calls"] = [_call(call, dialect) for call in calls]
    return message


def _details(provider: Json) -> Sequence[Json]:
    details = provider.get("reasoning_details") if isinstance(provider, dict) else None
    return details if isinstance(details, list) else ()


def _call(call: ToolCall, dialect: Dialect) -> Json:
    args = call.args if isinstance(call.args, str) else json.dumps(call.args, ensure_ascii=False)
    if call.invalid is not None:  # strict servers refuse a history with arguments that are no JSON
        args = json.dumps({"invalid": args}, ensure_ascii=False)
    written: dict[str, Json] = {
        "id": _id(call.call_id, dialect),
        "type": "function",
        "function": {"name": call.name or "unknown", "arguments": args},
    }
    if isinstance(call.provider, dict) and "extra_content" in call.provider:
        written["extra_content"] = call.provider["extra_content"]
    return written


def _id(call_id: str, dialect: Dialect) -> str:
    if not dialect.short_ids or (len(call_id) == 9 and call_id.isascii() and call_id.isalnum()):
        return call_id
    value = int.from_bytes(hashlib.sha256(call_id.encode()).digest()[:8])
    return "".join(_DIGITS[value // 62**n % 62] for n in range(9))


def _ask_to_go_on(data: dict[str, Json], dialect: Dialect) -> None:
    if dialect.prefill == "flags":
        data["continue_final_message"] = True
        data["add_generation_prompt"] = False
    elif dialect.prefill == "prefix":
        data["messages"][-1]["prefix"] = True
