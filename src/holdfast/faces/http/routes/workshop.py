"""What agents work with: try a model, see the tools, keep MCP servers."""

from dataclasses import asdict
from typing import Annotated

import anyio
from fastapi import Path
from starlette.responses import JSONResponse, Response

from holdfast.core.errors import NotAllowed
from holdfast.faces.http import descriptions as d
from holdfast.faces.http.api import Api, Workshop
from holdfast.faces.http.requests import McpIn, ModelTest
from holdfast.faces.http.routing import Router
from holdfast.ports import AgentFailed

_PATIENCE = 60.0
"""Seconds that a model is given for a word: a local one may have to be loaded first."""
Server = Annotated[str, Path(pattern="^[a-z0-9][a-z0-9_-]{0,31}$", description="Name of an MCP server.")]


def routes(api: Api) -> Router:
    router = Router("workshop", "/api")

    def workshop() -> Workshop:
        if api.workshop is None:
            raise NotAllowed("do that", "this server's agents use neither models nor tools")
        return api.workshop

    @router.post("/models/test", response_model=d.ModelTested)
    async def try_model(body: ModelTest) -> Response:
        """Ask the model for a word. It costs a few tokens."""
        began = anyio.current_time()
        answer: str | None = None
        reason: str | None = None
        try:
            with anyio.fail_after(_PATIENCE):
                answer = await workshop().try_model(body.model)
        except AgentFailed as error:
            reason = error.message
        except TimeoutError:
            reason = f"It did not answer within {_PATIENCE:.0f} s."
        took = int((anyio.current_time() - began) * 1000)
        return JSONResponse({"ok": reason is None, "answer": answer, "reason": reason, "took_ms": took})

    @router.get("/tools", response_model=d.Tools)
    async def list_tools() -> Response:
        """Those that come with Holdfast and those of the MCP servers that can be reached."""
        found = [] if api.workshop is None else await api.workshop.tools()
        return JSONResponse({"items": [asdict(tool) for tool in found], "next": None})

    @router.get("/mcp", response_model=d.McpList)
    async def list_servers() -> Response:
        found = [] if api.workshop is None else await api.workshop.servers()
        return JSONResponse({"items": [asdict(server) for server in found], "next": None})

    @router.put("/mcp/{name}", status_code=204)
    async def put_server(name: Server, body: McpIn) -> Response:
        """Add a server, or change one that was added here."""
        if body.command is not None and not api.gate.password_set:
            raise NotAllowed(
                "start a program for its tools",
                "this server has no password; set one first, or name the program in holdfast.toml",
            )
        await workshop().put_server(name, command=body.command, args=body.args, url=body.url, token=body.token)
        return Response(status_code=204)

    @router.delete("/mcp/{name}", status_code=204)
    async def drop_server(name: Server) -> Response:
        await workshop().drop_server(name)
        return Response(status_code=204)

    @router.post("/mcp/{name}/test", response_model=d.McpTested)
    async def try_server(name: Server) -> Response:
        """Connect now, and say which tools there are."""
        try:
            return JSONResponse({"ok": True, "reason": None, "tools": list(await workshop().try_server(name))})
        except AgentFailed as error:
            return JSONResponse({"ok": False, "reason": error.message, "tools": []})

    return router
