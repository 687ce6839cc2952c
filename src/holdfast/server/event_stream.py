"""A server-sent event stream to one client: sending, heartbeats, and detecting that the client is gone.

Two tasks per stream. One sends the frames of its source; once the client is up to date, new frames are written to its
connection directly and this task sleeps. The other notices a disconnect whatever the first one awaits, sends heartbeat
comments on a silent connection, and drops a client that has not read for too long or whose login has ended. There is
no timer per event.

A client that does not read holds what `uvicorn_server` buffers before a write waits, and one page of the source
(`event_sources`).
"""

from asyncio import timeout  # an anyio cancel scope would cost another kilobyte per idle client
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

import anyio
from anyio.abc import TaskGroup
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.server.access_rules import Credentials

HEADERS: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),  # stops proxies from buffering
]
STREAM: Final = "holdfast.stream"
"""Key in the ASGI scope under which a route leaves its stream for the middleware to run."""
FIRST_FRAME: Final = b"retry: 1000\n\n"  # Clients reconnect after a second
HEARTBEAT: Final = b": heartbeat\n\n"
_BODY: Final = 256 * 1024
"""Bytes after which a page of frames is sent in several pieces: a slow client that reads makes visible progress."""
_CHECKS: Final = 3  # How often a connection is checked within the shorter of its limits


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """Time limits of a client's connection, in seconds."""

    heartbeat: float = 15.0
    write_deadline: float = 30.0
    """After this time without reading, a client is dropped. It loses nothing: it reconnects at its cursor."""


Write = Callable[[bytes], bool]  # Sends a frame immediately; returns False if it could not be sent now


class EventSource(Protocol):
    async def next(self) -> Sequence[bytes] | None:
        """The next frames, at least one; None at the end. Safe to cancel."""

    def start(self, tasks: TaskGroup) -> None:
        """Called once, before `next`; tasks started here are cancelled with the stream."""
        return

    async def follow(self, write: Write) -> None:
        """Writes new frames until one cannot be written; `next` returns that one. By default all come from `next`."""
        return

    def close(self) -> None:
        return


class EventStream(Response):
    """Closes its source and leaves `connection` when it ends, for whatever reason."""

    def __init__(
        self,
        source: EventSource,
        limits: StreamLimits,
        connection: AsyncExitStack | None = None,
        headers: Sequence[tuple[bytes, bytes]] = (),
        first_frame: bytes = FIRST_FRAME,
        response_instead: Callable[[], Awaitable[Response | None]] | None = None,
    ) -> None:
        """`response_instead` may wait for a while and return another response to send instead of the stream."""
        self._first_frame = first_frame
        self._response_instead = response_instead
        self.background = None
        self.status_code = 200
        self._source = source
        self._connection = connection
        self._limits = limits
        self._extra_headers = headers
        self._sent = 0
        self._sending = False
        self._started = self._done = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Leaves the streaming to the middleware. The framework's stack frames are gone by then, which halves the
        memory of an idle stream."""
        scope[STREAM] = self

    async def run(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        begin: Send,
        credentials: Credentials,
        is_still_valid: Callable[[Credentials], bool],
    ) -> None:
        """`begin` sends the response head, `send` the body. The stream ends with the client's credentials."""
        try:
            async with anyio.create_task_group() as tg:
                self._source.start(tg)
                tg.start_soon(self._watch, scope, receive, send, tg.cancel_scope, credentials, is_still_valid)
                instead = None if self._response_instead is None else await self._response_instead()
                if instead is not None:
                    self._done = True
                    await instead(scope, receive, begin)
                    tg.cancel_scope.cancel()
                    return
                self._started = True
                await begin({"type": "http.response.start", "status": 200, "headers": [*HEADERS, *self._extra_headers]})
                await self._send_all(scope, send)
                tg.cancel_scope.cancel()
        finally:
            self._source.close()
            if self._connection is not None:
                await self._connection.aclose()

    async def _send_all(self, scope: Scope, send: Send) -> None:
        write: Write | None = _extension(scope, "holdfast.write")
        await send({"type": "http.response.body", "body": self._first_frame, "more_body": True})
        while (frames := await self._source.next()) is not None:
            for body in _bodies(frames):
                await self._send(send, body)
            if write is not None:
                await self._source.follow(partial(self._write, write))
        self._done = True
        await self._send(send, b"", more=False)

    async def _send(self, send: Send, body: bytes, *, more: bool = True) -> None:
        self._sending = True
        await send({"type": "http.response.body", "body": body, "more_body": more})
        self._sending = False
        self._sent += 1

    def _write(self, write: Write, body: bytes) -> bool:
        written = write(body)
        self._sent += written
        return written

    async def _watch(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        stream: anyio.CancelScope,
        credentials: Credentials,
        is_still_valid: Callable[[Credentials], bool],
    ) -> None:
        limits, sent, idle = self._limits, 0, 0.0
        interval = min(limits.heartbeat, limits.write_deadline) / _CHECKS
        while True:
            try:
                async with timeout(interval):
                    while (await receive())["type"] != "http.disconnect":
                        pass
                if not self._done:  # otherwise the response is complete
                    stream.cancel()
                return
            except TimeoutError:
                pass
            if not is_still_valid(credentials):
                abort_connection(scope)
                stream.cancel()
                return
            idle = idle + interval if self._sent == sent else 0.0
            sent = self._sent
            if self._sending and idle >= limits.write_deadline:
                abort_connection(scope)
                stream.cancel()
                return
            if self._started and not self._sending and idle >= limits.heartbeat:
                idle = 0.0
                await self._send_heartbeat(scope, send, stream)

    async def _send_heartbeat(self, scope: Scope, send: Send, stream: anyio.CancelScope) -> None:
        with anyio.move_on_after(self._limits.write_deadline) as limit:
            await send({"type": "http.response.body", "body": HEARTBEAT, "more_body": True})
        if limit.cancelled_caught:
            abort_connection(scope)
            stream.cancel()


def _bodies(frames: Sequence[bytes]) -> Iterator[bytes]:
    """The frames, joined into pieces of bounded size; a larger frame is a piece of its own."""
    piece: list[bytes] = []
    size = 0
    for frame in frames:
        if piece and size + len(frame) > _BODY:
            yield b"".join(piece)
            piece, size = [], 0
        piece.append(frame)
        size += len(frame)
    yield piece[0] if len(piece) == 1 else b"".join(piece)


def abort_connection(scope: Scope) -> None:
    """Drops a client that does not read, together with the data buffered for it. A server without this extension closes
    the connection when it can."""
    abort = _extension(scope, "holdfast.abort")
    if abort is not None:
        abort()


def _extension(scope: Scope, name: str) -> Any:
    return (scope.get("extensions") or {}).get(name)
