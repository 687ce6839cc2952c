"""A scripted upstream on a real socket: every byte that it sends is written down, and it sees when a client goes.

    async with upstream([Head(), *sse({"choices": …}), Hang()]) as up:
        … ask `up.url` …
        await up.exchanges[0].closed.wait()

A script is a sequence of steps. Several scripts answer one request each, in order; the last one answers all further
ones.
"""

import json
import socket
import struct
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, assert_never

import anyio
from anyio.abc import SocketAttribute, SocketStream

from holdfast.agents.scripted_agent import Gate

U = TypeVar("U", bound="Upstream")

GUARD = 30.0
"""Seconds after which a test that waits for something has failed."""


@dataclass(frozen=True, slots=True)
class Head:
    """The status line and headers. Without a length the body is chunked; see `Chunk`, `End` and `Body`."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "text/event-stream"})
    chunked: bool = True


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of a chunked body, in one write."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes as they are: half a chunk, no HTTP at all …"""

    data: bytes


@dataclass(frozen=True, slots=True)
class End:
    """The end of a chunked body; the connection stays."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Close it with a reset, as a process that is killed does."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Do nothing until the client goes."""


@dataclass(frozen=True, slots=True)
class PauseAt:
    """Report that this point is reached, then wait until the test opens its gate."""

    name: str


@dataclass(frozen=True, slots=True)
class Forever:
    """Repeat a step until the client goes."""

    step: "Chunk | Raw"


Step = Head | Chunk | Raw | End | Close | Reset | Hang | PauseAt | Forever
Script = Sequence[Step]


def sse(*events: Any, end: bytes = b"\n\n") -> list[Step]:
    """Each event in a chunk of its own; what is not text already is written as JSON."""
    return [Chunk(b"data: " + _text(event) + end) for event in events]


def _text(event: Any) -> bytes:
    if isinstance(event, bytes):
        return event
    return (event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)).encode()


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk of a chat completion."""
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def says(*texts: str, finish: str = "stop") -> Script:
    """A whole answer."""
    return [Head(), *sse(*(delta(content=text) for text in texts), delta(finish=finish), "[DONE]"), End()]


def answers(status: int, body: Any, **headers: str) -> Script:
    """An answer that is no stream."""
    text = _text(body)
    head = {"Content-Type": "application/json", "Content-Length": str(len(text))}
    head |= {name.replace("_", "-"): value for name, value in headers.items()}
    return [Head(status, head, chunked=False), Raw(text)]


@dataclass
class Exchange:
    """A request, and when its connection closed."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    closed: anyio.Event = field(default_factory=anyio.Event)
    closed_at: float | None = None
    """By the event loop's clock."""

    def json(self) -> Any:
        return json.loads(self.body)


class _GoneError(Exception):
    pass


class Upstream:
    def __init__(self, scripts: Sequence[Script] = ()) -> None:
        self.scripts = list(scripts)
        self.exchanges: list[Exchange] = []
        self.connections = 0
        self.port = 0
        self._gates: dict[str, Gate] = {}
        self._asked = anyio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def gate(self, name: str) -> Gate:
        return self._gates.setdefault(name, Gate())

    async def asked(self, count: int = 1) -> Exchange:
        """Wait for request number `count`."""
        with anyio.fail_after(GUARD):
            while len(self.exchanges) < count:
                await self._asked.wait()
        return self.exchanges[count - 1]

    async def closed(self, count: int = 1) -> Exchange:
        """Wait until the connection of request number `count` is closed."""
        exchange = await self.asked(count)
        with anyio.fail_after(GUARD):
            await exchange.closed.wait()
        return exchange

    def script(self, exchange: Exchange) -> Script:
        """What answers this request, which is the newest of `exchanges`."""
        return self.scripts[min(len(self.exchanges), len(self.scripts)) - 1]

    # ---- one connection ----

    async def serve(self, stream: SocketStream) -> None:
        self.connections += 1
        pending = bytearray()
        exchange: Exchange | None = None
        try:
            async with stream:
                while (next_one := await _request(stream, pending)) is not None:
                    exchange = next_one
                    self.exchanges.append(exchange)
                    self._asked.set()
                    self._asked = anyio.Event()
                    if not await self._play(stream, self.script(exchange), pending):
                        break
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, _GoneError):
            pass
        finally:
            if exchange is not None:
                exchange.closed_at = anyio.current_time()
                exchange.closed.set()

    async def _play(self, stream: SocketStream, script: Script, pending: bytearray) -> bool:
        """Whether the connection may serve another request."""
        goes_on = gone = False

        async def watch() -> None:
            nonlocal gone
            try:
                while True:
                    pending.extend(await stream.receive())
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                gone = True
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            try:
                goes_on = await self._steps(stream, script)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                gone = True
            group.cancel_scope.cancel()
        if gone:
            raise _GoneError
        return goes_on

    async def _steps(self, stream: SocketStream, script: Script) -> bool:
        for step in script:
            match step:
                case Head(status, headers, chunked):
                    lines = [f"HTTP/1.1 {status} Scripted", *(f"{k}: {v}" for k, v in headers.items())]
                    if chunked:
                        lines.append("Transfer-Encoding: chunked")
                    await stream.send(("\r\n".join(lines) + "\r\n\r\n").encode())
                case Chunk(data):
                    await stream.send(_chunk(data))
                case Raw(data):
                    await stream.send(data)
                case End():
                    await stream.send(b"0\r\n\r\n")
                case Hang():
                    await anyio.sleep_forever()
                case PauseAt(name):
                    gate = self.gate(name)
                    gate.reached.set()
                    await gate.open.wait()
                case Forever(again):
                    data = _chunk(again.data) if isinstance(again, Chunk) else again.data
                    while True:
                        await stream.send(data)
                case Close():
                    return False
                case Reset():
                    raw = stream.extra(SocketAttribute.raw_socket)
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return False
                case _:
                    assert_never(step)
        return True


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def _request(stream: SocketStream, pending: bytearray) -> Exchange | None:
    try:
        while b"\r\n\r\n" not in pending:
            pending.extend(await stream.receive())
        head, _, rest = bytes(pending).partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        length = int(headers.get("content-length", 0))
        while len(rest) < length:
            rest += await stream.receive()
    except anyio.EndOfStream:
        return None
    pending[:] = rest[length:]
    method, path, _ = lines[0].split(" ")
    return Exchange(method, path, headers, rest[:length])


@asynccontextmanager
async def upstream(*scripts: Script) -> AsyncIterator[Upstream]:
    """An upstream for as long as the block lasts."""
    async with listening(Upstream(scripts)) as server:
        yield server


@asynccontextmanager
async def listening(server: U) -> AsyncIterator[U]:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener:
        server.port = listener.extra(SocketAttribute.local_port)
        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, server.serve)
            try:
                yield server
            finally:
                group.cancel_scope.cancel()
