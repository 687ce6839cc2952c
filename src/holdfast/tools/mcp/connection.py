"""One connection to one MCP server: a task that keeps it open until it is closed or lost. When it is opened again:
`tools.mcp.client`."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from importlib import import_module
from typing import Any, Final

import anyio
from anyio import to_thread
from anyio.abc import TaskStatus

from holdfast import __version__
from holdfast.ports.tool import ToolError
from holdfast.tools.mcp.http_client import ACCEPT, PING, guarded_client
from holdfast.tools.mcp.message_repair import repaired
from holdfast.tools.mcp.oauth import stored_auth
from holdfast.tools.mcp.server_config import HttpServer, McpServer, StdioServer, is_local
from holdfast.tools.mcp.server_requests import ServerRequests
from holdfast.tools.mcp.stdio_transport import open_stdio
from holdfast.tools.mcp.tool_listing import keep_valid_tools
from holdfast.tools.stderr_tail import StderrTail

log = logging.getLogger("holdfast.tools")

_MAX_EVENT: Final = 8 * 1024 * 1024  # Bytes of an event of a stream; an image may be one
_MAX_INSTRUCTIONS: Final = 2_000  # Characters
_NOT_STREAMABLE: Final = frozenset({400, 404, 405})  # What a server with the older SSE transport answers to a POST
_UNAUTHORIZED: Final = (
    "It needs authorization. Press Connect in Settings → MCP servers, or enter an access token there."
)


class McpConnection:
    """Open from `started` until `closed` is set. What the SDK raises while it closes is logged, so it does not affect
    the tasks of other servers."""

    def __init__(self, server: McpServer, connect_timeout: float) -> None:
        self._server = server
        self._connect_timeout = connect_timeout
        self.client: Any = None  # The SDK's client
        self.closed = anyio.Event()
        self.stderr = StderrTail()
        self.requests = ServerRequests(server.name, is_local=is_local(server))
        self.failure: str | None = None  # Why we closed it

    def _fail(self, why: str) -> None:
        self.failure = why
        log.warning("The connection to the MCP server %s is closed: %s", self._server.name, why)

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Connects, reports started and waits until closed. Failures before that are raised to the starter."""
        started = False
        try:
            # A second of pure Python, or many on a busy machine: not counted against the server's limit.
            sdk = await to_thread.run_sync(import_module, "mcp")
            info = import_module("mcp.types").Implementation(name="holdfast", title="Holdfast", version=__version__)
            with anyio.fail_after(self._connect_timeout) as limit:
                answers = {
                    "list_roots_callback": self.requests.list_roots,
                    "elicitation_callback": self.requests.elicit,
                    "sampling_callback": self.requests.sample,
                }
                async with sdk.Client(await self._transport(), cache=None, client_info=info, **answers) as self.client:
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

    @property
    def instructions(self) -> str:
        """The server's instructions for models, after its name, because they are not ours."""
        text = (self.client.instructions or "").strip()[:_MAX_INSTRUCTIONS]
        return f"{self._server.name}: {text}" if text else ""

    async def _transport(self) -> AbstractAsyncContextManager[tuple[Any, Any]]:
        if isinstance(self._server, StdioServer):
            return _stdio(self._server, self.closed, self.stderr, self._fail)
        oauth = self._server.oauth
        auth = stored_auth(oauth) if self._server.uses_oauth and oauth is not None and oauth.has_tokens else None
        if await _is_streamable(self._server, auth):
            return _http(self._server, self.closed, auth)
        return _sse(self._server, self.closed, auth)


@asynccontextmanager
async def _stdio(
    server: StdioServer, closed: anyio.Event, stderr: StderrTail, on_failure: Callable[[str], None]
) -> AsyncIterator[tuple[Any, Any]]:
    async with stderr.reading() as writing, open_stdio(server, writing, on_failure) as (reading, sending):
        yield _WatchedStream(reading, closed, server.name), sending


async def _is_streamable(server: HttpServer, auth: Any) -> bool:
    """Whether the server has the streamable transport, as the specification tells clients to find out: an older one
    refuses a POST, and answers a GET with an event stream."""
    async with guarded_client(server.url, headers=dict(server.headers), timeout=30.0, auth=auth) as client:
        async with client.stream("POST", server.url, json=PING, headers=ACCEPT) as answer:
            if answer.status_code == 401:
                raise ToolError(_UNAUTHORIZED)
            if answer.status_code not in _NOT_STREAMABLE:
                return True
        async with client.stream("GET", server.url, headers={"Accept": "text/event-stream"}) as answer:
            is_stream = answer.headers.get("content-type", "").startswith("text/event-stream")
            return not (answer.status_code == 200 and is_stream)


@asynccontextmanager
async def _http(server: HttpServer, closed: anyio.Event, auth: Any) -> AsyncIterator[tuple[Any, Any]]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    timeout = httpx2.Timeout(30.0, read=300.0)
    async with (
        guarded_client(server.url, headers=dict(server.headers), timeout=timeout, auth=auth) as client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=_MAX_EVENT) as (reading, sending),
    ):
        yield _WatchedStream(reading, closed, server.name), sending


@asynccontextmanager
async def _sse(server: HttpServer, closed: anyio.Event, auth: Any) -> AsyncIterator[tuple[Any, Any]]:
    """The transport of servers from before 2025."""
    from mcp.client.sse import sse_client

    make, headers = partial(guarded_client, server.url), dict(server.headers)
    stream = sse_client(server.url, headers=headers, timeout=30.0, httpx_client_factory=make, auth=auth)
    async with stream as (reading, sending):
        yield _WatchedStream(reading, closed, server.name), sending


class _WatchedStream:
    """A stream that sets `closed` when its reader leaves it, so that a dead server is noticed before the next call, and
    that lets no tool through that the SDK would stumble over."""

    def __init__(self, inner: Any, closed: anyio.Event, name: str) -> None:
        self._inner = inner
        self._closed = closed
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __aiter__(self) -> "_WatchedStream":
        return self

    async def __anext__(self) -> Any:
        item = await anext(self._inner)
        if isinstance(item, ValueError):
            item = await repaired(item)
        result = getattr(getattr(item, "message", None), "result", None)
        if isinstance(result, dict) and isinstance(result.get("tools"), list):
            result["tools"] = await to_thread.run_sync(keep_valid_tools, self._name, result["tools"])
        return item

    async def __aenter__(self) -> "_WatchedStream":
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *why: Any) -> None:
        self._closed.set()
        await self._inner.__aexit__(*why)
