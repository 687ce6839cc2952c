"""MCP servers as real processes, on stdio and over HTTP: calls, results, and what happens when one dies."""

import base64
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from aiohttp import web

from holdfast import __version__
from holdfast.core.parts import Json
from holdfast.ports.model import Media
from holdfast.ports.tool import Tool, ToolError, ToolTraits
from holdfast.tools.mcp import connection, tool_listing, tool_mapping
from holdfast.tools.mcp.client import McpLimits
from holdfast.tools.mcp.server_config import HttpServer, McpServer, StdioServer
from holdfast.tools.mcp.servers import McpServers
from tests.harness import GUARD
from tests.tools.conftest import Bench
from tests.tools.raw_mcp_server import INITIALIZED
from tests.tools.test_fetch import site

pytestmark = pytest.mark.anyio

PROGRAM = str(Path(__file__).with_name("mcp_server.py"))
PATIENT = McpLimits(connect=60.0)
PNG = b"\x89PNG\r\n\x1a\n"


@asynccontextmanager
async def connected(*servers: McpServer, limits: McpLimits = PATIENT) -> AsyncIterator[McpServers]:
    """Servers whose connections end with the block."""
    found = McpServers(servers, limits)
    async with anyio.create_task_group() as tg:
        await tg.start(found.run)
        yield found
        tg.cancel_scope.cancel()


def on_stdio(effects: Path, name: str = "t", **options: object) -> StdioServer:
    return StdioServer(name, sys.executable, (PROGRAM, str(effects)), **options)  # type: ignore[arg-type]


@contextmanager
def listening() -> Iterator[socket.socket]:
    """A socket that outlives the servers that answer on it: whoever connects meanwhile waits."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener


@contextmanager
def on_http(effects: Path, listener: socket.socket, *mode: str) -> Iterator[subprocess.Popen[bytes]]:
    fd = listener.fileno()
    process = subprocess.Popen([sys.executable, PROGRAM, str(effects), str(fd), *mode], pass_fds=[fd])
    try:
        yield process
    finally:
        process.kill()
        process.wait(GUARD)


def address(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"


@pytest.fixture
def effects(tmp_path: Path) -> Path:
    return tmp_path / "effects"


def lines(effects: Path) -> list[str]:
    return effects.read_text().split() if effects.exists() else []


async def tools_of(servers: McpServers) -> dict[str, Tool]:
    with anyio.fail_after(90):
        return {tool.spec.name: tool for tool in await servers.tools()}


async def check_all_tools(bench: Bench, tools: dict[str, Tool], effects: Path) -> None:
    said = "t: Add before you note."
    assert tools["t__add"].traits == ToolTraits(repeatable=True, read_only=True, rule="allow", instructions=said)
    assert tools["t__note"].traits == ToolTraits(rule="ask", instructions=said)
    assert tools["t__die_once"].traits == ToolTraits(repeatable=True, rule="ask", instructions=said)
    assert tools["t__add"].spec.description == "Add two numbers."
    assert (await bench.run(tools["t__add"], a=1, b=2)).content == "3"
    assert (await bench.run(tools["t__note"], text="hello")).content == "noted hello"
    assert lines(effects) == ["hello"]
    failed = await bench.run(tools["t__fail"])
    assert failed.is_error
    shown = await bench.run(tools["t__show"])
    words, image, link = shown.content.splitlines()
    assert (words, link) == ("words", "[resource: file:///notes.txt notes]")
    found = re.fullmatch(r"\[image: image/png, 8 bytes, saved as (tool-output/\w+\.png) in the workspace\]", image)
    assert found is not None
    assert await anyio.Path(bench.workspace / found[1]).read_bytes() == PNG
    assert shown.images == (Media(found[1].removeprefix("tool-output/"), "image/png", PNG),)
    assert (await bench.run(tools["t__list_resources"])).content.startswith("notes://today · today · Of today")
    assert "notes://{day}" in (await bench.run(tools["t__list_resources"])).content
    assert (await bench.run(tools["t__read_resource"], uri="notes://today")).content == "low water at noon"
    assert (await bench.run(tools["t__read_resource"], uri="notes://friday")).content == "nothing on friday"
    assert (await bench.run(tools["t__read_resource"], uri="gone://x")).is_error
    assert (await bench.run(tools["t__shape"])).content == {"n": 1}


async def test_tools_of_a_program_are_listed_and_called(
    bench: Bench, effects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X5 E1: names carry their server's, hints become traits, and results of all kinds are told in words. A program
    gets what it was given and not the server's environment; odd names become plain ones. A server that cannot be
    reached costs only its own tools, and is not tried again before its pause is over."""
    monkeypatch.setenv("SECRET", "s3cret")
    missing = StdioServer("gone", "/nonexistent/program")
    limits = McpLimits(connect=60.0, first_pause=3600.0, longest_pause=3600.0)
    async with connected(missing, on_stdio(effects, env={"GIVEN": "yes"}), limits=limits) as servers:
        tools = await tools_of(servers)
        await check_all_tools(bench, tools, effects)
        bench.printed.clear()
        result = await bench.run(tools["t__odd_name_with__nusual_letters"])
        assert result.content.split()[1:] == ["none", "yes"]
        assert bench.printed == ["half way\n", "2/2\n"]
        assert not any(name.startswith("gone__") for name in tools)
        with pytest.raises(ToolError, match=r"gone \(command not found: .*\)\. Try again in 3\d\d\d s"):
            await servers._clients["gone"].list_tools()


