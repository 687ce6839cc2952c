"""Requests of MCP servers to the run's model, as a bounded request without tools. Does not import the SDK. Whether a
person is asked first: `tools.mcp.server_requests`."""

import base64
import binascii
from typing import Any, Final

from holdfast.core.image_types import image_type
from holdfast.core.parts import TextPart
from holdfast.ports.model import AssistantMessage, ChatMessage, Media, ModelRequest, UserMessage

MAX_TOKENS: Final = 4_096  # Of an answer, whatever the server asks for
_MAX_INPUT: Final = 100_000  # Characters
_MAX_MESSAGES: Final = 100
_MAX_IMAGE: Final = 5_000_000  # Characters in base 64
_MAX_IMAGES: Final = 10_000_000  # Characters in base 64, of all images together
_PREVIEW: Final = 3_000  # Characters that the person is shown


def read_request(params: Any) -> ModelRequest:
    """Raises ValueError for what is not supported or too large."""
    if params.tools:
        raise ValueError("Tools are not supported in sampling requests.")
    if len(params.messages) > _MAX_MESSAGES:
        raise ValueError(f"At most {_MAX_MESSAGES} messages are supported.")
    images = sum(len(block.data) for message in params.messages for block in _blocks(message) if block.type == "image")
    if images > _MAX_IMAGES:  # before they are decoded
        raise ValueError(
            f"The images have {_megabytes(images)} in total; at most {_megabytes(_MAX_IMAGES)} are supported."
        )
    messages = tuple(_message(message) for message in params.messages)
    size = sum(len(item) for message in messages for item in _texts(message)) + len(params.system_prompt or "")
    if size > _MAX_INPUT:
        raise ValueError(f"The messages have {size} characters; at most {_MAX_INPUT} are supported.")
    if not messages or not isinstance(messages[-1], UserMessage):
        raise ValueError("The last message must be the user's.")
    settings: dict[str, Any] = {"max_tokens": max(1, min(params.max_tokens, MAX_TOKENS))}
    if params.temperature is not None:
        settings["temperature"] = params.temperature
    if params.stop_sequences:
        settings["stop"] = list(params.stop_sequences)[:4]
    return ModelRequest(params.system_prompt, messages, (), settings)


def preview(request: ModelRequest) -> str:
    """The text that is shown to the person who allows or rejects the request."""
    lines = [f"System: {request.system}"] if request.system else []
    for message in request.messages:
        lines += [f"{'User' if isinstance(message, UserMessage) else 'Assistant'}: {' '.join(_texts(message))}"]
    text = "\n\n".join(lines)
    shown = text if len(text) <= _PREVIEW else f"{text[:_PREVIEW]}\n[… {len(text) - _PREVIEW} more characters …]"
    return f"{shown}\n\n(up to {request.settings['max_tokens']} tokens)"


def _blocks(message: Any) -> list[Any]:
    return message.content if isinstance(message.content, list) else [message.content]


def _megabytes(base64_length: int) -> str:
    return f"{base64_length * 3 / 4 / 1e6:.2f} MB"


def _message(message: Any) -> ChatMessage:
    blocks = _blocks(message)
    if message.role == "assistant":
        if any(block.type != "text" for block in blocks):
            raise ValueError("Messages of the assistant can only be text.")
        return AssistantMessage(tuple(TextPart(block.text) for block in blocks))
    return UserMessage(tuple(_item(block) for block in blocks))


def _item(block: Any) -> str | Media:
    if block.type == "text":
        return str(block.text)
    if block.type == "image" and len(block.data) <= _MAX_IMAGE:
        try:
            data = base64.b64decode(block.data)
        except binascii.Error:
            data = b""
        kind = image_type(data)
        if kind is not None:
            return Media("image", kind, data)
    raise ValueError(f"Messages can be text and images of up to {_megabytes(_MAX_IMAGE)}.")


def _texts(message: ChatMessage) -> list[str]:
    if isinstance(message, UserMessage):
        return [item if isinstance(item, str) else "[image]" for item in message.content]
    assert isinstance(message, AssistantMessage)
    return [part.text for part in message.parts if isinstance(part, TextPart)]
