"""The client of one MCP server: connects when it is needed, reconnects with pauses, and lists and calls its tools. Its
time limits are here (`McpLimits`); a call to a server that is away fails at once until the pause is over."""

import logging
import math
import os
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from holdfast.core.errors import first_error
from holdfast.core.parts import Json
from holdfast.ports.model import ToolSpec
from holdfast.ports.tool import Tool, ToolContext, ToolError, ToolResult, ToolTraits
from holdfast.tools.mcp import prompts, tool_mapping
from holdfast.tools.mcp.connection import McpConnection
from holdfast.tools.mcp.media_files import save_media
from holdfast.tools.mcp.prompts import McpPrompt
from holdfast.tools.mcp.resource_tools import resource_tools
from holdfast.tools.mcp.server_config import HttpServer, McpServer, StdioServer
from holdfast.tools.mcp.server_requests import ActiveCall
from holdfast.tools.mcp.tool_listing import MAX_TOOLS
from holdfast.tools.stderr_tail import StderrTail

log = logging.getLogger("holdfast.tools")

_MAX_PAGES: Final = 20
_MAX_DESCRIPTION: Final = 20_000  # Characters
_MAX_PRINTED: Final = 300  # Characters of the last line of a program's error output
_MAX_CAUSES: Final = 20


@dataclass(frozen=True, slots=True)
class McpLimits:
    connect: float = 15.0
    call: float = 300.0  # Without the time that a person takes to answer a question of the server
    first_pause: float = 0.5
    longest_pause: float = 60.0  # After failed attempts to connect; until the pause is over, calls fail at once


@dataclass(frozen=True, slots=True)
class McpState:
    connected: bool
    failure: str | None  # Why the last attempt to connect and list tools failed
    stderr: str  # The end of a program's error output


