"""Messages of a session as messages of a chat completion, as a client could send them again. Pure."""

from collections.abc import Sequence
from typing import Any

from holdfast.core.parts import FilePart, ReasoningPart, TextPart, ToolPart
from holdfast.core.session import Message
from holdfast.server.openai.json_bytes import as_text


def list_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """What the model was shown, oldest first."""
    return [
        found
        for message in messages
        for found in (_user_messages(message) if message.role == "user" else [_assistant_message(message)])
    ]


def _user_messages(message: Message) -> list[dict[str, Any]]:
    """Results of the client's tools are messages of their own, before the text. A text alone is not a list."""
    results: list[dict[str, Any]] = []
    content: list[dict[str, Any]] = []
    for index, part in enumerate(message.parts):
        match part:
            case ToolPart(call_id, _, _, _, result):
                about = {"id": f"{message.id}_{index}", "role": "tool"}
                results.append({**about, "tool_call_id": call_id, "content": as_text(result)})
            case TextPart(text):
                content.append({"type": "text", "text": text})
            case FilePart(file_id, _, media_type) if media_type.startswith("image/"):
                content.append({"type": "image_url", "file_id": file_id})
            case FilePart(file_id, name):
                content.append({"type": "file", "file": {"file_id": file_id, "filename": name}})
            case _:
                pass
    if not content:
        return results
    alone = content[0].get("text") if len(content) == 1 else None
    return [*results, {"id": message.id, "role": "user", "content": content if alone is None else alone}]


def _assistant_message(message: Message) -> dict[str, Any]:
    """Calls of the server's tools are left out, as they are in a completion."""
    text = "".join(part.text for part in message.parts if isinstance(part, TextPart))
    thoughts = "".join(part.text for part in message.parts if isinstance(part, ReasoningPart))
    calls = [
        {"id": part.call_id, "type": "function", "function": {"name": part.name, "arguments": as_text(part.args)}}
        for part in message.parts
        if isinstance(part, ToolPart) and part.state == "not_run"
    ]
    return {
        "id": message.id,
        "role": "assistant",
        "content": text or (None if calls else ""),
        **({"reasoning_content": thoughts} if thoughts else {}),
        **({"tool_calls": calls} if calls else {}),
    }
