"""uvicorn, and how it stops: no new connections, then the engine drains, then the streams end, then the process."""

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Protocol(HttpToolsProtocol):
    """Offers two ASGI extensions. `holdfast.abort` drops the connection with what is buffered for it: closing would
    wait for a client that does not read. `holdfast.write` sends a piece of a streamed body without awaiting."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        extensions: dict[str, Any] = {"holdfast.abort": self._abort, "holdfast.write": self._write}
        self.scope["extensions"] = extensions

    def _write(self, body: bytes) -> bool:
        """Whether it was taken: not while the client reads too slowly, nor once it is gone. Only while a chunked answer
        is being streamed."""
        if self.flow.write_paused or self.cycle.disconnected or not self.cycle.chunked_encoding:
            return False
        self.transport.write(b"%x\r\n%b\r\n" % (len(body), body))
        return True

    def _abort(self) -> None:
        """Also what the system still holds for the client: without this it would go on trying for a long time."""
        sock = self.transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


class Server(uvicorn.Server):
    """Leaves signals to whoever runs it, and tells him when it listens."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._tell()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def make(app: ASGIApp, *, graceful: float, started: Callable[[], None], unix: Path | None = None) -> Server:
    """`graceful`: seconds after which calls that do not end are cut off. `unix`: listen on this socket; otherwise on
    those that `serve` is given."""
    config = uvicorn.Config(
        app,
        uds=None if unix is None else str(unix),
        http=Protocol,
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=int(graceful) + 1,
        backlog=4096,
        ws="none",
    )
    return Server(config, started)


def bind(host: str, port: int) -> socket.socket:
    """Listen, or OSError: better before anything else is opened than after."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(4096)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock
