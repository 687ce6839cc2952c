"""Configures uvicorn. On shutdown it first stops accepting connections; the engine drains, then the streams end. The
whole order of the shutdown: `app.lifecycle`."""

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import httptools
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from holdfast.server.client_address import network_of
from holdfast.server.connection_limits import ConnectionLimits, raise_file_limit
from holdfast.server.event_loop import ServerEventLoop
from holdfast.server.peer_user import ESTABLISHED, find_peer_user
from holdfast.server.send_queue import queued_bytes

_MAX_HEAD: Final = 64 * 1024
_MAX_HEADERS: Final = 100


class UpgradeIgnoringParser(httptools.HttpRequestParser):
    """Parses a request that offers another protocol as if it did not: httptools would take it for one without a body,
    and the body for the next request. What follows goes to a new parser, because this one ignores it if the connection
    should have ended with the request."""

    __slots__ = ("_protocol",)

    def __init__(self, protocol: "HttpProtocol") -> None:
        super().__init__(protocol)
        self._protocol = protocol

    def feed_data(self, data: bytes) -> None:  # type: ignore[override]  # what asyncio passes
        parser = self
        while True:
            try:
                return httptools.HttpRequestParser.feed_data(parser, data)
            except httptools.HttpParserUpgrade as upgrade:
                data = self._protocol.head_without_upgrade() + data[upgrade.args[0] :]
                parser = self._protocol.renew_parser()


