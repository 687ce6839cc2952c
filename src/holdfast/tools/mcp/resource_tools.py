"""The resources of an MCP server as two tools: one lists them, one reads them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.core.parts import Json
from holdfast.ports.model import ToolSpec
from holdfast.ports.tool import ToolContext, ToolResult, ToolTraits
from holdfast.tools.mcp.connection import McpConnection
from holdfast.tools.mcp.tool_mapping import resource_text, tool_name
from holdfast.tools.schemas import object_spec

Request = Callable[[McpConnection], Awaitable[Any]]
Send = Callable[[Request], Awaitable[Any]]

_MAX_LISTED: Final = 500


@dataclass(frozen=True, slots=True)
class McpResourceTool:
    spec: ToolSpec
    traits: ToolTraits
    send: Send
    action: Callable[[Any, Mapping[str, Json]], Awaitable[str]]

    def scope(self, args: Mapping[str, Json]) -> str:
        return ""

    async def run(self, args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        return ToolResult(await self.send(lambda connection: self.action(connection.client, args)))


def resource_tools(server: str, traits: ToolTraits, send: Send) -> list[McpResourceTool]:
    cursor = {"type": "string", "description": "From an earlier answer, to list more."}
    listing = object_spec(
        tool_name(server, "list_resources"), f"List what {server} offers to read.", {"cursor": cursor}
    )
    uri = {"type": "string", "description": "A URI from the list, or one that fits a template of it."}
    reading = object_spec(
        tool_name(server, "read_resource"), f"Read something that {server} offers.", {"uri": uri}, "uri"
    )
    return [McpResourceTool(listing, traits, send, _list), McpResourceTool(reading, traits, send, _read)]


async def _list(client: Any, args: Mapping[str, Json]) -> str:
    cursor = args.get("cursor")
    page = await client.list_resources(cursor=cursor)
    lines = [_line(str(each.uri), each) for each in page.resources[:_MAX_LISTED]]
    if cursor is None:
        templates = (await client.list_resource_templates()).resource_templates
        lines += [_line(str(each.uri_template), each) for each in templates[:_MAX_LISTED]]
    if page.next_cursor is not None:
        lines.append(f"[There are more: cursor {page.next_cursor!r}]")
    return "\n".join(lines) or "(no resources)"


def _line(uri: str, entry: Any) -> str:
    return " · ".join(text for text in (uri, entry.title or entry.name, entry.description, entry.mime_type) if text)


async def _read(client: Any, args: Mapping[str, Json]) -> str:
    answer = await client.read_resource(args["uri"])
    return "\n".join(resource_text(each) for each in answer.contents) or "(empty)"
