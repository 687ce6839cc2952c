"""Which servers there are, as plain values, and what their answers become. Knows the SDK's shapes, imports nothing of
it."""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from holdfast.agents.tools.port import Rule, ToolResult, Traits
from holdfast.core.values import dataclass

MAX_NAME: Final = 64
"""What providers take as the name of a tool."""


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A program that is started on demand. Of the server's environment it gets only what is harmless, and `env`."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    trusted: bool = True
    """Its word counts on which of its tools only read: it runs as the server's user anyway."""


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server that speaks streamable HTTP."""

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    trusted: bool = False
    """Whether its word counts on which of its tools only read."""


McpServer = StdioServer | HttpServer


def tool_name(server: str, tool: str) -> str:
    """`server__tool`, in letters that every provider takes."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", f"{server}__{tool}")[:MAX_NAME]


def traits(annotations: Any, *, trusted: bool) -> Traits:
    """What a server says of its tool. A hint to ask less is followed only where the server is trusted."""
    reads = trusted and bool(getattr(annotations, "read_only_hint", None))
    repeatable = reads or (trusted and bool(getattr(annotations, "idempotent_hint", None)))
    rule: Rule = "allow" if reads else "ask"
    return Traits(repeatable=repeatable, read_only=reads, rule=rule)


def result(answer: Any) -> ToolResult:
    """Text as it is; what is no text is described; structured content where there is nothing else."""
    is_error = bool(answer.is_error)
    blocks = [_block(block) for block in answer.content]
    if not blocks and answer.structured_content is not None:
        return ToolResult(answer.structured_content, is_error)
    return ToolResult("\n".join(blocks) or "(no output)", is_error)


def _block(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            size = len(block.data) * 3 // 4 - block.data[-2:].count("=")
            return f"[{block.type}: {block.mime_type}, {size} bytes]"
        case "resource_link":
            return f"[resource: {block.uri} {block.name or ''}]".replace(" ]", "]")
        case "resource":
            text = getattr(block.resource, "text", None)
            return str(text) if text is not None else f"[resource: {block.resource.uri}, {block.resource.mime_type}]"
        case other:
            return f"[{other}]"
