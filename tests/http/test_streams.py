"""Event streams on the wire: proxies, browsers and misbehaving clients."""

import json
import os
import select
import socket
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from holdfast.agents.scripted_agent import Hang, Say
from holdfast.core.errors import StorageUnavailableError
from holdfast.core.ids import LOCAL
from holdfast.ports.store import RunQuery
from holdfast.server import uvicorn_server
from holdfast.server.access_rules import Credentials
from holdfast.server.app import build
from holdfast.server.authenticator import Authenticator
from holdfast.server.context import ApiContext
from holdfast.server.event_stream import EventSource, EventStream, StreamLimits
from holdfast.storage.file_store import FileStore
from holdfast.storage.key_file import KeyFile
from tests.harness import running
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import GUARD, until


def test_a_stream_tells_everybody_not_to_hold_it_back(server: Served) -> None:
    """Type, caching, buffering and compression let each event arrive when it is sent."""
    rid = server.send(server.session(), [{"say": "x"}])["run"]["id"]
    with server.watch(rid) as stream:
        headers = stream.response.headers
        assert headers["content-type"].startswith("text/event-stream")
        assert "no-store" in headers["cache-control"]
        assert headers["x-accel-buffering"] == "no"
        assert "content-encoding" not in headers
        stream.rest()
        assert stream.comments == ["retry: 1000"]
        assert [frame.seq for frame in stream.frames] == [1, 2, 3]


def test_a_silent_line_is_kept_alive(start: Start) -> None:
    """A silent stream sends comments."""
    server = start(heartbeat=0.2)
    rid = server.send(server.session(), [{"say": "x"}, {"hang": True}])["run"]["id"]
    with server.watch(rid) as stream:
        stream.until("text.delta")
        assert [stream.comment(), stream.comment()] == [": heartbeat"] * 2


def test_a_client_that_stops_reading_is_dropped_and_loses_nothing(start: Start) -> None:
    """L6: after the deadline its connection and its buffers are dropped; it reconnects and gets everything."""
    server = start(write_deadline=0.3)
    sid = server.session()
    script = [{"meet": "go"}, {"say": "x" * 50_000, "times": 200}, {"meet": "end"}]
    rid = server.send(sid, script)["run"]["id"]
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.settimeout(GUARD)
        line.connect(server.address)
        line.sendall(f"GET /api/runs/{rid}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert line.recv(100)
        server.order(open="go")
        until(lambda: server.metric("holdfast_subscribers"), lambda count: count == 0)
        with pytest.raises(ConnectionResetError):  # not a friendly end, which a client could take for the whole
            drain(line)
    server.order(open="end")
    frames = server.all_events(rid)
    assert [frame.seq for frame in frames] == list(range(1, len(frames) + 1))
    said = "".join(frame.data["text"] for frame in frames if frame.event == "text.delta")
    assert (len(said), set(said)) == (50_000 * 200, {"x"})


@pytest.mark.parametrize("path", ["/api/files/{fid}/content", "/api/export"])
def test_a_download_that_nobody_reads_is_dropped(start: Start, path: str) -> None:
    """L6: the connection and what is buffered for it, of a file and of an export; a client that reads gets it all."""
    server = start(write_deadline=0.5)
    content = b"x" * 20_000_000
    fid = server.http.post("/api/files", files={"file": ("a.txt", content, "text/plain")}).json()["id"]
    part = {"type": "file", "file_id": fid}
    rid = server.post(f"/api/sessions/{server.session()}/runs", {"input": [part]}, 202)["run"]["id"]
    server.events(rid)
    path = path.format(fid=fid)
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.settimeout(GUARD)
        line.connect(server.address)
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert line.recv(100)
        waiting = select.poll()
        waiting.register(line, 0)  # for its end alone
        assert waiting.poll(GUARD * 1000)
    assert len(server.http.get(path).content) >= len(content)


class OnePage(EventSource):
    """A source with all its frames in one page."""

    def __init__(self, frames: list[bytes]) -> None:
        self._pages = [frames]

    async def next(self) -> list[bytes] | None:
        return self._pages.pop() if self._pages else None


@pytest.mark.anyio
async def test_a_page_is_sent_in_pieces_so_that_a_slow_client_makes_progress() -> None:
    """L6: the deadline counts from the last piece that a client has taken, not from the beginning of a long page."""
    frames = [b"%05d" % n + b"x" * 50_000 for n in range(100)]
    sent: list[bytes] = []

    async def receive() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message.get("body", b""))

    stream = EventStream(OnePage(frames), StreamLimits(), first_frame=b"")
    await stream.run({"type": "http"}, receive, send, send, Credentials(), lambda _: True)
    assert b"".join(sent) == b"".join(frames)
    assert max(map(len, sent)) <= 256 * 1024


