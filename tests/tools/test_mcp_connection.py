"""How long connecting to an MCP server may take, and how much it may answer."""

import asyncio
import gzip
import importlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread, current_thread, main_thread
from types import ModuleType

import httpx2
import pytest

from holdfast.core import lenient_json
from holdfast.core.parts import Json
from holdfast.tools.mcp import connection
from holdfast.tools.mcp.http_client import PING, guarded_client
from holdfast.tools.mcp.server_config import HttpServer, StdioServer
from tests.tools.test_mcp import GOOD, connected, raw

pytestmark = pytest.mark.anyio


async def test_the_import_of_the_sdk_does_not_count_against_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """E1: on a machine that takes an hour to import the SDK, a server that starts at once is connected."""
    loop = asyncio.get_running_loop()
    hours, time = [0], loop.time

    def slow_import(name: str) -> ModuleType:
        hours[0] += 1
        return importlib.import_module(name)

    monkeypatch.setattr(connection, "import_module", slow_import)
    monkeypatch.setattr(loop, "time", lambda: time() + 3600 * hours[0])
    async with connected(raw(results={"tools/list": {"tools": [GOOD]}})) as servers:
        assert [tool.spec.name for tool in await servers.tools()] == ["raw__good"]


HALF = r'{"jsonrpc": "2.0", "method": "notifications/x", "params": {"text": "half: \ud800 %s"}}' % ("x" * 100_000)
BROKEN = '{"jsonrpc": "2.0", ' + "x" * 100_000
"""What the SDK cannot parse; the first one can be parsed leniently."""
STARTED = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
PROGRAM = f"""
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        print({HALF!r})
        print({BROKEN!r})
    if "id" in asked:
        print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "result": {STARTED!r} | {{"tools": []}}}}), flush=True)
"""


@contextmanager
def server_with_events() -> Iterator[str]:
    """One with the transport from before 2025, whose messages are events of one stream; yields its address."""
    streams: list[Queue[str | None]] = []

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            stream: Queue[str | None] = Queue()
            streams.append(stream)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(b"event: endpoint\ndata: /messages\n\n")
                while (text := stream.get()) is not None:
                    self.wfile.write(f"event: message\ndata: {text}\n\n".encode())

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/messages" and asked["method"] == "initialize":
                streams[-1].put(HALF)
                streams[-1].put(BROKEN)
            if self.path == "/messages" and "id" in asked:
                streams[-1].put(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {**STARTED, "tools": []}}))
            self.send_response(202 if self.path == "/messages" else 405)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as standing:
        Thread(target=standing.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{standing.server_port}/events"
        for stream in streams:
            stream.put(None)
        standing.shutdown()


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_message_that_cannot_be_parsed_is_repaired_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, transport: str
) -> None:
    """L6: parsing it leniently takes long, so that is done in a thread, whatever transport it came by."""
    on_event_loop: list[bool] = []

    def loads(data: bytes) -> Json:
        on_event_loop.append(current_thread() is main_thread())
        return parse_leniently(data)

    parse_leniently = lenient_json.loads
    monkeypatch.setattr(lenient_json, "loads", loads)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with server_with_events() as url:
        server = HttpServer("s", url) if transport == "http" else StdioServer("s", sys.executable, (str(program),))
        async with connected(server) as servers:
            assert not await servers.tools()
            assert servers.states()["s"].connected
    assert on_event_loop == [False, False]


@pytest.mark.parametrize("packed", [True, False], ids=["compressed", "large"])
async def test_an_answer_over_http_has_a_limit(packed: bool) -> None:
    """A remote server cannot use up the memory: neither by a compressed answer nor by a large one."""
    body = b" " * 40_000_000

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            data = gzip.compress(body) if packed else body
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            if packed:
                self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as standing:
        Thread(target=standing.serve_forever, daemon=True).start()
        server = HttpServer("bomb", f"http://127.0.0.1:{standing.server_port}/mcp")
        with pytest.raises(httpx2.DecodingError, match="compressed" if packed else "too large"):
            async with guarded_client(server.url) as client:
                await client.post(server.url, json=PING)
        async with connected(server) as servers:
            assert not await servers.tools()
        standing.shutdown()
