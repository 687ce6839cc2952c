"""One HTTP/1.1 connection to a model server: an `asyncio.Protocol` that feeds httptools' parser. Bytes go from the
socket to the response's buffer, and on with `HttpResponse.follow` without a task in between; `read` wakes the task that
waits."""

import asyncio
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from holdfast.models.read_batcher import ReadBatcher
from holdfast.models.upstream_errors import UpstreamError

MAX_HEAD: Final = 256 * 1024  # Bytes that may arrive without any body in them: headers, trailers and chunk framing
_MAX_HEADERS: Final = 1_000
MAX_INFLATED: Final = 256 * 1024  # Bytes of a compressed body that are read at once
HIGH_WATER: Final = 256 * 1024  # Unread bytes of a body at which the socket is no longer read
LINGER: Final = 1.0  # Seconds that the end of a body may take after its content was complete


class HttpError(Exception):
    """A request failed. `error` describes the failure."""

    def __init__(self, error: UpstreamError) -> None:
        super().__init__(error.detail)
        self.error = error


class StaleConnectionError(HttpError):
    """The server closed a reused connection before it sent any byte: the request can be sent again."""


class HttpResponse:
    """A response whose body may still be arriving. What arrived before a failure is read before the failure. A
    compressed body is kept as it arrived, and inflated as it is read."""

    def __init__(
        self, connection: "HttpConnection", status: int, headers: Mapping[str, str], *, compressed: bool = False
    ) -> None:
        self.status = status
        self.headers = headers  # Names in lower case
        self._connection: HttpConnection | None = connection
        self._pieces: list[bytes] = []
        self._size = 0
        self._ended = False
        self._error: HttpError | None = None
        self._on_arrival: Callable[[], None] | None = None
        self._discarding = False
        # gzip or deflate; zlib has no public type for it.
        self._inflater: Any = zlib.decompressobj(zlib.MAX_WBITS | 32) if compressed else None

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def read(self) -> bytes:
        """Returns what has arrived, after waiting for something; b"" at the end of the body."""
        while True:
            while not self._pieces:
                if self._error is not None:
                    raise self._error
                if self._ended:
                    return b""
                await self._wait_for_arrival()
            if self._inflater is None:
                return self._take()
            await asyncio.sleep(0)  # what has arrived may be a thousand pieces
            if self._pieces and (inflated := self._take()):
                return inflated

    async def _wait_for_arrival(self) -> None:
        arrived = asyncio.Event()
        self._on_arrival = arrived.set
        try:
            await arrived.wait()
        finally:
            self._on_arrival = None

    async def follow(self, take: Callable[[bytes], bool], batcher: ReadBatcher) -> None:
        """Calls `take` with data as it arrives, until it returns False or raises, or the body ends or fails. The end
        and a failure are left for `read` to report; returns at once if there is something to read already, or if the
        body is compressed."""
        loop = asyncio.get_running_loop()
        stopped: asyncio.Future[None] = loop.create_future()

        def enqueue() -> None:
            self._on_arrival = None
            batcher.add(deliver, loop, self)

        def deliver() -> int:
            if stopped.done():  # the task was cancelled
                return 0
            size = self._size
            try:
                wants_more = not self._pieces or take(self._take())
            except Exception as error:  # noqa: BLE001 - the event loop calls this; the waiting task raises it
                if not stopped.done():  # `take` may have cancelled the task
                    stopped.set_exception(error)
                return size
            if wants_more and not self._ended and self._error is None:
                self._on_arrival = enqueue
            elif not stopped.done():
                stopped.set_result(None)
            return size

        if self._pieces or self._ended or self._error is not None or self._inflater is not None:
            return
        self._on_arrival = enqueue
        try:
            await stopped
        finally:
            self._on_arrival = None

    def pause(self) -> None:
        """Stops reading the body for now. It must be resumed, even if the response is given up."""
        if self._connection is not None and not self._discarding:
            self._connection.pause()

    def resume(self) -> None:
        if self._connection is not None and self._size < HIGH_WATER:
            self._connection.resume()

    def abort(self) -> None:
        """Closes the socket now, unless the body is complete; then the connection belongs to the pool."""
        if self._connection is not None:
            self._connection.abort()

    def release(self) -> None:
        """Discards the rest of the body. If it ends within a moment the connection is kept, otherwise closed."""
        self._discarding = True
        self._pieces.clear()
        if self._connection is not None:
            self._connection.resume()
            self._connection.abort_after(LINGER)

    # ---- called by the connection ----

    def feed(self, data: bytes) -> bool:
        """Returns whether there is room for more."""
        if self._discarding:
            return True
        self._pieces.append(data)
        self._size += len(data)
        return self._size < HIGH_WATER

    def finish(self, error: HttpError | None = None) -> None:
        self._connection = None
        self._ended = error is None
        self._error = self._error or error
        self.notify()

    def notify(self) -> None:
        if self._on_arrival is not None:
            self._on_arrival()

    def _take(self) -> bytes:
        """All that has arrived, or the next piece of a compressed body."""
        pieces = self._pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        was_full, self._size = self._size >= HIGH_WATER, 0
        if self._inflater is not None:
            data = self._inflate(data)
        if was_full and self._size < HIGH_WATER and self._connection is not None:
            self._connection.resume()
        return data

    def _inflate(self, data: bytes) -> bytes:
        """Decodes the next piece and keeps the rest. We do not request compression, but some servers compress all the
        same. What follows the compressed body is dropped."""
        if self._inflater.eof:
            return b""
        try:
            inflated: bytes = self._inflater.decompress(data, MAX_INFLATED)
        except zlib.error:
            self.abort()
            self._error = HttpError(UpstreamError("protocol", "its compressed answer cannot be decoded", retry=True))
            raise self._error from None
        rest = self._inflater.unconsumed_tail
        if rest or len(inflated) == MAX_INFLATED:  # zlib may hold back some, without any rest
            self._pieces.append(rest)
            self._size = len(rest)
        return inflated