class Silent(EventSource):
    """A source without frames."""

    async def next(self) -> list[bytes] | None:
        await anyio.sleep_forever()
        raise AssertionError


@pytest.mark.anyio
async def test_a_login_that_cannot_be_checked_ends_the_stream(caplog: pytest.LogCaptureFixture) -> None:
    """The client is dropped and the reason logged; otherwise nothing would check the connection again."""
    dropped: list[bool] = []
    extensions: dict[str, Any] = {
        "holdfast.abort": lambda: dropped.append(True),
        "holdfast.on_disconnect": lambda _: None,
        "holdfast.write": lambda _: True,
    }

    async def receive() -> Message:
        raise AssertionError

    async def send(_: Message) -> None:
        return

    def fail(_: Credentials) -> bool:
        raise StorageUnavailableError("no storage")

    with anyio.fail_after(GUARD):
        stream = EventStream(Silent(), StreamLimits(heartbeat=0.03))
        await stream.run({"type": "http", "extensions": extensions}, receive, send, send, Credentials(), fail)
    assert dropped == [True]
    assert "no storage" in caplog.text


@pytest.mark.parametrize("instead", [True, False])
@pytest.mark.parametrize("read", [True, False])
@pytest.mark.anyio
async def test_a_client_that_leaves_after_a_large_body_is_noticed(*, read: bool, instead: bool) -> None:
    """L3: while a stream or another response is due, also when nobody reads the body: the server library stops reading
    at 64 KB."""
    begun, waiting, ended = anyio.Event(), anyio.Event(), anyio.Event()
    body = b"x" * 70_000

    async def respond_instead() -> Response | None:
        waiting.set()
        if instead:
            await anyio.sleep_forever()
        return None

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        while read and (await receive())["more_body"]:
            pass
        limits = StreamLimits(heartbeat=3600.0)
        stream = EventStream(Silent(), limits, response_instead=respond_instead)
        await stream.run(scope, receive, send, send, Credentials(), lambda _: True)
        ended.set()

    listener = uvicorn_server.bind("127.0.0.1", 0)
    listening = anyio.Event()
    server = uvicorn_server.create_server(app, graceful=0, started=listening.set)
    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            await listening.wait()
            async with await anyio.connect_tcp(*listener.getsockname()) as line:
                await line.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body))
                await begun.wait()  # so that the body arrives in one piece
                await line.send(body)
                await waiting.wait()
            await ended.wait()
            server.should_exit = True


def drain(line: socket.socket) -> None:
    while line.recv(1 << 20):
        pass


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "9" * 40, "²", "1 2"])
def test_a_cursor_that_is_none_is_told(shared: Served, cursor: str) -> None:
    """L5: a wrong cursor is a 422 that names it, not a stream from somewhere."""
    rid = shared.send(shared.session(), "hi")["run"]["id"]
    answer = shared.http.get(f"/api/runs/{rid}/events", headers=[(b"Last-Event-ID", cursor.encode())])
    assert (answer.status_code, answer.json()["field"]) == (422, "Last-Event-ID")


@pytest.mark.parametrize("spec", ["2.0", "2.3", "2.4", "9.9"])
@pytest.mark.anyio
async def test_a_disconnect_is_noticed_in_mid_await_whatever_the_server_speaks(tmp_path: Path, spec: str) -> None:
    """L3, C7: frameworks listen for disconnects depending on the ASGI version; we always do."""
    async with running([Say("x"), Hang()], files=FileStore(tmp_path / "files")) as it:
        gate = Authenticator(KeyFile(tmp_path), it.world.clock)
        app = build(ApiContext(it.engine, gate, [("chat", True, True)]))
        session = await it.new_session()
        told = anyio.Event()
        leaves = anyio.Event()
        sent: list[Message] = []
        asked = iter([{"type": "http.request", "body": json.dumps({"input": "hi", "lifetime": "attached"}).encode()}])

        async def receive() -> Message:
            for message in asked:
                return message
            await leaves.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)
            if b"text.delta" in message.get("body", b""):
                told.set()

        async def own_user() -> int:
            return os.geteuid()

        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": spec},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": f"/api/sessions/{session}/runs",
            "raw_path": b"",
            "query_string": b"",
            "root_path": "",
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"9")],
            "client": None,
            "server": ("127.0.0.1", 8484),
            "extensions": {"holdfast.peer_user": own_user},
        }

        async def call() -> None:
            await app(scope, receive, send)

        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as tg:
                tg.start_soon(call)
                await told.wait()
                assert it.agent.upstreams == 1
                leaves.set()
        assert it.agent.upstreams == 0
        (run,) = await it.engine.runs.list(RunQuery(LOCAL, session))
        assert (run.status, run.reason) == ("cancelled", "disconnected")
