"""The MCP servers of a process. Each is connected when first needed and reconnected after a loss; an unreachable server
affects only its own tools. Pauses before a reconnect: `tools.mcp.client`; which servers there are: `app.tool_admin`;
which tools a turn gets: `tools.tool_selection`."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup, TaskStatus

from holdfast.ports.tool import Tool, ToolError
from holdfast.tools.mcp.client import McpClient, McpLimits, McpState
from holdfast.tools.mcp.oauth import OAuthSignIns
from holdfast.tools.mcp.prompts import McpPrompt
from holdfast.tools.mcp.server_config import HttpServer, McpServer

log = logging.getLogger("holdfast.tools")

T = TypeVar("T")


class McpServers:
    """`run` belongs in a task group of the owner: every connection is a task below it, and ends with it."""

    def __init__(self, servers: Sequence[McpServer], limits: McpLimits | None = None) -> None:
        self._limits = limits or McpLimits()
        self._tasks: TaskGroup | None = None
        self._sign_ins = OAuthSignIns()
        self._clients: dict[str, McpClient] = {}
        self.configure(servers)

    def configure(self, servers: Sequence[McpServer]) -> None:
        """Replaces the servers. A removed or changed one is closed; a call under way fails as if it had been lost."""
        new = {server.name: server for server in servers}
        for name, client in list(self._clients.items()):
            if new.get(name) != client.server:
                client.close()
                del self._clients[name]
        for name, server in new.items():
            if name not in self._clients:
                self._clients[name] = McpClient(server, self._limits, self._tasks)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            for client in self._clients.values():
                client.tasks = tasks
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                for client in self._clients.values():
                    client.close()

    def states(self) -> Mapping[str, "McpState"]:
        """The last known state of each server, without a request."""
        return {name: client.state() for name, client in self._clients.items()}

    async def list_tools(self, name: str) -> Sequence[Tool]:
        """The tools of one server, connecting even during a pause after failures. Raises ToolError."""
        return await self._clients[name].list_tools(in_pause=True)

    async def tools(self) -> Sequence[Tool]:
        """The tools of all servers that can be reached, named `server__tool`. A server that failed is tried again in
        the background, so that it delays one turn and not every one."""
        merged: dict[str, Tool] = {}
        for tools in await self._collect(McpClient.list_tools):
            merged = {**{tool.spec.name: tool for tool in tools}, **merged}
        return tuple(merged.values())

    async def prompts(self) -> Sequence[McpPrompt]:
        """The prompts of all servers that can be reached."""
        return [prompt for found in await self._collect(McpClient.list_prompts) for prompt in found]

    async def get_prompt(self, server: str, prompt: str, arguments: Mapping[str, str]) -> str:
        """Raises ToolError."""
        return await self._clients[server].get_prompt(prompt, arguments)

    async def start_sign_in(self, name: str, redirect_uri: str) -> str:
        """The address of the page where a person allows access to a remote server. Raises ToolError."""
        server = self._clients[name].server
        if not isinstance(server, HttpServer) or server.oauth is None or not server.uses_oauth or self._tasks is None:
            raise ToolError("Only a remote server without an access token of its own can be signed in to.")
        return await self._sign_ins.start(self._tasks, name, server.oauth, redirect_uri)

    async def finish_sign_in(self, state: str, code: str | None, issuer: str | None, error: str | None) -> str:
        """Stores the tokens; returns the server's name. Raises ToolError."""
        name = await self._sign_ins.finish(state, code, issuer, error)
        self.reconnect(name)
        return name

    def reconnect(self, name: str) -> None:
        """Makes the next call connect anew."""
        if name in self._clients:
            self._clients[name].reset()

    async def _collect(self, ask: Callable[[McpClient], Awaitable[Sequence[T]]]) -> list[Sequence[T]]:
        """The answers of the servers that can be reached, in the order of the servers. One that failed is tried again
        in the background."""
        if not self._clients:
            return []
        found: dict[str, Sequence[T]] = {}

        async def collect(name: str, client: McpClient) -> None:
            if client.state().failure is not None:
                client.retry_in_background()
                return
            try:
                found[name] = await ask(client)
            except ToolError as error:
                client.log_failure(error)

        async with anyio.create_task_group() as tg:
            for name, client in self._clients.items():
                tg.start_soon(collect, name, client)
        return [found[name] for name in self._clients if name in found]
