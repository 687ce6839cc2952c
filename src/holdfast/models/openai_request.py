"""Encodes a request in OpenAI's chat format. Pure. Which settings a server is sent: `models.dialects`."""

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import assert_never

from holdfast.core.parts import Json, ReasoningPart, TextPart
from holdfast.models.dialects import ChatDialect
from holdfast.models.tool_call_assembler import args_text
from holdfast.ports.model import (
    AssistantMessage,
    Media,
    ModelRequest,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)

INLINE = "inline"  # Provider data: the tags around reasoning that a model wrote into its text
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def body(request: ModelRequest, model: str, dialect: ChatDialect) -> bytes:
    """The JSON body of a streaming request."""
    messages = _messages(request, dialect)
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
    if request.messages and isinstance(request.messages[-1], AssistantMessage):
        if dialect.prefill == "flags":
            data |= {"continue_final_message": True, "add_generation_prompt": False}
        elif dialect.prefill == "prefix":
            messages[-1]["prefix"] = True
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _tool(tool: ToolSpec) -> Json:
    strict = {} if tool.strict is None else {"strict": tool.strict}
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters), **strict}
    return {"type": "function", "function": function}


def call_ids(request: ModelRequest) -> set[str]:
    """Call ids of the conversation, which a new call must not reuse."""
    parts = (part for m in request.messages if isinstance(m, AssistantMessage) for part in m.parts)
    return {part.call_id for part in parts if isinstance(part, ToolCall)}


def _messages(request: ModelRequest, dialect: ChatDialect) -> list[Json]:
    messages: list[Json] = []
    if request.system:
        messages.append({"role": "system", "content": request.system})
    questions = [index for index, message in enumerate(request.messages) if isinstance(message, UserMessage)]
    turn_start = questions[-1] if questions else -1
    images: list[str | Media] = []  # of tools, still to be sent
    for index, message in enumerate(request.messages):
        match message:
            case UserMessage(content):
                messages.append({"role": "user", "content": _content((*images, *content))})
                images.clear()
            case AssistantMessage():
                _add_images(messages, images)
                written = _assistant(message, dialect, this_turn=index > turn_start)
                if written is not None:
                    messages.append(written)
            case ToolMessage(call_id, name, text, is_error, found):
                shown = f"Error: {text}" if is_error and not text.lower().startswith("error") else text
                tool_content: Json = shown
                if dialect.tool_images == "tool":
                    tool_content = _content((shown, *found))
                elif found:
                    images += [f"Images returned by the tool {name}:", *found]
                messages.append({"role": "tool", "tool_call_id": _id(call_id, dialect), "content": tool_content})
            case _:
                assert_never(message)
    _add_images(messages, images)
    return messages


def _add_images(messages: list[Json], images: list[str | Media]) -> None:
    """Images of tools follow all results of their step, which may not be parted, in a message of their own."""
    if images:
        messages.append({"role": "user", "content": _content(tuple(images))})
        images.clear()


def _content(content: tuple[str | Media, ...]) -> Json:
    parts = [_part(item) for item in content]
    if all(part["type"] == "text" for part in parts):  # every server accepts plain text
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _part(item: str | Media) -> dict[str, Json]:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    url = f"data:{item.media_type};base64,{base64.b64encode(item.data).decode('ascii')}"
    if item.media_type == "application/pdf":
        return {"type": "file", "file": {"filename": item.name, "file_data": url}}
    return {"type": "image_url", "image_url": {"url": url}}


def _assistant(answer: AssistantMessage, dialect: ChatDialect, *, this_turn: bool) -> Json | None:
    text = "".join(_text(part, this_turn=this_turn) for part in answer.parts if not isinstance(part, ToolCall))
    calls = [part for part in answer.parts if isinstance(part, ToolCall)]
    if not text and not calls:
        return None
    message: dict[str, Json] = {"role": "assistant", "content": text if text or not calls else None}
    reasoning = [part for part in answer.parts if isinstance(part, ReasoningPart) and not _is_inline(part)]
    details = [d for part in reasoning for d in _details(part.provider)]
    if details:
        message["reasoning_details"] = details
    elif calls and this_turn and dialect.reasoning_back == "tool-turns" and reasoning:
        message["reasoning_content"] = "".join(part.text for part in reasoning)
    if calls:
        message["tool_calls"] = [_call(call, dialect) for call in calls]
    return message


def _text(part: TextPart | ReasoningPart, *, this_turn: bool) -> str:
    """Text as the model wrote it. Reasoning is part of it within the turn, as chat templates have it."""
    if isinstance(part, TextPart):
        return part.text
    match part.provider:
        case {"inline": [str(before), str(after)]} if this_turn:
            return f"{before}{part.text}{after}"
        case _:
            return ""


def _details(provider: Json) -> Sequence[Json]:
    details = provider.get("reasoning_details") if isinstance(provider, dict) else None
    return details if isinstance(details, list) else ()


def _is_inline(part: ReasoningPart) -> bool:
    return isinstance(part.provider, dict) and INLINE in part.provider


def _call(call: ToolCall, dialect: ChatDialect) -> Json:
    args = args_text(call.args) if call.text is None or call.invalid is not None else call.text
    if call.invalid is not None:  # strict servers reject a history with invalid arguments
        args = json.dumps({"invalid": args}, ensure_ascii=False)
    written: dict[str, Json] = {
        "id": _id(call.call_id, dialect),
        "type": "function",
        "function": {"name": call.name or "unknown", "arguments": args},
    }
    if isinstance(call.provider, dict) and "extra_content" in call.provider:
        written["extra_content"] = call.provider["extra_content"]
    return written


def _id(call_id: str, dialect: ChatDialect) -> str:
    if not dialect.short_ids or (len(call_id) == 9 and call_id.isascii() and call_id.isalnum()):
        return call_id
    value = int.from_bytes(hashlib.sha256(call_id.encode()).digest()[:8])
    return "".join(_DIGITS[value // 62**n % 62] for n in range(9))
