"""The MCP servers of a process. Each is connected when it is first needed and again after it was lost; a server that
cannot be reached costs its own tools and nothing else."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from holdfast.agents.models.port import ToolSpec
from holdfast.agents.tools.mcp import values
from holdfast.agents.tools.mcp.link import Link
from holdfast.agents.tools.mcp.values import McpServer
from holdfast.agents.tools.port import Tool, ToolContext, ToolFailed, ToolResult, Traits
from holdfast.core.parts import Json
from holdfast.core.values import dataclass

log = logging.getLogger("holdfast.agents")

_MAX_PAGES: Final = 20
_STILL_GOOD: Final = frozenset({-32602, -32601, -32603, -32001})
"""Errors that a server answers with while its connection is fine: bad arguments, no such tool, a bug of its, a
time-out."""


@dataclass(frozen=True, slots=True)
class McpLimits:
    connect: float = 15.0
    call: float = 300.0
    first_pause: float = 0.5
    longest_pause: float = 60.0
    """After failed attempts to connect: until the pause is over, calls fail at once."""


class McpServers:
    """`run` belongs into a task group of the owner: every connection is a task below it, and ends with it."""

    def __init__(self, servers: Sequence[McpServer], limits: McpLimits | None = None) -> None:
        self._limits = limits or McpLimits()
        self._tasks: TaskGroup | None = None
        self._doors: dict[str, _Door] = {}
        self.configure(servers)

    def configure(self, servers: Sequence[McpServer]) -> None:
        """These from now on. One that is gone or is another now is let go of; a call to it fails as if it had been
        lost."""
        wanted = {server.name: server for server in servers}
        for name, door in list(self._doors.items()):
            if wanted.get(name) != door.server:
                door.close()
                del self._doors[name]
        for name, server in wanted.items():
            if name not in self._doors:
                self._doors[name] = _Door(server, self._limits, self._tasks)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            for door in self._doors.values():
                door.tasks = tasks
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                for door in self._doors.values():
                    door.close()

    def states(self) -> Mapping[str, "McpState"]:
        """As far as is known: nobody is asked."""
        return {name: door.state() for name, door in self._doors.items()}

    async def look(self, name: str) -> Sequence[Tool]:
        """The tools of one server, now: a pause after failures is not waited for. ToolFailed says what is wrong."""
        door = self._doors[name]
        door.try_again()
        return await door.list_tools()

    async def tools(self) -> Sequence[Tool]:
        """The tools of all servers that can be reached, named `server__tool`."""
        found: dict[str, dict[str, Tool]] = {}

        async def look(name: str, door: "_Door") -> None:
            try:
                found[name] = {tool.spec.name: tool for tool in await door.list_tools()}
            except ToolFailed as error:
                log.warning("%s", error)

        async with anyio.create_task_group() as tg:
            for name, door in self._doors.items():
                tg.start_soon(look, name, door)
        merged: dict[str, Tool] = {}
        for name in self._doors:
            merged = {**found.get(name, {}), **merged}
        return tuple(merged.values())


@dataclass(frozen=True, slots=True)
class McpState:
    connected: bool
    failure: str | None
    """Why the last attempt came to nothing."""


class _Door:
    """The way to one server."""

    def __init__(self, server: McpServer, limits: McpLimits, tasks: TaskGroup | None) -> None:
        self.server = server
        self.tasks = tasks
        self._limits = limits
        self._link: Link | None = None
        self._lock = anyio.Lock()
        self._failures = 0
        self._failure: str | None = None
        self._closed_until = 0.0

    def state(self) -> McpState:
        return McpState(self._link is not None and not self._link.over.is_set(), self._failure)

    def try_again(self) -> None:
        self._closed_until = 0.0

    def close(self) -> None:
        if self._link is not None:
            self._link.let_go()

    async def list_tools(self) -> Sequence["McpTool"]:
        link = await self._connected()
        tools: list[McpTool] = []
        cursor: str | None = None
        try:
            with anyio.fail_after(self._limits.connect):
                for _ in range(_MAX_PAGES):
                    page = await link.client.list_tools(cursor=cursor)
                    tools += [self._tool(tool) for tool in page.tools]
                    cursor = page.next_cursor
                    if cursor is None:
                        break
        except Exception as error:  # the SDK's and its transports' errors are many
            link.let_go()
            raise ToolFailed(f"The MCP server {self.server.name!r} does not list its tools: {error}") from error
        return tools

    def _tool(self, tool: Any) -> "McpTool":
        name = values.tool_name(self.server.name, tool.name)
        spec = ToolSpec(name, tool.description or tool.title or tool.name, tool.input_schema)
        return McpTool(self, tool.name, spec, values.traits(tool.annotations, trusted=self.server.trusted))

    async def call(self, tool: "McpTool", args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        """One call. If the connection is lost in the middle, only a tool that may be repeated is called again."""
        for last in (not tool.traits.repeatable, True):
            link = await self._connected()
            try:
                return await self._call(link, tool, args, context)
            except ToolFailed:
                raise
            except Exception as error:  # the SDK's and its transports' errors are many
                if getattr(error, "code", None) in _STILL_GOOD:
                    raise ToolFailed(f"{self.server.name}: {error}") from error
                link.let_go()
                if last:
                    raise ToolFailed(
                        f"The connection to the MCP server {self.server.name!r} was lost during the call ({error}). It "
                        "is not known whether it took effect: look before you call it again."
                    ) from error
        raise AssertionError

    async def _call(self, link: Link, tool: "McpTool", args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        async def progress(done: float, total: float | None, message: str | None) -> None:
            if message:
                await context.output(f"{message}\n")

        answer = await link.client.call_tool(
            tool.remote, dict(args), read_timeout_seconds=self._limits.call, progress_callback=progress
        )
        return values.result(answer)

    async def _connected(self) -> Link:
        async with self._lock:
            if self._link is not None and not self._link.over.is_set():
                return self._link
            if self.tasks is None:
                raise ToolFailed("The MCP servers are not running.")
            wait = self._closed_until - anyio.current_time()
            if wait > 0:
                raise ToolFailed(f"The MCP server {self.server.name!r} cannot be reached. Try again in {wait:.0f} s.")
            link = Link(self.server, self._limits.connect)
            try:
                await self.tasks.start(link.hold)
            except Exception as error:
                self._failed(_reason(error))
                raise ToolFailed(f"The MCP server {self.server.name!r} cannot be reached: {_reason(error)}") from error
            self._failures, self._failure = 0, None
            self._link = link
            return link

    def _failed(self, why: str) -> None:
        self._failure = why
        pause = min(self._limits.first_pause * 2**self._failures, self._limits.longest_pause)
        self._failures = min(self._failures + 1, 30)
        self._closed_until = anyio.current_time() + pause


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


@dataclass(frozen=True, slots=True)
class McpTool:
    door: _Door
    remote: str
    """Its name at the server."""
    spec: ToolSpec
    traits: Traits

    def scope(self, args: Mapping[str, Json]) -> str:
        return ""

    async def run(self, args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        return await self.door.call(self, args, context)