class HttpConnection(asyncio.Protocol):
    """Carries one request at a time. `on_idle` is called when it can carry another, `on_closed` once."""

    transport: asyncio.Transport

    def __init__(
        self, on_idle: Callable[["HttpConnection"], None], on_closed: Callable[["HttpConnection"], None]
    ) -> None:
        self._on_idle = on_idle
        self._on_closed = on_closed
        self.closed = asyncio.Event()
        self._parser: HttpResponseParser | None = None
        self._head: asyncio.Future[HttpResponse] | None = None
        self._response: HttpResponse | None = None
        self._headers: dict[str, str] = {}
        self._header_count = 0
        self._failure: UpstreamError | None = None
        self._complete = self._keep_alive = self._paused = self._reused = False
        self._received = 0  # bytes since the request, or since the last of its body
        self._any_byte = False
        self._timer: asyncio.TimerHandle | None = None

    async def send(self, request: bytes) -> HttpResponse:
        """Sends a request and waits for the head of its response. Closes the connection if that fails or is
        cancelled."""
        self._stop_timer()
        self._parser = HttpResponseParser(self)
        # A connection carries one request at a time, so a lenient reading of line ends cannot confuse two responses.
        self._parser.set_dangerous_leniencies(
            lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True, lenient_headers=True
        )
        self._complete = self._any_byte = False
        self._received = 0
        self._head = asyncio.get_running_loop().create_future()
        try:
            if self.transport.is_closing():
                raise StaleConnectionError(UpstreamError("unavailable", "the connection was closed", retry=True))
            self.transport.write(request)
            return await self._head
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """Closes the socket now, without waiting for unsent data or for TLS to say goodbye."""
        self._stop_timer()
        self.transport.abort()

    def abort_after(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.abort)

    def pause(self) -> None:
        if not self._paused and not self.transport.is_closing():
            self._paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        if self._paused:
            self._paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # ---- called by the event loop ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's transports have no common base class

    def data_received(self, data: bytes) -> None:
        if self._parser is None:  # nothing was asked
            self.abort()
            return
        self._any_byte = True
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            if not self._complete:
                self._failure = self._failure or self._invalid()
            self._keep_alive = False
        if self._failure is None and self._received > MAX_HEAD and not self._complete:
            self._failure = UpstreamError("protocol", f"its headers are larger than {MAX_HEAD:,} bytes")
        if self._failure is not None:
            self._fail(HttpError(self._failure))
        elif self._complete:
            self._finish()
        elif self._response is not None:
            self._response.notify()

    def connection_lost(self, error: Exception | None) -> None:
        self._stop_timer()
        self.closed.set()
        self._on_closed(self)
        response = self._response
        if self._head is not None and not self._head.done():
            lost = UpstreamError("unavailable", "it closed the connection without an answer", retry=True)
            stale = self._reused and not self._any_byte
            self._head.set_exception(StaleConnectionError(lost) if stale else HttpError(lost))
        elif response is not None and error is None and self._body_ends_with_connection():
            response.finish()
        elif response is not None:
            broken = UpstreamError("unavailable", "the connection broke", retry=True, source="answer")
            response.finish(HttpError(broken))
        self._response = None

    # ---- called by the parser ----

    def on_message_begin(self) -> None:
        self._headers, self._header_count = {}, 0
        if self._complete:  # more than one response to one request
            self._keep_alive = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        if self._header_count > _MAX_HEADERS:  # joining as many of one name as fit into `MAX_HEAD` would take long
            self._failure = self._failure or UpstreamError("protocol", f"it has more than {_MAX_HEADERS:,} headers")
            return
        key, text = name.decode("latin-1").lower(), value.decode("utf-8", "replace").strip()
        self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        if self._complete or self._failure is not None or self._head is None or self._head.done():
            return
        if 100 <= status < 200:
            return  # an interim response is followed by the final one
        encoding = self._headers.get("content-encoding", "identity").lower()
        compressed = encoding in ("gzip", "x-gzip", "deflate")
        if not compressed and encoding not in ("", "identity"):
            self._failure = UpstreamError("protocol", f"it compressed the answer as {encoding}, which is not supported")
            return
        self._response = HttpResponse(self, status, self._headers, compressed=compressed)
        self._head.set_result(self._response)

    def on_body(self, body: bytes) -> None:
        self._received = 0
        response = self._response
        if response is None or self._complete or self._failure is not None:
            return
        if not response.feed(body):
            self.pause()

    def on_message_complete(self) -> None:
        if self._response is not None and not self._complete:
            assert self._parser is not None
            self._complete = True
            self._keep_alive = self._parser.should_keep_alive()

    # ---- the end of a response ----

    def _invalid(self) -> UpstreamError:
        if self._response is None:
            return UpstreamError("protocol", "the answer is not valid HTTP", retry=True)
        return UpstreamError("unavailable", "the answer broke off: its chunks are not valid HTTP", retry=True)

    def _body_ends_with_connection(self) -> bool:
        chunked = "chunked" in self._headers.get("transfer-encoding", "").lower()
        return not chunked and "content-length" not in self._headers

    def _fail(self, error: HttpError) -> None:
        response, self._response = self._response, None
        if self._head is not None and not self._head.done():
            self._head.set_exception(error)
        elif response is not None:
            response.finish(error)
        self.abort()

    def _finish(self) -> None:
        response, self._response = self._response, None
        self._parser = None
        self._stop_timer()
        self.resume()
        if response is not None:
            response.finish()
        if self._keep_alive and not self.transport.get_write_buffer_size():
            self._reused = True
            self._on_idle(self)
        else:
            self.abort()
