"""Limits on request heads and connections, which hold before any access control."""

import asyncio
import itertools
import resource
import select
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send
from trio.testing import MockClock

from holdfast.server import uvicorn_server
from holdfast.server.access_rules import Credentials, RequestFacts, decide_access
from holdfast.server.authenticator import set_password
from holdfast.server.body_limits import limit_body
from holdfast.server.client_address import network_of
from holdfast.server.connection_limits import ConnectionLimits, raise_file_limit
from holdfast.server.downloads import Download
from holdfast.server.event_loop import ServerEventLoop
from holdfast.server.send_queue import queued_bytes
from holdfast.storage.key_file import KeyFile
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import GUARD

JSON = {"Content-Type": "application/json"}
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
LARGE = b"x" * 32_000_000  # More than the kernel keeps for a client that does not read
MANY = b"".join(b"x-%d: y\r\n" % n for n in range(100))


LOOPS = pytest.mark.parametrize(
    "anyio_backend",
    [("asyncio", {"loop_factory": factory}) for factory in (None, ServerEventLoop)],
    ids=["asyncio", "ours"],
)


@dataclass
class Server:
    port: int
    release: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    droppable: asyncio.Event = field(default_factory=asyncio.Event)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def connect(self, data: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers.append(writer)
        writer.write(data)
        return reader, writer

    async def status(self, data: bytes) -> int:
        """The status of the response; 0 without one, as a client that still sends may get."""
        reader, _ = await self.connect(data)
        try:
            return _status(await reader.read())
        except ConnectionError:
            return 0


def _status(response: bytes) -> int:
    return int(response.split(b" ", 2)[1]) if response else 0


@asynccontextmanager
async def serving(limits: ConnectionLimits, keep_alive: float = 75.0) -> AsyncIterator[Server]:
    """An app that answers at once, at /wait when it is released, and at /endless forever."""
    listener = uvicorn_server.bind("127.0.0.1", 0)
    server = Server(listener.getsockname()[1])

    async def chunks() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"chunk" * 1000
                await asyncio.sleep(0)
        finally:
            server.closed.set()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        path = Request(scope).url.path
        if path == "/droppable":
            scope["extensions"]["holdfast.may_drop"](True)
            server.droppable.set()
        if path in ("/wait", "/droppable"):
            await server.release.wait()
        names = b", ".join(name for name, _ in scope["headers"])
        response: Response = Download(chunks(), "file", {}) if path == "/endless" else PlainTextResponse("ok")
        if path == "/headers":
            await Request(scope, receive).body()
            response = PlainTextResponse(b"[%b]" % names)
        elif path == "/large":
            response = PlainTextResponse(LARGE)
        elif path == "/echo":
            response = PlainTextResponse(b"[%b]" % await Request(scope, receive).body())
        elif path == "/stream":
            response = StreamingResponse(chunks())
        await response(scope, receive, send)

    ready = asyncio.Event()
    web = uvicorn_server.create_server(app, graceful=1.0, started=ready.set, limits=limits)
    web.config.timeout_keep_alive = keep_alive  # type: ignore[assignment]  # uvicorn passes it on as it is
    serving_task = asyncio.create_task(web.serve([listener]))
    async with asyncio.timeout(GUARD):
        await ready.wait()
        yield server
        for writer in server.writers:
            writer.close()
        web.should_exit = True
        await serving_task


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("head", "statuses"),
    [
        (GET + MANY + b"\r\n", (431,)),
        (GET + b"x: " + b"y" * 70_000 + b"\r\n\r\n", (431, 0)),
        (GET + b"x: " + b"y" * 70_000, (431, 0)),
        (b"GET /" + b"y" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", (431, 0)),
        (GET + b"a: 1\r\n" * 1_000_000, (431, 0)),
        (GET + b"broken\r\n\r\n", (400,)),
        (GET + b"x: y", (408,)),
        (b"", (0,)),
        (GET + b"x: " + b"y" * 60_000 + b"\r\nConnection: close\r\n\r\n", (200,)),
    ],
    ids=["many", "long", "unfinished", "url", "repeated", "broken", "slow", "silent", "allowed"],
)
async def test_a_request_head_is_limited_in_size_and_time(head: bytes, statuses: tuple[int, ...]) -> None:
    """Too much and too slow are told apart; what is within the limits is answered."""
    late = statuses in ((408,), (0,))
    async with serving(ConnectionLimits(100, head_timeout=0.2 if late else GUARD)) as server:
        assert await server.status(head) in statuses


class SteppedLoop(asyncio.SelectorEventLoop):
    """Its time can be stopped and moved on."""

    stopped_at: float | None = None
    _ahead = 0.0

    def time(self) -> float:
        return super().time() + self._ahead if self.stopped_at is None else self.stopped_at

    def let_time_go_on(self) -> None:
        assert self.stopped_at is not None
        self._ahead = self.stopped_at - super().time()
        self.stopped_at = None


@pytest.mark.parametrize(("head", "answer"), [(GET + b"x: y", 408), (b"", 0)], ids=["slow", "silent"])
def test_a_client_has_ten_seconds_for_a_head(head: bytes, answer: int) -> None:
    """With the limits that every server has: not a moment less, and no more."""

    async def check() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SteppedLoop)
        async with serving(raise_file_limit()) as server:
            began = loop.time()
            loop.stopped_at = began
            reader, writer = await server.connect()
            response = asyncio.create_task(reader.read())
            for seconds in (0.0, 9.0, 9.999, 10.0):
                loop.stopped_at = began + seconds
                for _ in range(3):  # after which the server has accepted, read and closed whatever it was to
                    assert await server.status(GET + b"Connection: close\r\n\r\n") == 200
                assert response.done() == (seconds == 10.0)
                if not seconds:
                    writer.write(head)
            loop.let_time_go_on()
            assert _status(response.result()) == answer

    with asyncio.Runner(loop_factory=SteppedLoop) as runner:
        runner.run(check())


