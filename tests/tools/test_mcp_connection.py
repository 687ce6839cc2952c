"""How long connecting to an MCP server may take, and how much it may answer."""

import asyncio
import gzip
import importlib
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import ModuleType

import httpx2
import pytest

from holdfast.tools.mcp import connection
from holdfast.tools.mcp.http_client import PING, guarded_client
from holdfast.tools.mcp.tool_mapping import HttpServer
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