async def test_tools_are_checked_in_a_thread(monkeypatch: pytest.MonkeyPatch, effects: Path) -> None:
    """L6: a list of tools may have megabytes of schemas."""
    threads = []

    def check(server: str, tools: Sequence[Json]) -> list[Json]:
        threads.append(threading.current_thread())
        return tool_listing.keep_valid_tools(server, tools)

    monkeypatch.setattr(connection, "keep_valid_tools", check)
    async with connected(on_stdio(effects)) as servers:
        assert await tools_of(servers)
    assert threads
    assert threading.main_thread() not in threads


async def test_a_pause_of_less_than_a_second_is_named_as_one() -> None:
    """E1: nobody can try again in no time."""
    missing = StdioServer("gone", "/nonexistent/program")
    async with connected(missing, limits=McpLimits(connect=60.0, first_pause=0.4)) as servers:
        for words in ("command not found", r"Try again in 1 s\."):
            with pytest.raises(ToolError, match=words):
                await servers._clients["gone"].list_tools()


async def test_the_reason_of_a_failure_is_told_in_words() -> None:
    """E1: of a program its last words, of an address the system's; an explicit attempt waits for no pause."""
    dying = StdioServer("dying", sys.executable, ("-c", "import nonexistent_module_of_ours"))
    away = HttpServer("away", "http://127.0.0.1:1/mcp")
    limits = McpLimits(connect=60.0, first_pause=3600.0, longest_pause=3600.0)
    reasons = {
        "dying": "Could not connect to dying: the command exited: ModuleNotFoundError: No module named",
        "away": "Could not connect to away (127.0.0.1:1): connection refused",
    }
    async with connected(dying, away, limits=limits) as servers:
        for _ in range(2):
            for name, reason in reasons.items():
                with pytest.raises(ToolError) as failed:
                    await servers.list_tools(name)
                assert str(failed.value).startswith(reason)


async def test_a_failing_server_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """It is tried again with every turn, and says nothing new."""
    async with connected(StdioServer("gone", "/nonexistent/program"), limits=McpLimits(first_pause=0.0)) as servers:
        client = servers._clients["gone"]
        for _ in range(3):
            with pytest.raises(ToolError) as failed:
                await servers.list_tools("gone")
            client.log_failure(failed.value)
    assert [record.levelname for record in caplog.records if "command not found" in record.message] == ["WARNING"]


