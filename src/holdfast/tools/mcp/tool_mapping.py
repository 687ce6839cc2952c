"""Translates the SDK's tools and results: names, traits and contents of tools. Does not import the SDK. Which tools ask
before they run follows from `to_traits` and `tools.approval_policy`."""

import hashlib
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from holdfast.ports.model import Media
from holdfast.ports.tool import Rule, ToolResult, ToolTraits

MAX_NAME: Final = 64  # The longest tool name that providers accept
_HASH: Final = 8  # Hexadecimal digits


def tool_name(server: str, tool: str) -> str:
    """`server__tool`, in characters that every provider accepts. A name that is too long is cut and ends with a hash of
    the whole, so that it stays different from others with the same beginning. If two tools
    have one name: `tools.mcp.servers` (the earlier server wins) and `tools.tool_selection` (built-in tools win)."""
    whole = f"{server}__{tool}"
    name = re.sub(r"[^A-Za-z0-9_-]", "_", whole)
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{name[: MAX_NAME - _HASH - 1]}_{digest}"


def to_traits(annotations: Any, *, trusted: bool, instructions: str = "") -> ToolTraits:
    """The traits that a server's annotations state. Hints to ask less count only for a trusted server."""
    reads = trusted and bool(getattr(annotations, "read_only_hint", None))
    repeatable = reads or (trusted and bool(getattr(annotations, "idempotent_hint", None)))
    rule: Rule = "allow" if reads else "ask"
    return ToolTraits(repeatable=repeatable, read_only=reads, rule=rule, instructions=instructions)


def to_result(
    answer: Any, saved: Mapping[int, str] = MappingProxyType({}), images: tuple[Media, ...] = ()
) -> ToolResult:
    """Keeps texts and describes other blocks. Structured content is used only if there are no blocks. `saved` are paths
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
