"""Tools and MCP servers: list, add, change, remove, test. What each does: `app.tool_admin`."""

from html import escape
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import Field
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from holdfast.core.errors import NotAllowedError
from holdfast.ports.agent import AgentError
from holdfast.server import security_log
from holdfast.server.access_rules import is_https
from holdfast.server.client_address import request_address
from holdfast.server.context import ApiContext, ToolAdmin
from holdfast.server.html_pages import page
from holdfast.server.reauthentication import require_recent_login
from holdfast.server.routing import ResponseInfo, Router
from holdfast.server.schemas import settings as s

router = Router("tools", "/api")

_BACK: Final = '<p><a href="/settings#mcp">Back to settings</a></p>'

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


@router.get("/mcp/prompts")
async def list_prompts(api: ApiContext) -> s.McpPromptListResponse:
    """List the prompts of the MCP servers that can be reached."""
    found = [] if api.tool_admin is None else await api.tool_admin.prompts()
    return s.McpPromptListResponse(items=list(found), next=None)


@router.post("/mcp/{name}/prompts")
async def get_prompt(api: ApiContext, name: ServerNamePath, body: s.McpPromptRequest) -> s.McpPromptTextResponse:
    """Fill in a prompt of an MCP server and return its text."""
    text = await require_tool_admin(api).get_prompt(name, body.prompt, body.arguments)
    return s.McpPromptTextResponse(text=text)


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


@router.post("/mcp/{name}/sign-in")
async def start_sign_in(api: ApiContext, request: Request, name: ServerNamePath) -> s.McpSignInResponse:
    """Begin to sign in to a remote MCP server with OAuth. Open the returned address within ten minutes, in a browser
    that is logged in here. Needs a recent login."""
    require_recent_login(request, "sign in to an MCP server")
    scheme = "https" if is_https(request.headers) else "http"
    origin = request.headers.get("origin") or f"{scheme}://{request.headers.get('host', 'localhost')}"
    url = await require_tool_admin(api).start_sign_in(name, f"{origin}{api.root_path}/api/mcp/callback")
    return s.McpSignInResponse(authorization_url=url)


@router.delete("/mcp/{name}/sign-in", status=204)
async def sign_out(api: ApiContext, request: Request, name: ServerNamePath) -> None:
    """Remove the tokens of a remote MCP server."""
    await require_tool_admin(api).sign_out(name)
    security_log.record("MCP server signed out", address=request_address(request, api.trusted_proxies), name=name)


@router.get(
    "/mcp/callback", responses={200: ResponseInfo("A page that says whether it worked.", media_types=("text/html",))}
)
async def finish_sign_in(
    api: ApiContext,
    request: Request,
    state: Annotated[str, Field(max_length=500)],
    code: Annotated[str | None, Field(max_length=4000)] = None,
    iss: Annotated[str | None, Field(max_length=2000)] = None,
    error: Annotated[str | None, Field(max_length=500)] = None,
) -> Response:
    """Complete a sign-in: authorization servers send the browser here. Each `state` can be used once."""
    try:
        name = await require_tool_admin(api).finish_sign_in(state, code, iss, error)
    except AgentError as failed:
        text = f'<div class="card"><h1>Not connected</h1><p role="alert">{escape(failed.message)}</p>{_BACK}</div>'
        return HTMLResponse(page("Not connected", text, api.root_path), 400)
    security_log.record("MCP server signed in", address=request_address(request, api.trusted_proxies), name=name)
    text = f'<div class="card"><h1>Connected</h1><p>Agents can use the tools of {escape(name)} now.</p>{_BACK}</div>'
    return HTMLResponse(page("Connected", text, api.root_path))


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