_NAMES = st.sampled_from(
    [b"Cookie", b"Host", b"X-Forwarded-For", b"Content-Length", b"Transfer-Encoding", b"Expect", b"A"]
)
_VALUES = st.sampled_from(
    [b"", b"chunked", b"-1", b"9" * 30, b"100-continue", b"a=b; ", b"\xff\x00", b"\t", b"\r\n b", b'="']
)
_LINES = st.tuples(_NAMES, _VALUES, st.integers(0, 300), st.integers(1, 150))


@settings(deadline=None, max_examples=20)
@given(
    st.sampled_from([b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.0\r\n", b"PRI * HTTP/2.0\r\n", b"\r\n", b"\x16\x03"]),
    st.lists(_LINES, max_size=5),
    st.lists(st.integers(0, 200_000), max_size=3).map(sorted),
)
def test_any_head_is_answered_or_refused(
    first: bytes, lines: list[tuple[bytes, bytes, int, int]], at: list[int]
) -> None:
    """Whatever the head has, repeats and breaks off at, it ends its own connection at most: the next is answered."""
    fields = [(name + b": " + value * length + b"\r\n") * count for name, value, length, count in lines]
    head = first + b"".join(fields) + b"\r\n"
    too_large = first.startswith((b"GET", b"POST")) and (len(head) > 70_000 or sum(each[3] for each in lines) > 100)

    async def attack() -> None:
        async with serving(ConnectionLimits(100, head_timeout=0.2)) as server:
            reader, writer = await server.connect()
            for begin, end in itertools.pairwise([0, *at, len(head)]):
                writer.write(head[begin:end])
                await asyncio.sleep(0)
            try:
                status = _status(await reader.read(1000))
            except ConnectionError:
                status = 0
            assert status in ((0, 400, 431) if too_large else (0, 200, 400, 408, 431)), status
            assert await server.status(GET + b"Connection: close\r\n\r\n") == 200

    asyncio.run(attack())


CHUNKED = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.anyio
@pytest.mark.parametrize("data", [b"0\r\nA: " + b"b" * 200_000, b"5;" + b"e" * 200_000], ids=["trailer", "extension"])
async def test_what_surrounds_a_body_is_limited(data: bytes) -> None:
    """A head that is complete does not lift the limit for what may follow the body."""
    async with serving(ConnectionLimits(100)) as server:
        _, writer = await server.connect(CHUNKED.replace(b"/ ", b"/wait ", 1))
        writer.write(data)
        while not writer.is_closing():  # the transport notices when it is reset
            writer.write(b"b" * 1000)
            await asyncio.sleep(0)


@pytest.mark.anyio
async def test_a_trailer_is_not_a_header() -> None:
    async with serving(ConnectionLimits(100)) as server:
        reader, _ = await server.connect(CHUNKED.replace(b"/ ", b"/headers ", 1) + b"0\r\nX-Real-IP: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readuntil(b"]") == b"[host, transfer-encoding]"


@pytest.mark.anyio
async def test_pipelined_requests_are_not_queued() -> None:
    """A queue of them would cost a hundred times the memory that they have as bytes."""
    async with serving(ConnectionLimits(100)) as server:
        reader, _ = await server.connect((GET + b"\r\n") * 10_000)
        try:
            answers = await reader.read()
        except ConnectionError:
            answers = b""
        assert answers.count(b"HTTP/1.1 200") <= 1


@pytest.mark.anyio
@pytest.mark.parametrize("later", [False, True], ids=["with the head", "later"])
async def test_an_offer_of_another_protocol_is_ignored(later: bool) -> None:
    """The body of such a request is its body, and never another request; the connection stays open after it."""
    body = GET + b"\r\n"
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nx: %b\r\n" % (
        b"y" * 40_000
    )
    head = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nExpect: 100-continue\r\n" % len(body)
    async with serving(ConnectionLimits(100)) as server:
        reader, writer = await server.connect(head + offer + b"\r\n" + (b"" if later else body))
        if later:
            assert b" 100 " in await reader.readuntil(b"\r\n\r\n")
            writer.write(body)
        await reader.readuntil(b"[" + body + b"]")
        writer.write(GET + offer + b"\r\n")
        assert b" 200 " in await reader.readuntil(b"ok")
        writer.write(GET + b"Connection: close\r\n\r\n")
        assert (await reader.read()).count(b"HTTP/1.1 ") == 1
        assert await server.status(b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n") == 405


@pytest.mark.anyio
@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("length", [b"", b"Content-Length: 5\r\n"], ids=["no body", "body"])
@pytest.mark.parametrize("later", [False, True], ids=["with the head", "later"])
async def test_an_offer_on_a_last_request_is_ignored(version: bytes, length: bytes, later: bool) -> None:
    """A request after which the connection ends is answered too, and nothing after it is."""
    head = b"POST /echo HTTP/%b\r\nHost: localhost\r\nConnection: close, upgrade\r\nUpgrade: h2c\r\n" % version
    rest = (b"hello" if length else b"") + GET + b"\r\n"
    async with serving(ConnectionLimits(100)) as server:
        reader, writer = await server.connect(head + length + b"\r\n" + (b"" if later else rest))
        if later:
            writer.write(rest)
        answer = await reader.read()
        assert answer.count(b"HTTP/1.1 200") == answer.count(b"HTTP/1.1 ") == 1
        assert answer.endswith(b"[hello]") == bool(length)


@pytest.mark.anyio
async def test_bytes_between_two_requests_do_not_keep_a_connection_open() -> None:
    """The time limit of a head counts from its first byte, also after an earlier request."""
    limits = ConnectionLimits(100, head_timeout=GUARD)
    async with serving(limits) as server:
        reader, writer = await server.connect(GET + b"\r\n")
        assert b"200" in await reader.readuntil(b"ok")
        limits.head_timeout = 0.2
        writer.write(b"\r\n")
        assert _status(await reader.read()) in (0, 408)


@pytest.mark.anyio
async def test_idle_connections_make_room_and_running_requests_do_not() -> None:
    """At the limit the oldest idle connection is closed; without one, the new connection is."""
    async with serving(ConnectionLimits(3)) as server:
        busy = [await server.connect(b"GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n") for _ in range(2)]
        idle, _ = await server.connect(GET + b"\r\n")
        await idle.readuntil(b"ok")
        third, writer = await server.connect(b"GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert _status(await idle.read()) == 503
        assert await server.status(b"") == 503
        server.release.set()
        for reader, _ in [*busy, (third, writer)]:
            assert b"200" in await reader.readuntil(b"ok")


@pytest.mark.anyio
@LOOPS
async def test_requests_that_may_wait_for_long_make_room_for_others() -> None:
    """Logins that wait for their turn, which anybody can send, do not take all connections: one of them is closed."""
    async with serving(ConnectionLimits(2)) as server:
        waiting = []
        for _ in range(2):
            reader, _ = await server.connect(b"GET /droppable HTTP/1.1\r\nHost: localhost\r\n\r\n")
            waiting.append(asyncio.create_task(reader.read(1)))
            await server.droppable.wait()
            server.droppable.clear()
        assert await server.status(GET + b"Connection: close\r\n\r\n") == 200
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        server.release.set()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert len([each for each in outcomes if each == b"H"]) == 1


@pytest.mark.anyio
async def test_a_download_ends_when_its_client_is_gone() -> None:
    """Otherwise every export that is cancelled is still read to its end."""
    async with serving(ConnectionLimits(3)) as server:
        reader, writer = await server.connect(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"chunk")
        writer.transport.abort()
        await server.closed.wait()


@pytest.mark.anyio
async def test_a_client_that_does_not_read_is_disconnected() -> None:
    """Whatever the response is; the page's own files need no login. Otherwise such connections are in use for ever."""
    async with serving(ConnectionLimits(100, write_deadline=0.2)) as server:
        await server.connect(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await server.closed.wait()


@pytest.mark.anyio
@LOOPS
@pytest.mark.parametrize("connection", [b"keep-alive", b"close"])
async def test_a_client_that_reads_slowly_gets_its_response(connection: bytes) -> None:
    """The time limit is for taking a part of it: this one takes more than twice as long as that for all of it, and as
    the keep-alive timeout, which begins when it has everything. At the limit of connections, others are refused."""
    async with serving(ConnectionLimits(1, write_deadline=0.3), keep_alive=0.2) as server:
        reader, _ = await server.connect(GET.replace(b"/ ", b"/large ", 1) + b"Connection: %b\r\n\r\n" % connection)
        await reader.readuntil(b"\r\n\r\n")
        began = time.monotonic()
        for _ in range(len(LARGE) // 1_000_000):
            await reader.readexactly(1_000_000)
            await asyncio.sleep(0.025)
        assert await reader.read() == b""
        assert time.monotonic() - began > 0.6


def test_a_client_that_takes_little_makes_progress() -> None:
    """What it has taken counts long before the kernel lets the server write more."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
        client.connect(listener.getsockname())
        server, _ = listener.accept()
        with server:
            server.setblocking(False)
            with suppress(BlockingIOError):
                while True:
                    server.send(LARGE)
            full = queued_bytes(server)
            while queued_bytes(server) == full:
                assert client.recv(4096)
            assert select.select([], [server], [], 0)[1] == []
    assert queued_bytes(server) == 0


@pytest.mark.anyio
@LOOPS
async def test_a_response_that_is_being_read_is_not_cut_off_for_others() -> None:
    """At the limit of connections the new one is refused, until the client has everything or stops reading."""
    limits = ConnectionLimits(1, write_deadline=GUARD)
    async with serving(limits) as server:
        reader, _ = await server.connect(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        assert await server.status(b"") == 503
        assert await reader.readexactly(len(LARGE)) == LARGE
        assert await server.status(GET + b"Connection: close\r\n\r\n") == 200


@pytest.mark.anyio
@LOOPS
@pytest.mark.parametrize("connection", [b"keep-alive", b"close"])
async def test_an_unread_response_is_dropped(connection: bytes) -> None:
    """Its connection is free again after the deadline, although its request has long been answered."""
    async with serving(ConnectionLimits(1, write_deadline=0.2)) as server:
        reader, _ = await server.connect(GET.replace(b"/ ", b"/large ", 1) + b"Connection: %b\r\n\r\n" % connection)
        await reader.readuntil(b"xxx")
        while (status := await server.status(GET + b"Connection: close\r\n\r\n")) != 200:
            assert status in (0, 503)


@dataclass(eq=False)
class Connection:
    client_address: str | None
    refused: bool = False
    dropped: bool = False

    def refuse(self) -> None:
        self.refused = True

    def drop(self) -> None:
        self.dropped = True


def test_one_address_gets_an_eighth_of_the_connections_and_loopback_all() -> None:
    """One remote client cannot take all connections; a reverse proxy on this machine may."""
    limits = ConnectionLimits(16)
    connections = [Connection(address) for address in ["10.0.0.1"] * 3 + ["10.0.0.2"] * 2 + ["127.0.0.1"] * 11]
    for connection in connections:
        limits.opened(connection)
    assert [connection.refused for connection in connections] == [False, False, True] + [False] * 13
    for connection in connections:
        limits.closed(connection)
    last = Connection("10.0.0.1")
    limits.opened(last)
    assert not last.refused


def waiting(limits: ConnectionLimits, address: str) -> Connection:
    """A connection of somebody whose password is to be checked."""
    connection = Connection(address)
    limits.opened(connection)
    limits.busy(connection)
    limits.may_drop(connection)
    return connection


def test_who_waits_for_a_check_makes_room_for_others() -> None:
    """Somebody who guesses from many addresses fills the server: each new connection takes the place of one of theirs,
    hardly ever that of an owner who waits as well, and never that of a request that is being answered."""
    limits = ConnectionLimits(400)
    answered = Connection("192.0.2.1")
    limits.opened(answered)
    limits.busy(answered)
    owner = waiting(limits, "192.0.2.2")
    crowd = [waiting(limits, f"198.51.100.{n % 9}") for n in range(398)]
    for n in range(100):
        new = Connection(f"203.0.113.{n}")
        limits.opened(new)
        (dropped,) = [each for each in crowd if each.dropped]
        limits.closed(dropped)
        crowd.remove(dropped)
        limits.busy(new)
        assert not new.refused
    assert not owner.dropped
    assert not answered.dropped
    for connection in (owner, *crowd):
        limits.must_keep(connection)
    last = Connection("203.0.113.200")
    limits.opened(last)
    assert last.refused


def test_guessers_of_an_address_make_room_for_it() -> None:
    """Of whoever has all connections that one address may have, an attempt is dropped for another of that address; idle
    connections are closed before."""
    limits = ConnectionLimits(80)
    crowd = [waiting(limits, "198.51.100.1") for _ in range(10)]
    new = Connection("198.51.100.1")
    limits.opened(new)
    assert (new.refused, sum(each.dropped for each in crowd)) == (False, 1)
    limits = ConnectionLimits(2)
    idle, attempt, new = Connection("127.0.0.1"), waiting(limits, "127.0.0.1"), Connection("127.0.0.1")
    limits.opened(idle)
    limits.opened(new)
    assert (idle.refused, attempt.dropped, new.refused) == (True, False, False)


def test_the_limit_of_open_files_is_raised() -> None:
    """The server may open as many files as the system lets it, up to a limit."""
    raise_file_limit()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft == min(hard, max(65_536, soft))


@pytest.mark.parametrize("lost", ["the password", "the file"])
def test_a_public_server_that_loses_its_password_serves_nobody(start: Start, tmp_path: Path, lost: str) -> None:
    """Whoever removes the password, or the file with it, does not open the server to everyone."""
    keys = KeyFile(tmp_path / "data")
    set_password(keys, "a good password")
    served = start(host="0.0.0.0")
    assert served.http.get("/healthz").status_code == 200
    if lost == "the password":
        set_password(keys, None)
    else:
        (tmp_path / "data" / "keys.json").unlink()
    for path in ("/api/sessions", "/healthz", "/", "/login", "/v1/models"):
        assert served.http.get(path, headers={"Host": "localhost"}).status_code == 503
    set_password(keys, "another password")
    assert served.http.get("/api/sessions").status_code == 401


def test_without_a_password_the_peer_must_be_this_machine() -> None:
    """A connection from another machine is refused; one without an address is local."""
    for peer, status in (("10.0.0.5", 403), ("127.0.0.1", None), ("::1", None), (None, None)):
        facts = RequestFacts("GET", "/api/sessions", {"host": "localhost"}, peer=peer)
        denied = decide_access(facts, password_set=False, password_needed=False, credentials=Credentials())
        assert (denied and denied.status) == status


# ---- bodies ----


@pytest.mark.parametrize(
    ("path", "pause", "size", "given_up_after"),
    [
        ("/api/login", 9.0, 1, 10.0),
        ("/api/login", 100.0, 1, 10.0),
        ("/api/sessions", 100.0, 1, 30.0),
        ("/api/files", 100.0, 1, 30.0),
        ("/api/sessions", 9.0, 1, 30.0),
        ("/api/sessions", 29.0, 100_000, 30.0),
        ("/api/files", 9.0, 50_000, 30.0),
        ("/api/files", 9.0, 100_000, None),
        ("/api/files", 29.0, 1_000_000, None),
        ("/api/sessions", 0.5, 1, None),
    ],
)
def test_a_body_must_arrive_in_time(path: str, pause: float, size: int, given_up_after: float | None) -> None:
    """At login as a whole, where anybody may send one; elsewhere at a slow pace, which a trickle does not keep."""

    async def receive() -> Message:
        await anyio.sleep(pause)
        return {"type": "http.request", "body": b"x" * size, "more_body": True}

    async def read() -> float | None:
        limited, began = limit_body(receive, path, 10**9), anyio.current_time()
        try:
            for _ in range(50):
                await limited()
        except HTTPException as error:
            return anyio.current_time() - began if error.status_code == 408 else None
        return None

    assert trio.run(read, clock=MockClock(autojump_threshold=0)) == pytest.approx(given_up_after)


def test_the_time_of_the_server_is_not_the_clients() -> None:
    """An import may take longer to store than to send: a client that waits for the server is not given up."""

    async def receive() -> Message:
        await anyio.sleep(0.5)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def store() -> None:
        limited = limit_body(receive, "/api/import", 1000)
        for _ in range(50):
            await limited()
            await anyio.sleep(60.0)

    trio.run(store, clock=MockClock(autojump_threshold=0))


def test_a_login_is_small(shared: Served) -> None:
    """A large body would be parsed for anybody; a length of thousands of digits is no number."""
    assert shared.http.post("/api/login", json={"password": "x" * 9000}).status_code == 413
    assert shared.http.post("/api/login", content=iter([b"x" * 9000]), headers=JSON).status_code == 413
    with socket.create_connection(shared.address, GUARD) as line:
        line.sendall(b"POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + b"0" * 5000 + b"2\r\n\r\n{}")
        assert line.recv(4096).split(b" ")[1] in (b"400", b"413", b"415")


def test_a_hostile_cookie_costs_no_time(shared: Served) -> None:
    """The standard library's parser takes minutes for this header, before any access control."""
    assert shared.http.get("/healthz", headers={"Cookie": "=" * 60_000 + '"'}).status_code == 200


def test_ipv6_addresses_of_one_network_count_as_one() -> None:
    """A client has all addresses of its network."""
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1%eth0") != network_of("2001:db8:0:1::1")
    assert network_of("::ffff:10.0.0.1") != network_of("::ffff:10.0.0.2")
    assert (network_of("10.0.0.1"), network_of("::1")) == ("10.0.0.1", "::1")
