"""One connection to one server: a task that holds it open until somebody lets go of it or the server is gone."""

import logging
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, assert_never

import anyio
from anyio import to_thread
from anyio.abc import TaskStatus

from holdfast.agents.tools.mcp.values import HttpServer, McpServer, StdioServer

log = logging.getLogger("holdfast.agents")


class Link:
    """Alive from `started` until `over` is set. What the SDK raises while it closes is logged and goes no further: the
    tasks of other servers are not concerned."""

    def __init__(self, server: McpServer, patience: float) -> None:
        self._server = server
        self._patience = patience
        self._client: Any = None
        self.over = anyio.Event()

    @property
    def client(self) -> Any:
        return self._client

    def let_go(self) -> None:
        self.over.set()

    async def hold(self, *, task_status: TaskStatus[None]) -> None:
        """Connect, report started, and keep it so. What goes wrong before that is raised to whoever started it."""
        started = False
        try:
            with anyio.fail_after(self._patience) as limit:
                async with await self._open() as client:
                    limit.deadline = float("inf")
                    self._client = client
                    started = True
                    task_status.started()
                    await self.over.wait()
        except Exception:
            if not started:
                raise
            log.warning("the connection to the MCP server %s ended badly", self._server.name, exc_info=True)
        finally:
            self.over.set()

    async def _open(self) -> Any:
        # Importing takes a second of pure Python: not on the event loop.
        sdk = await to_thread.run_sync(_import_sdk)
        transport = _transport(self._server, self.over)
        return sdk.Client(transport, cache=None)


def _import_sdk() -> Any:
    import mcp

    return mcp


def _transport(server: McpServer, over: anyio.Event) -> AbstractAsyncContextManager[tuple[Any, Any]]:
    match server:
        case StdioServer():
            return _stdio(server, over)
        case HttpServer():
            return _http(server, over)
        case _:
            assert_never(server)


@asynccontextmanager
async def _stdio(server: StdioServer, over: anyio.Event) -> AsyncIterator[tuple[Any, Any]]:
    from mcp.client.stdio import StdioServerParameters, stdio_client

    args, env = list(server.args), dict(server.env)
    parameters = StdioServerParameters(command=server.command, args=args, env=env, cwd=server.cwd)
    with open(os.devnull, "w") as errors:  # noqa: ASYNC230 - the null device does not block
        async with stdio_client(parameters, errlog=errors) as (reading, writing):
            yield _Watched(reading, over), writing


@asynccontextmanager
async def _http(server: HttpServer, over: anyio.Event) -> AsyncIterator[tuple[Any, Any]]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    timeout = httpx2.Timeout(30.0, read=300.0)
    async with (
        httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout) as client,
        streamable_http_client(server.url, http_client=client) as (reading, writing),
    ):
        yield _Watched(reading, over), writing


class _Watched:
    """A stream that says when it has ended, so that a dead server is noticed before the next call and not by it."""

    def __init__(self, inner: Any, over: anyio.Event) -> None:
        self._inner = inner
        self._over = over

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __aiter__(self) -> "_Watched":
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._inner.__anext__()
        except StopAsyncIteration:
            self._over.set()
            raise

    async def receive(self) -> Any:
        try:
            return await self._inner.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._over.set()
            raise

    async def __aenter__(self) -> "_Watched":
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *why: Any) -> None:
        await self._inner.__aexit__(*why)
