"""One connection to one MCP server: a task that keeps it open until it is closed or lost."""

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

import anyio
from anyio import to_thread
from anyio.abc import TaskStatus

from holdfast.tools.mcp.tool_mapping import HttpServer, McpServer, StdioServer

log = logging.getLogger("holdfast.tools")


class McpConnection:
    """Open from `started` until `closed` is set. What the SDK raises while it closes is logged, so it does not affect
    the tasks of other servers."""

    def __init__(self, server: McpServer, connect_timeout: float) -> None:
        self._server = server
        self._connect_timeout = connect_timeout
        self.client: Any = None  # The SDK's client
        self.closed = anyio.Event()

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Connects, reports started and waits until closed. Failures before that are raised to the starter."""
        started = False
        try:
            with anyio.fail_after(self._connect_timeout) as limit:
                sdk = await to_thread.run_sync(import_module, "mcp")  # a second of pure Python
                server, closed = self._server, self.closed
                transport = _stdio(server, closed) if isinstance(server, StdioServer) else _http(server, closed)
                async with sdk.Client(transport, cache=None) as self.client:
                    limit.deadline = float("inf")
                    started = True
                    task_status.started()
                    await self.closed.wait()
        except Exception:
            if not started:
                raise
            log.warning("The connection to the MCP server %s failed", self._server.name, exc_info=True)
        finally:
            self.closed.set()


@asynccontextmanager
async def _stdio(server: StdioServer, closed: anyio.Event) -> AsyncIterator[tuple[Any, Any]]:
    from mcp.client.stdio import StdioServerParameters, stdio_client

    args, env = list(server.args), dict(server.env)
    parameters = StdioServerParameters(command=server.command, args=args, env=env, cwd=server.cwd)
    with open(os.devnull, "w") as errors:  # noqa: ASYNC230 - the null device does not block
        async with stdio_client(parameters, errlog=errors) as (reading, writing):
            yield _WatchedStream(reading, closed), writing


@asynccontextmanager
async def _http(server: HttpServer, closed: anyio.Event) -> AsyncIterator[tuple[Any, Any]]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    timeout = httpx2.Timeout(30.0, read=300.0)
    async with (
        httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout) as client,
        streamable_http_client(server.url, http_client=client) as (reading, writing),
    ):
        yield _WatchedStream(reading, closed), writing


class _WatchedStream:
    """A stream that sets `closed` when its reader leaves it, so that a dead server is noticed before the next call."""

    def __init__(self, inner: Any, closed: anyio.Event) -> None:
        self._inner = inner
        self._closed = closed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __aiter__(self) -> Any:
        return aiter(self._inner)

    async def __aenter__(self) -> "_WatchedStream":
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *why: Any) -> None:
        self._closed.set()
        await self._inner.__aexit__(*why)
