"""MCP servers as real processes, on stdio and over HTTP: calls, results, and what happens when one dies."""

import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import pytest

from holdfast.agents.tools.mcp import values
from holdfast.agents.tools.mcp.servers import McpLimits, McpServers
from holdfast.agents.tools.mcp.values import HttpServer, McpServer, StdioServer
from holdfast.agents.tools.port import Tool, Traits, by_name
from tests.harness import GUARD
from tests.tools.conftest import Bench

pytestmark = pytest.mark.anyio

PROGRAM = str(Path(__file__).with_name("mcp_server.py"))
PATIENT = McpLimits(connect=60.0)


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
def on_http(effects: Path, listener: socket.socket) -> Iterator[subprocess.Popen[bytes]]:
    fd = listener.fileno()
    process = subprocess.Popen([sys.executable, PROGRAM, str(effects), str(fd)], pass_fds=[fd])
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
        return by_name(await servers.tools())


@pytest.mark.parametrize("how", ["stdio", "http"])
async def test_tools_are_listed_and_called(bench: Bench, effects: Path, how: str) -> None:
    """X5: names carry their server's, hints become traits, and results of all kinds are told in words."""
    with listening() as listener, on_http(effects, listener):
        server = (
            on_stdio(effects, env={"GIVEN": "yes"})
            if how == "stdio"
            else HttpServer("t", address(listener), trusted=True, headers={"X-Given": "yes"})
        )
        async with connected(server) as servers:
            tools = await tools_of(servers)
            assert tools["t__add"].traits == Traits(repeatable=True, read_only=True, rule="allow")
            assert tools["t__note"].traits == Traits(rule="ask")
            assert tools["t__die_once"].traits == Traits(repeatable=True, rule="ask")
            assert tools["t__add"].spec.description == "Add two numbers."
            assert (await bench.run(tools["t__add"], a=1, b=2)).content == "3"
            assert (await bench.run(tools["t__note"], text="hello")).content == "noted hello"
            assert lines(effects) == ["hello"]
            failed = await bench.run(tools["t__fail"])
            assert failed.is_error
            shown = "words\n[image: image/png, 8 bytes]\n[resource: file:///notes.txt notes]"
            assert (await bench.run(tools["t__show"])).content == shown
            assert (await bench.run(tools["t__shape"])).content == {"n": 1}


async def test_progress_is_shown_and_secrets_stay_here(
    bench: Bench, effects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X5: a program gets what it was given and not the server's environment; odd names become plain ones."""
    monkeypatch.setenv("SECRET", "s3cret")
    async with connected(on_stdio(effects, env={"GIVEN": "yes"})) as servers:
        tools = await tools_of(servers)
        result = await bench.run(tools["t__odd_name_with__nusual_letters"])
        assert result.content.split()[1:] == ["none", "yes"]
        assert bench.printed == ["half way\n"]


async def test_a_call_in_mid_air_is_not_repeated(bench: Bench, effects: Path) -> None:
    """X5: the server died during a call with effects: the model is told that the outcome is not known, and the next
    call finds a new server."""
    async with connected(on_stdio(effects)) as servers:
        tools = await tools_of(servers)
        result = await bench.run(tools["t__die"], text="once")
        assert result.is_error
        assert "not known whether it took effect" in result.content
        assert lines(effects) == ["once"]
        assert (await bench.run(tools["t__add"], a=1, b=2)).content == "3"


async def test_a_repeatable_call_is_made_again(bench: Bench, effects: Path) -> None:
    """X5: a tool that says it may be repeated is, once, on a new connection."""
    async with connected(on_stdio(effects)) as servers:
        tools = await tools_of(servers)
        assert (await bench.run(tools["t__die_once"], text="x")).content == "survived"
        assert lines(effects) == ["x", "x"]


async def test_a_server_that_died_between_calls_is_noticed_before_the_next(bench: Bench, effects: Path) -> None:
    """X5: a call with effects that comes after the death goes to a new server, once, and succeeds."""
    async with connected(on_stdio(effects)) as servers:
        tools = await tools_of(servers)
        pid = int((await bench.run(tools["t__odd_name_with__nusual_letters"])).content.split()[0])
        handle = os.pidfd_open(pid)
        try:
            os.kill(pid, 9)
            await anyio.wait_readable(handle)
            with anyio.fail_after(GUARD):
                while True:
                    result = await bench.run(tools["t__note"], text="after")
                    if not result.is_error:
                        break
        finally:
            os.close(handle)
        assert lines(effects) == ["after"]


async def test_a_server_that_is_started_again_is_used_again(bench: Bench, effects: Path) -> None:
    """X5: over HTTP, after the server process was replaced, calls work again without anybody doing anything."""
    with listening() as listener:
        async with connected(HttpServer("t", address(listener), trusted=True)) as servers:
            with on_http(effects, listener):
                tools = await tools_of(servers)
                assert (await bench.run(tools["t__add"], a=1, b=2)).content == "3"
            with on_http(effects, listener):
                assert (await bench.run(tools["t__add"], a=2, b=2)).content == "4"


async def test_a_server_that_cannot_be_reached_costs_only_its_own_tools(bench: Bench, effects: Path) -> None:
    """E1: the others are there, and the dead one is not tried again before its pause is over."""
    missing = StdioServer("gone", "/nonexistent/program")
    limits = McpLimits(connect=60.0, first_pause=3600.0, longest_pause=3600.0)
    async with connected(missing, on_stdio(effects), limits=limits) as servers:
        names = list(await tools_of(servers))
        assert "t__add" in names
        assert not any(name.startswith("gone__") for name in names)
        door = servers._doors["gone"]
        with pytest.raises(Exception, match="Try again in"):
            await door.list_tools()


async def test_a_program_that_says_nothing_is_given_up(effects: Path) -> None:
    """E1: a server that starts and never answers does not hold a turn up for longer than its limit."""
    silent = StdioServer("silent", sys.executable, ("-c", "import sys; sys.stdin.read()"))
    async with connected(silent, limits=McpLimits(connect=0.5)) as servers:
        with anyio.fail_after(GUARD):
            assert await servers.tools() == ()


def test_hints_of_a_server_that_is_not_trusted_do_not_count() -> None:
    """X5: a remote server cannot talk its way past the person."""

    class Hints:
        read_only_hint = True
        idempotent_hint = True

    assert values.traits(Hints, trusted=False) == Traits(rule="ask")
    assert values.traits(None, trusted=True) == Traits(rule="ask")
    assert not HttpServer("x", "http://x").trusted


def test_names_fit_what_providers_take() -> None:
    """X5: no more than 64 letters, digits, underscores and dashes."""
    name = values.tool_name("my server", "x" * 100)
    assert len(name) == 64
    assert name.startswith("my_server__xxx")


def test_the_sdk_is_not_imported_before_it_is_used() -> None:
    """L6: who has no MCP server does not pay for the library."""
    program = (
        "import sys; import holdfast.agents.tools.mcp.servers, holdfast.agents.chat.agent; print('mcp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
