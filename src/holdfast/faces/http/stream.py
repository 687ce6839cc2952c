"""A server-sent event stream to one client.

Two tasks: one sends what its source has, the other watches the line. Once a client has everything, new frames are
written to its line by whoever has them, and the first task sleeps. The watcher notices that the client has left,
in the middle of whatever the first one awaits and whatever version of ASGI the server speaks; it keeps a silent line
alive with comments; and it drops a client that has not read for too long. Nothing is timed per event.
"""

from asyncio import timeout  # a cancel scope would cost a waiting client another kilobyte
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final, Protocol

import anyio
from anyio.abc import TaskGroup
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.core.values import dataclass

HEADERS: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),  # proxies that would gather the stream
]
STREAM: Final = "holdfast.stream"
"""Where a route leaves the stream that it wants sent."""
OPENING: Final = b"retry: 1000\n\n"
"""Clients that lose the line come back after a second."""
HEARTBEAT: Final = b": still here\n\n"
_GLANCES: Final = 3
"""How often the watcher looks within the shorter of its limits; that is how exactly they are kept."""


@dataclass(frozen=True, slots=True)
class Line:
    """Limits of a client's line, in seconds."""

    heartbeat: float = 15.0
    write_deadline: float = 30.0
    """How long a client may leave unread what was sent before it is dropped. It loses nothing: it comes back."""


Write = Callable[[bytes], bool]
"""Sends it at once; False: not now, it was not sent."""


Follow = Callable[[Write], Awaitable[None]]
"""Writes frames as they come, for as long as that goes well. What could not be written comes by `next`."""


class Source(Protocol):
    def start(self, tasks: TaskGroup) -> None:
        """Called once, before `next`; tasks started here end with the stream."""

    async def next(self) -> Sequence[bytes] | None:
        """The next frames, at least one; None at the end. Safe to cancel."""

    def close(self) -> None: ...


class Streaming(Protocol):
    """What a route leaves behind, to be run by the guard."""

    async def run(self, scope: Scope, receive: Receive, send: Send, begin: Send) -> None:
        """`begin` takes the head of the answer, `send` the rest."""


class EventStream(Response):
    """When it ends, however that comes about, its source is closed, and what it holds is left."""

    def __init__(
        self,
        source: Source,
        line: Line,
        held: AsyncExitStack | None = None,
        headers: Sequence[tuple[bytes, bytes]] = (),
        follow: Follow | None = None,
        opening: bytes = OPENING,
    ) -> None:
        self._opening = opening
        self.background = None
        self.status_code = 200
        self._source = source
        self._held = held
        self._follow = follow
        self._line = line
        self._extra = headers
        self._sent = 0
        self._sending = False
        self._begun = self._done = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Leave the streaming to the guard: by then the framework's frames are gone, and an idle stream costs half."""
        scope[STREAM] = self

    async def run(self, scope: Scope, receive: Receive, send: Send, begin: Send) -> None:
        """`begin` takes the head of the answer, `send` the rest."""
        try:
            async with anyio.create_task_group() as tg:
                self._source.start(tg)
                tg.start_soon(self._watch, scope, receive, send, tg.cancel_scope)
                refused = await self.refusal()
                if refused is not None:
                    self._done = True
                    await refused(scope, receive, begin)
                    tg.cancel_scope.cancel()
                    return
                self._begun = True
                await begin({"type": "http.response.start", "status": 200, "headers": [*HEADERS, *self._extra]})
                await self._send_all(scope, send)
                tg.cancel_scope.cancel()
        finally:
            self._source.close()
            if self._held is not None:
                await self._held.aclose()

    async def refusal(self) -> Response | None:
        """What is answered instead, if it turns out that there is nothing to stream. The line is watched meanwhile."""
        return None

    async def _send_all(self, scope: Scope, send: Send) -> None:
        write: Write | None = _extension(scope, "holdfast.write")
        await send({"type": "http.response.body", "body": self._opening, "more_body": True})
        while (frames := await self._source.next()) is not None:
            await self._send(send, frames[0] if len(frames) == 1 else b"".join(frames))
            if write is not None and self._follow is not None:
                await self._follow(partial(self._write, write))
        self._done = True
        await self._send(send, b"", more=False)

    async def _send(self, send: Send, body: bytes, *, more: bool = True) -> None:
        self._sending = True
        await send({"type": "http.response.body", "body": body, "more_body": more})
        self._sending = False
        self._sent += 1

    def _write(self, write: Write, body: bytes) -> bool:
        taken = write(body)
        self._sent += taken
        return taken

    async def _watch(self, scope: Scope, receive: Receive, send: Send, stream: anyio.CancelScope) -> None:
        line, sent, still = self._line, 0, 0.0
        glance = min(line.heartbeat, line.write_deadline) / _GLANCES
        while True:
            try:
                async with timeout(glance):
                    while (await receive())["type"] != "http.disconnect":
                        pass
                if not self._done:  # otherwise it is only told that it has had everything
                    stream.cancel()
                return
            except TimeoutError:
                pass
            still = still + glance if self._sent == sent else 0.0
            sent = self._sent
            if self._sending and still >= line.write_deadline:
                _abort(scope)
                stream.cancel()
                return
            if self._begun and not self._sending and still >= line.heartbeat:
                still = 0.0
                await self._beat(scope, send, stream)

    async def _beat(self, scope: Scope, send: Send, stream: anyio.CancelScope) -> None:
        with anyio.move_on_after(self._line.write_deadline) as limit:
            await send({"type": "http.response.body", "body": HEARTBEAT, "more_body": True})
        if limit.cancelled_caught:
            _abort(scope)
            stream.cancel()


def _abort(scope: Scope) -> None:
    """Let go of a client that does not read: what is buffered for it must not stay. A server without this extension
    closes the connection when it can."""
    abort = _extension(scope, "holdfast.abort")
    if abort is not None:
        abort()


def _extension(scope: Scope, name: str) -> Any:
    return (scope.get("extensions") or {}).get(name)
