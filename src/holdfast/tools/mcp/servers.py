"""The MCP servers of a process. Each is connected when first needed and reconnected after a loss; an unreachable server
affects only its own tools."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from holdfast.core.parts import Json
from holdfast.ports.model import ToolSpec
from holdfast.ports.tool import Tool, ToolContext, ToolError, ToolResult, ToolTraits
from holdfast.tools.mcp import tool_mapping
from holdfast.tools.mcp.connection import McpConnection
from holdfast.tools.mcp.tool_mapping import McpServer

log = logging.getLogger("holdfast.tools")

_MAX_PAGES: Final = 20
_CALL_ERRORS: Final = frozenset({-32602, -32601, -32603, -32001})
"""Error codes that leave the connection usable: bad arguments, no such tool, internal error, timeout."""


@dataclass(frozen=True, slots=True)
class McpLimits:
    connect: float = 15.0
    call: float = 300.0
    first_pause: float = 0.5
    longest_pause: float = 60.0  # After failed attempts to connect; until the pause is over, calls fail at once


class McpServers:
    """`run` belongs in a task group of the owner: every connection is a task below it, and ends with it."""

    def __init__(self, servers: Sequence[McpServer], limits: McpLimits | None = None) -> None:
        self._limits = limits or McpLimits()
        self._tasks: TaskGroup | None = None
        self._clients: dict[str, _McpClient] = {}
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
                self._clients[name] = _McpClient(server, self._limits, self._tasks)

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
        client = self._clients[name]
        client.retry_at = 0.0
        return await client.list_tools()

    async def tools(self) -> Sequence[Tool]:
        """The tools of all servers that can be reached, named `server__tool`."""
        found: dict[str, dict[str, Tool]] = {}

        async def collect(name: str, client: "_McpClient") -> None:
            try:
                found[name] = {tool.spec.name: tool for tool in await client.list_tools()}
            except ToolError as error:
                log.warning("%s", error)

        async with anyio.create_task_group() as tg:
            for name, client in self._clients.items():
                tg.start_soon(collect, name, client)
        merged: dict[str, Tool] = {}
        for name in self._clients:
            merged = {**found.get(name, {}), **merged}
        return tuple(merged.values())


@dataclass(frozen=True, slots=True)
class McpState:
    connected: bool
    failure: str | None  # Why the last attempt failed


class _McpClient:
    """One server: connects, reconnects with pauses, lists tools and calls them."""

    def __init__(self, server: McpServer, limits: McpLimits, tasks: TaskGroup | None) -> None:
        self.server = server
        self.tasks = tasks
        self._limits = limits
        self._connection: McpConnection | None = None
        self._lock = anyio.Lock()
        self._failures = 0
        self._failure: str | None = None
        self.retry_at = 0.0

    def state(self) -> McpState:
        return McpState(self._connection is not None and not self._connection.closed.is_set(), self._failure)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.closed.set()

    async def list_tools(self) -> Sequence["McpTool"]:
        connection = await self._connected()
        tools: list[McpTool] = []
        cursor: str | None = None
        try:
            with anyio.fail_after(self._limits.connect):
                for _ in range(_MAX_PAGES):
                    page = await connection.client.list_tools(cursor=cursor)
                    tools += [self._tool(tool) for tool in page.tools]
                    cursor = page.next_cursor
                    if cursor is None:
                        break
        except Exception as error:  # the SDK's and its transports' errors are many
            connection.closed.set()
            raise ToolError(f"The MCP server {self.server.name!r} failed to list its tools: {error}") from error
        return tools

    def _tool(self, tool: Any) -> "McpTool":
        name = tool_mapping.tool_name(self.server.name, tool.name)
        spec = ToolSpec(name, tool.description or tool.title or tool.name, tool.input_schema)
        return McpTool(self, tool.name, spec, tool_mapping.traits(tool.annotations, trusted=self.server.trusted))

    async def call(self, tool: "McpTool", args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        """Calls a tool. If the connection is lost during the call, only a repeatable tool is called again."""

        async def progress(done: float, total: float | None, message: str | None) -> None:
            if message:
                await context.output(f"{message}\n")

        options = {"read_timeout_seconds": self._limits.call, "progress_callback": progress}
        for last in (not tool.traits.repeatable, True):
            connection = await self._connected()
            try:
                return tool_mapping.result(await connection.client.call_tool(tool.remote, dict(args), **options))
            except Exception as error:  # the SDK's and its transports' errors are many
                if getattr(error, "code", None) in _CALL_ERRORS:
                    raise ToolError(f"{self.server.name}: {error}") from error
                connection.closed.set()
                if last:
                    raise ToolError(
                        f"The connection to the MCP server {self.server.name!r} was lost during the call ({error}). It "
                        "is unknown whether the call took effect; check before you call it again."
                    ) from error
        raise AssertionError

    async def _connected(self) -> McpConnection:
        async with self._lock:
            if self._connection is not None and not self._connection.closed.is_set():
                return self._connection
            if self.tasks is None:
                raise ToolError("The MCP servers are not running.")
            wait = self.retry_at - anyio.current_time()
            if wait > 0:
                raise ToolError(f"The MCP server {self.server.name!r} cannot be reached. Try again in {wait:.0f} s.")
            connection = McpConnection(self.server, self._limits.connect)
            try:
                await self.tasks.start(connection.run)
            except Exception as error:
                self._failure = why = _reason(error)
                pause = min(self._limits.first_pause * 2**self._failures, self._limits.longest_pause)
                self._failures = min(self._failures + 1, 30)
                self.retry_at = anyio.current_time() + pause
                raise ToolError(f"The MCP server {self.server.name!r} cannot be reached: {why}") from error
            self._failures, self._failure = 0, None
            self._connection = connection
            return connection


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


@dataclass(frozen=True, slots=True)
class McpTool:
    client: _McpClient
    remote: str  # The tool's name at the server
    spec: ToolSpec
    traits: ToolTraits

    def scope(self, args: Mapping[str, Json]) -> str:
        return ""

    async def run(self, args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        return await self.client.call(self, args, context)
