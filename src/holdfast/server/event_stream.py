"""A server-sent event stream to one client: sending, heartbeats, and detecting that the client is gone. How long these
take: `heartbeat` and `write_deadline` of the configuration. The bytes of an event: `core.events`.

One task per stream sends the frames of its source; once the client is up to date, new frames are written to its
connection directly and this task sleeps. The server calls `ConnectionWatch` when the client disconnects, and a timer
calls it to send heartbeat comments on a silent connection and to drop a client whose login has ended. There is no timer
per event.

A client that does not read holds what `uvicorn_server` buffers before a write waits, and one page of the source
(`event_sources`), until `uvicorn_server` drops it; it reconnects at its cursor and loses nothing.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, Protocol

import anyio
from anyio.abc import TaskGroup
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.server.access_rules import Credentials
from holdfast.server.disconnects import wait_for_disconnect

log = logging.getLogger("holdfast.http")

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
"""Bytes after which a page of frames is sent in several pieces."""
_CHECKS: Final = 3  # How often a connection is checked between two heartbeats


@dataclass(frozen=True, slots=True)
class StreamLimits:
    heartbeat: float = 15.0  # Seconds between two comments on a silent stream


Write = Callable[[bytes], bool]  # Sends a frame immediately; returns False if it could not be sent now


class EventSource(Protocol):
    has_tasks: ClassVar[bool] = False  # Whether `start` starts tasks

    @property
    def is_ready(self) -> bool:
        """Whether the first frames come at once. The opening of the stream then goes in one piece with them; otherwise
        it goes ahead, so that a client knows that its stream is open."""
        return False

    @property
    def at_end(self) -> bool:
        """Whether `next` has returned the last frames: the end of the stream then goes in one piece with them."""
        return False

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
        self.sent = 0  # Number of writes that the client's connection has accepted
        self.sending = False
        self.started = self.done = False

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
        with anyio.CancelScope() as cancel:
            watch = ConnectionWatch(self, scope, self._limits, cancel, partial(is_still_valid, credentials))
            try:
                is_told = watch.start()
                if is_told and not self._source.has_tasks:
                    await self._respond(scope, receive, send, begin)
                    return
                async with anyio.create_task_group() as tasks:
                    self._source.start(tasks)
                    if not is_told:
                        tasks.start_soon(wait_for_disconnect, receive, cancel)
                    await self._respond(scope, receive, send, begin)
                    tasks.cancel_scope.cancel()
            finally:
                watch.stop()
                self._source.close()
                if self._connection is not None:
                    await self._connection.aclose()

    async def _respond(self, scope: Scope, receive: Receive, send: Send, begin: Send) -> None:
        instead = None if self._response_instead is None else await self._response_instead()
        if instead is not None:
            self.done = True
            await instead(scope, receive, begin)
            return
        self.started = True
        await begin({"type": "http.response.start", "status": 200, "headers": [*HEADERS, *self._extra_headers]})
        await self._send_all(send, _extension(scope, "holdfast.write"))

    async def _send_all(self, send: Send, write: Write | None) -> None:
        opening = [self._first_frame]
        if not self._source.is_ready:
            await self._send(send, opening.pop())
        while (frames := await self._source.next()) is not None:
            *pieces, last = _bodies([*opening, *frames])
            opening.clear()
            for piece in pieces:
                await self._send(send, piece)
            if self._source.at_end:
                await self._send(send, last, more=False)
                return
            await self._send(send, last)
            if write is not None:
                await self._source.follow(partial(self._write, write))
        await self._send(send, b"".join(opening), more=False)

    async def _send(self, send: Send, body: bytes, *, more: bool = True) -> None:
        self.done = not more
        self.sending = True
        await send({"type": "http.response.body", "body": body, "more_body": more})
        self.sending = False
        self.sent += 1

    def _write(self, write: Write, body: bytes) -> bool:
        written = write(body)
        self.sent += written
        return written


class ConnectionWatch:
    """Watches the client of one stream, whatever the stream's task awaits. A server without our extensions sends no
    heartbeats."""

    __slots__ = ("_cancel", "_interval", "_is_valid", "_limits", "_scope", "_sent", "_since", "_stream", "_timer")

    def __init__(
        self,
        stream: EventStream,
        scope: Scope,
        limits: StreamLimits,
        cancel: anyio.CancelScope,
        is_valid: Callable[[], bool],
    ) -> None:
        self._stream = stream
        self._scope = scope
        self._limits = limits
        self._cancel = cancel
        self._is_valid = is_valid  # Whether the client's login has not ended
        self._interval = limits.heartbeat / _CHECKS
        self._sent = 0

    def start(self) -> bool:
        """Returns whether the server tells of a disconnect."""
        loop = asyncio.get_running_loop()
        self._since = loop.time()  # When `_sent` last changed
        self._timer = loop.call_later(self._interval, self._check, loop)
        return self._call_on_disconnect(self._disconnected)

    def stop(self) -> None:
        self._timer.cancel()
        self._call_on_disconnect(None)

    def _call_on_disconnect(self, callback: Callable[[], None] | None) -> bool:
        watch = _extension(self._scope, "holdfast.on_disconnect")
        if watch is not None:
            watch(callback)
        return watch is not None

    def _disconnected(self) -> None:
        if not self._stream.done:  # otherwise the response is complete
            self._cancel.cancel()

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        stream, limits, now = self._stream, self._limits, loop.time()
        if stream.sent != self._sent:
            self._sent, self._since = stream.sent, now
        silent = now - self._since
        if not self._is_logged_in():
            abort_connection(self._scope)
            self._cancel.cancel()
            return
        if stream.started and not stream.sending and silent >= limits.heartbeat:
            write: Write | None = _extension(self._scope, "holdfast.write")
            if write is None or write(HEARTBEAT):
                self._since = now
        self._timer = loop.call_later(self._interval, self._check, loop)

    def _is_logged_in(self) -> bool:
        """An error counts as no: the client is dropped and authenticates again, rather than never being checked."""
        try:
            return self._is_valid()
        except Exception:
            log.exception("Checking the login of a stream failed; its client is dropped")
            return False


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
