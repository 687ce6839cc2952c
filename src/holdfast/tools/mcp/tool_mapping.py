"""MCP server configuration, and the translation of the SDK's tools and results. Does not import the SDK."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

from holdfast.ports.model import Media
from holdfast.ports.tool import Rule, ToolResult, ToolTraits
from holdfast.tools.mcp.oauth import OAuthSecrets

MAX_NAME: Final = 64  # The longest tool name that providers accept


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A program that is started on demand. It gets the harmless part of the server's environment, and `env`."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    trusted: bool = True  # Whether its hints about read-only tools are trusted: it runs as the server's user anyway


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server reached over streamable HTTP."""

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    trusted: bool = False  # Whether its hints about read-only tools are believed
    oauth: OAuthSecrets | None = field(default=None, compare=False, repr=False)  # None: OAuth is not used

    @property
    def uses_oauth(self) -> bool:
        """A header that somebody set goes before OAuth."""
        return self.oauth is not None and not any(name.lower() == "authorization" for name in self.headers)


McpServer = StdioServer | HttpServer


def is_local(server: McpServer) -> bool:
    """Whether it runs on this machine."""
    return isinstance(server, StdioServer) or urlsplit(server.url).hostname in ("localhost", "127.0.0.1", "::1")


def tool_name(server: str, tool: str) -> str:
    """`server__tool`, in characters that every provider accepts."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", f"{server}__{tool}")[:MAX_NAME]


def traits(annotations: Any, *, trusted: bool, instructions: str = "") -> ToolTraits:
    """The traits that a server's annotations state. Hints to ask less count only for a trusted server."""
    reads = trusted and bool(getattr(annotations, "read_only_hint", None))
    repeatable = reads or (trusted and bool(getattr(annotations, "idempotent_hint", None)))
    rule: Rule = "allow" if reads else "ask"
    return ToolTraits(repeatable=repeatable, read_only=reads, rule=rule, instructions=instructions)


def result(answer: Any, saved: Mapping[int, str] = MappingProxyType({}), images: tuple[Media, ...] = ()) -> ToolResult:
    """Text unchanged, other blocks as a description, and structured content if there is nothing else. `saved` are paths
    of files in the workspace, by the position of their block."""
    is_error = bool(answer.is_error)
    blocks = [_block(block, saved.get(at)) for at, block in enumerate(answer.content)]
    if not blocks and answer.structured_content is not None:
        return ToolResult(answer.structured_content, is_error)
    return ToolResult("\n".join(blocks) or "(no output)", is_error, images)


def resource_text(resource: Any) -> str:
    text = getattr(resource, "text", None)
    return str(text) if text is not None else f"[resource: {resource.uri}, {resource.mime_type}]"


def _size(encoded: str) -> int:
    return len(encoded) * 3 // 4 - encoded[-2:].count("=")


def _block(block: Any, path: str | None) -> str:
    where = "" if path is None else f", saved as {path} in the workspace"
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"[{block.type}: {block.mime_type}, {_size(block.data)} bytes{where}]"
        case "resource_link":
            return f"[resource: {block.uri} {block.name or ''}]".replace(" ]", "]")
        case "resource" if getattr(block.resource, "blob", None) is not None:
            found = block.resource
            return f"[resource: {found.uri}, {found.mime_type}, {_size(found.blob)} bytes{where}]"
        case "resource":
            return resource_text(block.resource)
        case other:
            return f"[{other}]"
