"""Prompts of MCP servers as text for the message box. Does not import the SDK."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from holdfast.tools.mcp.tool_mapping import resource_text
from holdfast.tools.result_text import shorten

_MAX_PROMPTS: Final = 200  # Of one server
_MAX_ARGUMENTS: Final = 20
_MAX_DESCRIPTION: Final = 500  # Characters
_MAX_TEXT: Final = 100_000


@dataclass(frozen=True, slots=True)
class McpPromptArgument:
    name: str
    description: str
    required: bool


@dataclass(frozen=True, slots=True)
class McpPrompt:
    server: str
    name: str
    description: str
    arguments: tuple[McpPromptArgument, ...]


def read_list(server: str, page: Any) -> Sequence[McpPrompt]:
    return [
        McpPrompt(
            server,
            prompt.name,
            (prompt.description or prompt.title or "")[:_MAX_DESCRIPTION],
            tuple(
                McpPromptArgument(each.name, (each.description or "")[:_MAX_DESCRIPTION], bool(each.required))
                for each in (prompt.arguments or ())[:_MAX_ARGUMENTS]
            ),
        )
        for prompt in page.prompts[:_MAX_PROMPTS]
    ]


def as_text(prompt: Any) -> str:
    """The messages one after another. An answer that the server made up is marked as such."""
    texts = [
        f"Assistant: {_content(message.content)}" if message.role == "assistant" else _content(message.content)
        for message in prompt.messages
    ]
    return shorten("\n\n".join(text for text in texts if text), _MAX_TEXT)


def _content(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "resource":
            return resource_text(block.resource)
        case "resource_link":
            return str(block.uri)
        case other:
            return f"[{other}]"