async def test_a_server_that_dies_is_replaced_and_no_effect_is_repeated(bench: Bench, effects: Path) -> None:
    """X5: lost during a call, a repeatable tool is called again, once, and for another the model is told that the
    outcome is not known; a server that died between two calls is noticed before the next."""
    async with connected(on_stdio(effects)) as servers:
        tools = await tools_of(servers)
        assert (await bench.run(tools["t__die_once"], text="x")).content == "survived"
        assert lines(effects) == ["x", "x"]
        result = await bench.run(tools["t__die"], text="once")
        assert result.is_error
        assert "unknown whether the call took effect" in result.content
        assert lines(effects) == ["x", "x", "once"]
        pid = int((await bench.run(tools["t__odd_name_with__nusual_letters"])).content.split()[0])
        handle = os.pidfd_open(pid)
        try:
            os.kill(pid, 9)
            await anyio.wait_readable(handle)
            with anyio.fail_after(GUARD):
                while servers.states()["t"].connected:
                    await anyio.lowlevel.checkpoint()
            assert (await bench.run(tools["t__note"], text="after")).content == "noted after"
        finally:
            os.close(handle)
        assert lines(effects) == ["x", "x", "once", "after"]


async def test_tools_over_http_outlive_their_server(bench: Bench, effects: Path) -> None:
    """X5: over HTTP they are the same, and after the server process was replaced calls work again without anybody
    doing anything."""
    with listening() as listener:
        server = HttpServer("t", address(listener), trusted=True, headers={"X-Given": "yes"})
        async with connected(server) as servers:
            with on_http(effects, listener):
                tools = await tools_of(servers)
                await check_all_tools(bench, tools, effects)
            with on_http(effects, listener):
                assert (await bench.run(tools["t__add"], a=2, b=2)).content == "4"


async def test_a_server_with_the_older_transport_is_recognized(bench: Bench, effects: Path) -> None:
    """X5: servers from before 2025, which send events on a stream of their own, have the same tools."""
    with listening() as listener, on_http(effects, listener, "sse"):
        url = address(listener).removesuffix("/mcp") + "/sse"
        async with connected(HttpServer("t", url, trusted=True)) as servers:
            await check_all_tools(bench, await tools_of(servers), effects)


async def test_a_program_that_says_nothing_is_given_up(effects: Path) -> None:
    """E1: a server that starts and never answers does not hold a turn up for longer than its limit."""
    silent = StdioServer("silent", sys.executable, ("-c", "import sys; sys.stdin.read()"))
    async with connected(silent, limits=McpLimits(connect=0.5)) as servers:
        with anyio.fail_after(GUARD):
            assert await servers.tools() == ()


RAW = str(Path(__file__).with_name("raw_mcp_server.py"))
GOOD = {"name": "good", "inputSchema": {"type": "object"}}


def raw(name: str = "raw", **script: Any) -> StdioServer:
    return StdioServer(name, sys.executable, (RAW, json.dumps(script)))


async def test_a_server_that_never_lists_its_tools_delays_one_turn(effects: Path) -> None:
    """E1: the first turn waits for its limit; later ones go on at once, and the server is tried again meanwhile."""
    silent = raw(results={"tools/list": None}, log=str(effects))
    limits = McpLimits(connect=4.0, first_pause=0.01, longest_pause=0.01)
    async with connected(silent, raw("ready", results={"tools/list": {"tools": [GOOD]}}), limits=limits) as servers:
        assert set(await tools_of(servers)) == {"ready__good"}
        assert servers.states()["raw"].failure == "it did not answer in time"
        began = anyio.current_time()
        for _ in range(20):
            assert set(await tools_of(servers)) == {"ready__good"}
        assert anyio.current_time() - began < 5 * limits.connect, "each turn waited for the silent server"
        with anyio.fail_after(GUARD):
            while (await anyio.Path(effects).read_text()).count("tools/list") < 2:
                await tools_of(servers)