class McpClient:
    """One server: connects, reconnects with pauses, lists tools and calls them."""

    def __init__(self, server: McpServer, limits: McpLimits, tasks: TaskGroup | None) -> None:
        self.server = server
        self.tasks = tasks
        self._limits = limits
        self._connection: McpConnection | None = None
        self._lock = anyio.Lock()
        self._failures = 0
        self._failure: str | None = None
        self._logged: str | None = None  # The failure that was logged last
        self._stderr = StderrTail()
        self._is_retrying = False
        self.retry_at = 0.0

    def state(self) -> McpState:
        is_connected = self._connection is not None and not self._connection.closed.is_set()
        return McpState(is_connected, self._failure, self._stderr.text)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.closed.set()

    def reset(self) -> None:
        """Forgets failures and closes the connection: something that they depended on has changed."""
        self.close()
        self._failures, self._failure, self.retry_at = 0, None, 0.0

    def retry_in_background(self) -> None:
        """Tries again unless a pause or another attempt is under way."""
        if self.tasks is not None and not self._is_retrying and anyio.current_time() >= self.retry_at:
            self._is_retrying = True
            self.tasks.start_soon(self._retry)

    async def _retry(self) -> None:
        try:
            await self.list_tools()
        except ToolError as error:
            self.log_failure(error)
        finally:
            self._is_retrying = False

    def log_failure(self, error: ToolError) -> None:
        """As a warning once: a server that stays away is tried again with every turn."""
        log.log(logging.DEBUG if self._logged == self._failure else logging.WARNING, "%s", error)
        self._logged = self._failure

    async def list_tools(self, *, in_pause: bool = False) -> Sequence[Tool]:
        """`in_pause`: whether to connect also during a pause after failures."""
        connection = await self._connected(in_pause=in_pause)
        tools: list[Tool] = []
        cursor: str | None = None
        try:
            with anyio.fail_after(self._limits.connect):
                for _ in range(_MAX_PAGES):
                    page = await connection.client.list_tools(cursor=cursor)
                    tools += [self._tool(tool, connection.instructions) for tool in page.tools]
                    cursor = page.next_cursor
                    if cursor is None or len(tools) >= MAX_TOOLS:
                        break
        except Exception as error:  # the SDK's and its transports' errors are many
            connection.closed.set()
            raise self._failed(f"The MCP server {self.server.name!r} failed to list its tools", error) from error
        self._failures, self._failure, self._logged = 0, None, None
        if connection.client.server_capabilities.resources is None:
            return tools
        readable = self.server.trusted
        traits = ToolTraits(repeatable=True, read_only=readable, rule="allow" if readable else "ask")
        return [*resource_tools(self.server.name, traits, self._send_twice), *tools]

    async def _send_twice(self, request: Callable[[McpConnection], Awaitable[Any]], limit: float | None = None) -> Any:
        try:
            with anyio.fail_after(limit or self._limits.call):
                return await self._send(request, repeatable=True)
        except TimeoutError:
            raise self._timed_out(limit) from None

    def _described(self) -> str:
        """The server's name, and the address of a remote one without its credentials."""
        server = self.server
        if not isinstance(server, HttpServer):
            return server.name
        return f"{server.name} ({urlsplit(server.url).netloc.rpartition('@')[2]})"

    def _failed(self, what: str, error: Exception) -> ToolError:
        """Begins a pause, which doubles with each failure."""
        self._failure = why = self._reason(error)
        pause = min(self._limits.first_pause * 2**self._failures, self._limits.longest_pause)
        self._failures = min(self._failures + 1, 30)
        self.retry_at = anyio.current_time() + pause
        return ToolError(f"{what}: {why}")

    def _reason(self, error: BaseException) -> str:
        error = first_error(error)
        if isinstance(error, TimeoutError):
            return "it did not answer in time"
        if isinstance(error, FileNotFoundError) and isinstance(self.server, StdioServer):
            where = "" if self.server.cwd is None else f", or the directory {self.server.cwd} does not exist"
            return f"command not found: {self.server.command}{where}"
        for each in _causes(error):
            if isinstance(each, socket.gaierror):
                return "host not found"
            if isinstance(each, OSError) and each.errno:
                return os.strerror(each.errno).lower()
        why = str(error) or type(error).__name__
        printed = self._stderr.text.splitlines()[-1:]
        if isinstance(self.server, StdioServer) and _is_closed(error):
            return ": ".join(["the command exited", *(line.strip()[:_MAX_PRINTED] for line in printed)])
        return f"{why}. Its error output ends with: {printed[0].strip()[:_MAX_PRINTED]}" if printed else why

    def _tool(self, tool: Any, instructions: str) -> "McpTool":
        name = tool_mapping.tool_name(self.server.name, tool.name)
        spec = ToolSpec(name, (tool.description or tool.title or tool.name)[:_MAX_DESCRIPTION], tool.input_schema)
        traits = tool_mapping.to_traits(tool.annotations, trusted=self.server.trusted, instructions=instructions)
        return McpTool(self, tool.name, spec, traits)

    async def call(self, tool: "McpTool", args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        """Calls a tool. Images and other files in its result are stored in the workspace; the model is shown images."""

        async def progress(done: float, total: float | None, message: str | None) -> None:
            share = f"{done:g}" if total is None else f"{done:g}/{total:g}"
            await context.output(f"{message or share}\n")

        async def request(connection: McpConnection) -> Any:
            with connection.requests.active(call):
                return await connection.client.call_tool(tool.remote, dict(args), progress_callback=progress)

        call = ActiveCall(context, self._limits.call)
        try:
            answer = await call.run(lambda: self._send(request, repeatable=tool.traits.repeatable))
        except TimeoutError:
            raise self._timed_out() from None
        media = await to_thread.run_sync(save_media, answer.content, context.workspace)
        return tool_mapping.to_result(answer, media.paths, media.images)

    async def list_prompts(self) -> Sequence[McpPrompt]:
        """Empty for a server that offers none. Raises ToolError."""

        async def request(connection: McpConnection) -> Sequence[McpPrompt]:
            if connection.client.server_capabilities.prompts is None:
                return ()
            return prompts.read_list(self.server.name, await connection.client.list_prompts())

        found: Sequence[McpPrompt] = await self._send_twice(request, self._limits.connect)
        return found

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        """The text of a prompt. Raises ToolError."""
        ask = lambda connection: connection.client.get_prompt(name, dict(arguments))  # noqa: E731
        return prompts.as_text(await self._send_twice(ask, self._limits.connect))

    def _timed_out(self, limit: float | None = None) -> ToolError:
        return ToolError(f"{self.server.name}: no answer within {limit or self._limits.call:g} seconds.")

    async def _send(self, request: Callable[[McpConnection], Awaitable[Any]], *, repeatable: bool) -> Any:
        """Sends a request. If the connection is lost meanwhile, only a repeatable one is sent again."""
        for last in (not repeatable, True):
            connection = await self._connected()
            try:
                return await request(connection)
            except Exception as error:  # the SDK's and its transports' errors are many
                if _is_answer(error):
                    raise ToolError(f"{self.server.name}: {error}") from error
                connection.closed.set()
                if last:
                    why = connection.failure or error
                    raise ToolError(
                        f"The connection to the MCP server {self.server.name!r} was lost during the call ({why}). It "
                        "is unknown whether the call took effect; check before you call it again."
                    ) from error
        raise AssertionError

    async def _connected(self, *, in_pause: bool = False) -> McpConnection:
        async with self._lock:
            if self._connection is not None and not self._connection.closed.is_set():
                return self._connection
            if self.tasks is None:
                raise ToolError("The MCP servers are not running.")
            wait = self.retry_at - anyio.current_time()
            if wait > 0 and not in_pause:
                why = "" if self._failure is None else f" ({self._failure})"
                raise ToolError(f"Could not connect to {self.server.name}{why}. Try again in {math.ceil(wait)} s.")
            connection = McpConnection(self.server, self._limits.connect)
            self._stderr = connection.stderr
            try:
                await self.tasks.start(connection.run)
            except Exception as error:
                known = error if connection.failure is None else ToolError(connection.failure)
                raise self._failed(f"Could not connect to {self._described()}", known) from error
            self._connection = connection
            return connection


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and those that led to it, the latest first."""
    for _ in range(_MAX_CAUSES):
        if error is None:
            return
        error = first_error(error)
        yield error
        error = error.__cause__ or error.__context__


def _is_closed(error: BaseException) -> bool:
    """Whether the other end closed the connection."""
    from mcp import MCPError
    from mcp.types import CONNECTION_CLOSED

    return isinstance(error, MCPError) and error.code == CONNECTION_CLOSED


def _is_answer(error: Exception) -> bool:
    """Whether the server answered with an error, after which the connection is as good as before. The SDK has codes of
    its own for a connection that is lost, and for a session that the server has forgotten."""
    from mcp import MCPError
    from mcp.types import CONNECTION_CLOSED, INVALID_REQUEST

    return isinstance(error, MCPError) and error.code not in (CONNECTION_CLOSED, INVALID_REQUEST)


@dataclass(frozen=True, slots=True)
class McpTool:
    client: McpClient
    remote: str  # The tool's name at the server
    spec: ToolSpec
    traits: ToolTraits

    def scope(self, args: Mapping[str, Json]) -> str:
        return ""

    async def run(self, args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        return await self.client.call(self, args, context)
