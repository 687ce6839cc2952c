"""The memory cost of idle streams."""

import resource
import socket
from contextlib import ExitStack

import pytest

from tests.http.client import Served
from tests.http.streams import GUARD

BOUND = 20_000
"""Bytes that an idle stream may cost the server."""


def open_stream(server: Served, path: str) -> socket.socket:
    """A client that has read the response head and the first bytes of the stream, and then waits."""
    line = socket.create_connection(server.address, GUARD)
    line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".encode())
    got = b""
    while b"retry: " not in got:
        chunk = line.recv(65536)
        assert chunk, got
        got += chunk
        assert b"heartbeat" not in got, "the opening of the stream did not come first"
    assert got.startswith(b"HTTP/1.1 200")
    return line


@pytest.mark.parametrize("count", [500, pytest.param(2_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("what", ["run", "changes"])
def test_idle_streams_cost_little_and_hold_up_nobody(fresh: Served, what: str, count: int) -> None:
    """L6: an idle stream is a cursor: it costs less than 20 kB, and other calls are answered as ever."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count + 500:
        pytest.skip(f"this machine allows a process {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count + 500), hard))
    server = fresh
    sid = server.session()
    rid = server.stand(sid, [{"say": "hello"}, {"meet": "here"}, {"say": "bye"}])
    path = f"/api/runs/{rid}/events?after=2" if what == "run" else "/api/events"
    with ExitStack() as lines:
        for _ in range(100):  # what is made once, and what the allocator keeps, is not a stream's
            lines.enter_context(open_stream(server, path))
        before = server.resident
        streams = [lines.enter_context(open_stream(server, path)) for _ in range(count)]
        cost = (server.resident - before) / count
        print(f"{cost:.0f} bytes a stream")
        assert cost < BOUND
        assert server.get("/healthz") == {"status": "ok"}
        assert server.run(rid)["status"] == "running"
        server.order(open="here")
        for line in streams if what == "run" else ():
            got = b""
            while b"run.complete" not in got:
                chunk = line.recv(65536)
                assert chunk
                got += chunk