async def test_a_large_image_comes_as_an_event(bench: Bench) -> None:
    """X5: most servers answer calls with an event stream; a screenshot is one event of megabytes."""
    image = PNG + bytes(2_000_000)

    async def answer(request: web.Request) -> web.Response:
        asked = await request.json() if request.method == "POST" else {}
        block = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(image).decode()}
        results = {"initialize": INITIALIZED, "tools/list": {"tools": [GOOD]}, "tools/call": {"content": [block]}}
        if asked.get("method") not in results:
            return web.Response(status=405 if request.method == "GET" else 202)
        message = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": results[asked["method"]]})
        return web.Response(text=f"event: message\ndata: {message}\n\n", content_type="text/event-stream")

    async with (
        site(answer, "127.0.0.1") as found,
        connected(HttpServer("big", f"http://127.0.0.1:{found.port}/mcp")) as servers,
    ):
        result = await bench.run((await tools_of(servers))["big__good"])
    assert [media.data for media in result.images] == [image]


@pytest.mark.parametrize("kind", ["names", "event stream"])
async def test_a_remote_server_cannot_send_without_an_end(kind: str) -> None:
    """L6: a response of millions of names, which would take seconds to parse, and an endless event are given up."""
    sent = 0
    pieces = {"names": b'{"a": "b"}, ' * 10_000, "event stream": b" " * 1_000_000}

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        asked = await request.json() if request.method == "POST" else {}
        if asked.get("method") == "initialize":
            return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "result": INITIALIZED})
        if asked.get("method") != "tools/list":
            return web.Response(status=405 if request.method == "GET" else 202)
        event_stream = kind == "event stream"
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream" if event_stream else "application/json"}
        )
        await response.prepare(request)
        with suppress(ConnectionError):
            await response.write(b"data: " if event_stream else b"")
            while sent < 200_000_000:
                await response.write(piece := pieces[kind])
                sent += len(piece)
        return response

    async with site(answer, "127.0.0.1") as found:
        server = HttpServer("big", f"http://127.0.0.1:{found.port}/mcp")
        async with connected(server, limits=McpLimits(connect=GUARD)) as servers:
            with anyio.fail_after(GUARD):
                assert await servers.tools() == ()
            assert servers.states()["big"].failure
    assert sent < 20_000_000


async def test_a_malformed_tool_hides_no_other(bench: Bench) -> None:
    """E1: tools that the SDK or a model would stumble over are left out, one by one."""
    nested: list[Any] = [{"type": "string"}]
    for _ in range(300):
        nested.append({"items": nested[-1]})
    tools = [
        {"inputSchema": {"type": "object"}},
        {"name": 7, "inputSchema": {"type": "object"}},
        {"name": "no schema"},
        {"name": "list", "inputSchema": []},
        {"name": "string", "inputSchema": {"type": "string"}},
        {"name": "deep", "inputSchema": {"type": "object", "properties": {"a": nested[150]}}},
        {"name": "deeper", "inputSchema": {"type": "object", "properties": {"a": nested[300]}}},
        {"name": "large", "inputSchema": {"type": "object", "description": "x" * 110_000}},
        {"name": "infinite", "inputSchema": {"type": "object", "properties": {"a": {"maximum": float("inf")}}}},
        {"name": "huge", "inputSchema": {"type": "object", "properties": {"a": {"maximum": 10**400}}}},
        {"name": "half", "description": "half: \ud800", "inputSchema": {"type": "object"}},
        "nonsense",
        GOOD,
    ]
    async with connected(raw(results={"tools/list": {"tools": tools}})) as servers:
        found = await tools_of(servers)
    assert set(found) == {"raw__half", "raw__good"}
    assert found["raw__half"].spec.description == "half: \N{REPLACEMENT CHARACTER}"