class HttpProtocol(HttpToolsProtocol):
    """Limits the size and the time of a request's head, the time in which a client takes a part of a response, and the
    number of connections. Ignores `Upgrade`.

    Adds five ASGI extensions. `holdfast.abort` drops the connection with its buffered data; closing would wait for a
    client that does not read. `holdfast.write` sends a chunk of a streamed body without awaiting.
    `holdfast.on_disconnect` takes a function to be called when the connection is lost, or None; while one is set, the
    rest of the body is discarded. `holdfast.peer_user` finds the user account at the other end.
    `holdfast.may_drop` is told whether the connection may be dropped while its request waits, to make room."""

    # Beside the attributes of the base class, these would make the dictionary of every connection an unshared one.
    __slots__ = (
        "_bodiless",
        "_head_timer",
        "_limits",
        "_on_disconnect",
        "_parsed",
        "_parser_error",
        "_peer_user",
        "_received",
        "_write_timer",
    )

    def __init__(self, limits: ConnectionLimits, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.renew_parser()
        self._limits = limits
        self._received = 0
        self._parsed = 0  # Bytes of the head that is expected or read now
        self._head_timer: asyncio.TimerHandle | None = None
        self._parser_error = HTTPStatus.BAD_REQUEST
        self._peer_user: int | None = None
        self._on_disconnect: Callable[[], None] | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._bodiless = 0  # Bytes since the last part of a body: chunk extensions and trailers

    @property
    def client_address(self) -> str | None:
        return None if self.client is None else network_of(self.client[0])

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._expect_head()
        self._limits.opened(self)
        if self.client is None and not self._is_unix:
            transport.abort()  # the client reset the connection before it was accepted, so its address is unknown

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        self._stop_write_timer()
        self._limits.closed(self)
        super().connection_lost(exc)
        callback, self._on_disconnect = self._on_disconnect, None
        if callback is not None:
            callback()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._head_timer is not None:
            self._received += len(data)
        else:
            self._bodiless += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if (self._received if self._head_timer is not None else self._bodiless) > _MAX_HEAD:
            self._reject(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif self._head_timer is None and self.timeout_keep_alive_task is None and not self._has_request:
            self._expect_head()  # data between two requests, which ended the keep-alive timeout

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_progress()

    def resume_writing(self) -> None:
        self._stop_write_timer()
        super().resume_writing()
        self._note_idle()

    def timeout_keep_alive_handler(self) -> None:
        if self.flow.write_paused:  # the client has not got the response yet
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        else:
            super().timeout_keep_alive_handler()

    def on_message_begin(self) -> None:
        if self._has_request and self.cycle.chunked_encoding is not False:
            # uvicorn would report a disconnect to the last request only: a stream before it would never end. A response
            # of known length may be complete for the client before it is for us.
            raise ValueError("a request was sent before the response to the previous one")  # ends the parser
        super().on_message_begin()
        self._on_disconnect = None
        if self._head_timer is None:
            self._expect_head()
        extensions: dict[str, Any] = {
            "holdfast.abort": self._abort,
            "holdfast.write": self._write,
            "holdfast.on_disconnect": self._call_on_disconnect,
            "holdfast.peer_user": self._find_peer_user,
            "holdfast.may_drop": self._may_drop,
        }
        self.scope["extensions"] = extensions

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head_timer is None:
            return  # a trailer, which must not pass for a header
        super().on_header(name, value)
        self._count(len(name) + len(value))

    def on_body(self, body: bytes) -> None:
        self._bodiless = 0
        self._received = 0  # After an early response, the rest of its request is no head. It has the time of one
        if self._on_disconnect is None:  # otherwise nobody reads the rest of the body
            super().on_body(body)

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                self._parser_error = HTTPStatus.METHOD_NOT_ALLOWED
                raise ValueError("this is not a proxy")  # ends the parser
            return  # the head is parsed again without the offer
        self._stop_head_timer()
        self._bodiless = 0
        self._limits.busy(self)
        self.transport.set_write_buffer_limits()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def renew_parser(self) -> UpgradeIgnoringParser:
        parser = UpgradeIgnoringParser(self)
        parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as in uvicorn
        self.parser = parser
        return parser

    def head_without_upgrade(self) -> bytes:
        """The head that has just been parsed."""
        self._parsed = 0
        kept = (b"%b: %b\r\n" % header for header in self.headers if header[0] != b"upgrade")
        version = self.parser.get_http_version().encode()
        return b"%b %b HTTP/%b\r\n%b\r\n" % (self.parser.get_method(), self.url, version, b"".join(kept))

    def send_400_response(self, msg: str) -> None:
        self._reject(self._parser_error)

    def on_response_complete(self) -> None:
        """The response is written; the client may take long to read it."""
        super().on_response_complete()
        if not self._has_request:
            self.transport.set_write_buffer_limits(0)  # calls `pause_writing` until everything is sent
            self._note_idle()

    def refuse(self) -> None:
        if not self.transport.is_closing():
            self._reject(HTTPStatus.SERVICE_UNAVAILABLE)

    def drop(self) -> None:
        self._abort()

    def _may_drop(self, may_drop: bool) -> None:
        if may_drop and not self.transport.is_closing():
            self._limits.may_drop(self)
        else:
            self._limits.must_keep(self)

    @property
    def _has_request(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _note_idle(self) -> None:
        if not self._has_request and not self.flow.write_paused and not self.transport.is_closing():
            self._limits.idle(self)

    def _expect_head(self) -> None:
        self._received = self._parsed = 0
        self._head_timer = self.loop.call_later(self._limits.head_timeout, self._reject, HTTPStatus.REQUEST_TIMEOUT)

    def _count(self, size: int) -> None:
        self._parsed += size
        if self._parsed > _MAX_HEAD or len(self.headers) > _MAX_HEADERS:
            self._parser_error = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise ValueError("the head of the request is too large")  # ends the parser

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _expect_progress(self) -> None:
        self._write_timer = self.loop.call_later(self._limits.write_deadline, self._check_progress, self._untaken)

    def _check_progress(self, before: int) -> None:
        if self._untaken < before:
            self._expect_progress()
        else:
            self._abort()

    @property
    def _untaken(self) -> int:
        """Bytes that the client has not taken; none are added while writing is paused."""
        return self.transport.get_write_buffer_size() + queued_bytes(self.transport.get_extra_info("socket"))

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _reject(self, status: HTTPStatus) -> None:
        """End the connection. The client gets a reason if it has sent something and waits for no other response."""
        self._stop_head_timer()
        if not self._has_request and (self._received or status != HTTPStatus.REQUEST_TIMEOUT):
            self.transport.write(
                f"HTTP/1.1 {status} {status.phrase}\r\ncontent-type: text/plain\r\nconnection: close\r\n"
                f"content-length: {len(status.phrase)}\r\n\r\n{status.phrase}".encode()
            )
        self.transport.close()

    def _write(self, body: bytes) -> bool:
        """Returns whether it was sent: not while the client reads too slowly, and not after it is gone. For chunked
        responses only."""
        if self.flow.write_paused or self.cycle.disconnected or not self.cycle.chunked_encoding:
            return False
        self.transport.write(b"%x\r\n%b\r\n" % (len(body), body))
        return True

    def _call_on_disconnect(self, callback: Callable[[], None] | None) -> None:
        if callback is not None and self.cycle.disconnected:
            callback()
            return
        self._on_disconnect = callback
        if callback is not None:
            self.flow.resume_reading()  # uvicorn pauses after a large body, and a disconnect has to be read

    @property
    def _is_unix(self) -> bool:
        return bool(self.transport.get_extra_info("socket").family == socket.AF_UNIX)

    async def _find_peer_user(self) -> int | None:
        """The user account at the other end; None if it is not known for certain."""
        if self._is_unix:
            return os.geteuid()  # its directory is private
        if self._peer_user is None and self.client and self.server:
            own = self.server[0], self.server[1] or 0
            has_opened = [self.loop.has_opened] if isinstance(self.loop, ServerEventLoop) else []
            found = await find_peer_user(self.client, own, *has_opened)
            if self.transport.is_closing():
                return None
            # While our own end is established, no later connection can have the same addresses.
            state = self.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
            self._peer_user = found if state[0] == ESTABLISHED else None
        return self._peer_user

    def _abort(self) -> None:
        """Discards the kernel's send buffer too; otherwise the kernel would keep retrying for a long time."""
        sock = self.transport.get_extra_info("socket")
        if sock is not None and sock.fileno() >= 0:  # not aborted before
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


class UvicornServer(uvicorn.Server):
    """Leaves signals to its caller, and calls `started` once it is listening."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started_callback = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started_callback()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def create_server(
    app: ASGIApp,
    *,
    graceful: float,
    started: Callable[[], None],
    unix: Path | None = None,
    limits: ConnectionLimits | None = None,
) -> UvicornServer:
    """`graceful`: seconds after which open requests are cut off at shutdown. `unix`: listen on this path; otherwise on
    the sockets passed to `serve`."""
    config = uvicorn.Config(
        app,
        uds=None if unix is None else str(unix),
        http=partial(HttpProtocol, limits or raise_file_limit()),  # type: ignore[arg-type]  # called like the class
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
    return UvicornServer(config, started)


def bind(host: str, port: int) -> socket.socket:
    """Opens the listening socket. Raises OSError, before anything else is opened."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.create_server((host, port), family=family, backlog=4096)
    sock.setblocking(False)
    return sock
