"""Tools and MCP servers: list, add, change, remove, test."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field
from starlette.requests import Request

from holdfast.core.errors import NotAllowedError
from holdfast.ports.agent import AgentError
from holdfast.server import security_log
from holdfast.server.client_address import request_address
from holdfast.server.context import ApiContext, ToolAdmin
from holdfast.server.reauthentication import require_recent_login
from holdfast.server.routing import Router
from holdfast.server.schemas import settings as s

router = Router("tools", "/api")

ServerNamePath = Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,31}$", description="Name of an MCP server.")]


def require_tool_admin(api: ApiContext) -> ToolAdmin:
    if api.tool_admin is None:
        raise NotAllowedError("do that", "the agents of this server use neither models nor tools")
    return api.tool_admin


@router.get("/tools")
async def list_tools(api: ApiContext) -> s.ToolListResponse:
    """List the built-in tools and those of the MCP servers that can be reached."""
    found = [] if api.tool_admin is None else await api.tool_admin.tools()
    return s.ToolListResponse(items=list(found), next=None)


@router.get("/mcp")
async def list_servers(api: ApiContext) -> s.McpServerListResponse:
    found = [] if api.tool_admin is None else await api.tool_admin.servers()
    return s.McpServerListResponse(items=list(found), next=None)


@router.put("/mcp/{name}", status=204)
async def put_server(api: ApiContext, request: Request, name: ServerNamePath, body: s.McpServerRequest) -> None:
    """Add an MCP server, or change one that was added here. Its token is kept only if the URL stays the same. Needs a
    recent login."""
    require_recent_login(request, "add or change an MCP server")
    if body.command is not None and not api.authenticator.password_set:
        raise NotAllowedError(
            "add a local command",
            "it needs a server password. Set one in Password and tokens, or add the command to holdfast.toml",
        )
    await require_tool_admin(api).put_server(name, body)
    address, target = request_address(request, api.trusted_proxies), body.command or urlsplit(body.url or "").hostname
    security_log.record("MCP server stored", address=address, name=name, target=target or "")


@router.delete("/mcp/{name}", status=204)
async def drop_server(api: ApiContext, request: Request, name: ServerNamePath) -> None:
    await require_tool_admin(api).drop_server(name)
    security_log.record("MCP server removed", address=request_address(request, api.trusted_proxies), name=name)


@router.post("/mcp/{name}/test")
async def try_server(api: ApiContext, name: ServerNamePath) -> s.McpServerTestResponse:
    """Connect now and list the server's tools."""
    try:
        tools = await require_tool_admin(api).try_server(name)
    except AgentError as error:
        return s.McpServerTestResponse(ok=False, reason=error.message, tools=[])
    return s.McpServerTestResponse(ok=True, reason=None, tools=list(tools))