async def test_the_schemas_of_a_server_have_a_limit_together() -> None:
    """L6: models are sent all of them with every request; those that come first are kept."""
    schema = {"type": "object", "description": "x" * 90_000}
    tools = [{"name": f"t{n:02}", "inputSchema": schema} for n in range(20)]
    listed = tool_listing.keep_valid_tools("many", [{"name": "large", "inputSchema": {"x": "x" * 2_000_000}}, *tools])
    assert [tool["name"] for tool in listed] == [f"t{n:02}" for n in range(11)]


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"properties": {"a": {"pattern": "^(a+)+$"}}}, {"type": "string"}])
async def test_a_server_cannot_hang_the_client_with_its_own_output_schema(bench: Bench, schema: Any) -> None:
    """E1: results are not checked against what the server says about them."""
    tool = {**GOOD, "outputSchema": {"type": "object", **schema}}
    called = {"content": [{"type": "text", "text": "fine"}], "structuredContent": {"a": "a" * 40 + "!"}}
    async with connected(raw(results={"tools/list": {"tools": [tool]}, "tools/call": called})) as servers:
        tools = await tools_of(servers)
        with anyio.fail_after(GUARD):
            assert (await bench.run(tools["raw__good"])).content == "fine"


async def test_error_output_of_a_program_is_told(effects: Path) -> None:
    """E1: a program that does not start says why, to the model and in the settings; only the end of it is kept."""
    async with connected(raw(stderr="x" * 100_000 + "\nno such database", exit=3)) as servers:
        with pytest.raises(ToolError, match="no such database"):
            await servers.list_tools("raw")
        state = servers.states()["raw"]
    assert state.stderr.endswith("no such database")
    assert len(state.stderr) <= 4_000


async def test_the_client_says_who_it_is(effects: Path) -> None:
    """Servers see Holdfast and its version."""
    async with connected(raw(results={"tools/list": {"tools": [GOOD]}}, log=str(effects))) as servers:
        await tools_of(servers)
    sent = [json.loads(line) for line in (await anyio.Path(effects).read_text()).splitlines()]
    info = next(each["params"]["clientInfo"] for each in sent if each["method"] == "initialize")
    assert (info["name"], info["version"]) == ("holdfast", __version__)


def test_hints_of_a_server_that_is_not_trusted_do_not_count() -> None:
    """X5: a remote server cannot talk its way past the person."""

    class Hints:
        read_only_hint = True
        idempotent_hint = True

    assert tool_mapping.to_traits(Hints, trusted=False) == ToolTraits(rule="ask")
    assert tool_mapping.to_traits(None, trusted=True) == ToolTraits(rule="ask")
    assert not HttpServer("x", "http://x").trusted


def test_names_fit_what_providers_take() -> None:
    """X5: no more than 64 letters, digits, underscores and dashes."""
    name = tool_mapping.tool_name("my server", "x" * 100)
    assert len(name) == 64
    assert name.startswith("my_server__xxx")


async def test_long_names_with_the_same_beginning_hide_no_tool(bench: Bench) -> None:
    """X5: a name that is cut to what providers take stays its tool's own, and is the same each time."""
    names = ["x" * 70 + "_first", "x" * 70 + "_last"]
    answers = {"tools/list": {"tools": [{**GOOD, "name": name, "description": name} for name in names]}}
    async with connected(raw(results=answers)) as servers:
        tools = await tools_of(servers)
        assert sorted(tool.spec.description for tool in tools.values()) == names
        assert all(len(name) == 64 for name in tools)
        assert [tool_mapping.tool_name("raw", name) for name in names] == list(tools)


def test_the_sdk_is_not_imported_before_it_is_used() -> None:
    """L6: who has no MCP server does not pay for the library."""
    program = "import sys; import holdfast.tools.mcp.servers, holdfast.agents.chat.agent; print('mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("code", [0, -32002, -32042])
async def test_an_error_of_the_server_keeps_the_connection(bench: Bench, tmp_path: Path, code: int) -> None:
    """E1: an answer with any error code is told to the model, and calls of others on the connection go on."""
    log = tmp_path / "log"
    errors = {"tools/call": {"code": code, "message": "no such mooring"}}
    async with connected(raw(results={"tools/list": {"tools": [GOOD]}}, errors=errors, log=str(log))) as servers:
        tool = (await tools_of(servers))["raw__good"]
        for _ in range(2):
            with pytest.raises(ToolError, match="raw: no such mooring"):
                await tool.run({}, bench.context)
        assert servers.states()["raw"].connected
    assert log.read_text().count('"initialize"') == 1
