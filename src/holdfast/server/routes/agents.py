"""Agents: list, test, add, change and remove them, what they offer, and where they may work. How programs are found and
kept: `app.agent_programs`."""

from functools import partial
from typing import Annotated, Final

from pydantic import Field
from starlette.requests import Request

from holdfast.core.errors import NotAllowedError, NotFoundError
from holdfast.core.ids import LOCAL, SessionId
from holdfast.ports.store import SessionQuery
from holdfast.server import security_log
from holdfast.server.client_address import request_address
from holdfast.server.context import AgentPrograms, ApiContext
from holdfast.server.disconnects import run_while_connected
from holdfast.server.parameters import SessionIdPath
from holdfast.server.reauthentication import require_recent_login
from holdfast.server.routing import Router
from holdfast.server.schemas import agents as s

router = Router("agents", "/api/agents")

AgentName = Annotated[str, Field(max_length=200)]
NewAgentName = Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,40}$", description="Name of an agent.")]

_SEARCHED_SESSIONS: Final = 200  # Recent sessions whose directories are offered again
_RECENT: Final = 10


def _programs(api: ApiContext, name: str) -> AgentPrograms:
    if api.programs is None:
        raise NotFoundError("agent", name)
    return api.programs


@router.get("")
async def list_agents(api: ApiContext) -> s.AgentListResponse:
    """List agents; for those that are unavailable, with the reason."""
    items = [
        s.AgentResponse(
            name=name,
            can_continue=can_continue,
            can_steer=can_steer,
            is_program=False,
            available=True,
            reason=None,
        )
        for name, can_continue, can_steer in api.agents
    ]
    return s.AgentListResponse(items=[*items, *(() if api.programs is None else await api.programs.list())])


@router.get("/directories")
async def list_directories(api: ApiContext) -> s.AgentDirectoriesResponse:
    """List where agent programs may work, and the directories of recent sessions."""
    allowed = [] if api.programs is None else api.programs.allowed_directories()
    views = await api.engine.sessions.list(SessionQuery(LOCAL, limit=_SEARCHED_SESSIONS)) if allowed else ()
    recent = dict.fromkeys(view.session.cwd for view in views if view.session.cwd)
    return s.AgentDirectoriesResponse(allowed=list(allowed), recent=[path for path in recent if path][:_RECENT])


@router.post("/directories/check")
async def check_directory(api: ApiContext, body: s.AgentDirectoryRequest) -> s.AgentDirectoryResponse:
    """Check whether agent programs may work in a directory; if not, the error says why."""
    if api.programs is None:
        raise NotAllowedError("choose a directory", "this server has no agent programs")
    return s.AgentDirectoryResponse(path=await api.programs.resolve_directory(body.path))


@router.post("/{name}/test")
async def try_agent(api: ApiContext, request: Request, name: AgentName) -> s.AgentTestResponse:
    """Start an agent's program, read its name and version, and open an empty session. This uses no tokens. The
    program ends if the client disconnects. Needs a recent login."""
    require_recent_login(request, "start an agent")
    return await run_while_connected(request.receive, partial(_programs(api, name).test, name))


@router.get("/{name}/options")
async def list_options(
    api: ApiContext, name: AgentName, session_id: SessionIdPath | None = None
) -> s.AgentOptionsResponse:
    """List the modes, models and other options of an agent program and its slash commands, in a session if one is
    given."""
    programs = _programs(api, name)
    session = None if session_id is None else (await api.engine.sessions.get(SessionId(session_id))).session
    return await programs.options(name, session)


@router.put("/{name}", status=204)
async def put_agent(api: ApiContext, request: Request, name: NewAgentName, body: s.AgentRequest) -> None:
    """Add an agent program, or change one that was added here. Its variables are kept only if the command stays the
    same. Needs a recent login."""
    require_recent_login(request, "add or change an agent")
    if not api.authenticator.password_set:
        raise NotAllowedError(
            "add an agent",
            "it needs a server password. Set one in Password and tokens, or add the command to holdfast.toml",
        )
    await _programs(api, name).put(name, body)
    address = request_address(request, api.trusted_proxies)
    security_log.record("agent stored", address=address, name=name, target=body.command)


@router.delete("/{name}", status=204)
async def drop_agent(api: ApiContext, request: Request, name: NewAgentName) -> None:
    """Remove an agent program that was added here."""
    await _programs(api, name).drop(name)
    security_log.record("agent removed", address=request_address(request, api.trusted_proxies), name=name)
