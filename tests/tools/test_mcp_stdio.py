"""What a program may send over its standard output: messages of any length up to a limit, in linear time."""

import os
import sys
import time
from pathlib import Path

import pytest

from holdfast.ports.tool import ToolError
from holdfast.tools.mcp import stdio_transport
from holdfast.tools.mcp.server_config import StdioServer
from tests.tools.conftest import Bench
from tests.tools.test_mcp import connected, tools_of

PROGRAM = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    match asked["method"]:
        case "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            result["serverInfo"] = {"name": "large", "version": "1"}
        case "tools/list":
            fields = {name: {"type": "integer"} for name in ("size", "values", "noise")}
            schema = {"type": "object", "properties": fields}
            result = {"tools": [{"name": "send", "inputSchema": schema}]}
        case "tools/call":
            how = asked["params"]["arguments"]
            print("hello\\n" * how.get("noise", 0), end="", flush=True)
            text = {"type": "text", "text": "x" * how.get("size", 1)}
            result = {"content": [text], "_meta": {"a": [1] * how.get("values", 1)}}
        case _:
            result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
LARGE = StdioServer("large", sys.executable, ("-c", PROGRAM))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_a_long_message_is_read_in_linear_time(bench: Bench) -> None:
    """30 MB took more than four seconds of the event loop's time while their pieces were joined one by one."""
    async with connected(LARGE) as servers:
        tools = await tools_of(servers)
        began = time.process_time()
        result = await bench.run(tools["large__send"], size=30_000_000)
        assert time.process_time() - began < 2.0
    assert len(str(result.content)) == 30_000_000


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ({"size": 2_000_000}, "a message of more than 1 MB"),
        ({"values": 600_000}, "a message of too many values"),
        ({"noise": 10_000}, "10,000 lines in a row that are no messages"),
    ],
)
async def test_a_message_over_the_limits_ends_the_connection(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, int], problem: str
) -> None:
    """L6: the model is told why, and the next call starts the program again."""
    monkeypatch.setattr(stdio_transport, "MAX_LINE", 1024**2 if "size" in wanted else 32 * 1024**2)
    async with connected(LARGE) as servers:
        tools = await tools_of(servers)
        refused = await bench.run(tools["large__send"], **wanted)
        assert refused.is_error
        assert problem in str(refused.content)
        assert (await bench.run(tools["large__send"], noise=9_000)).content == "x"


@pytest.mark.anyio
async def test_a_program_leaves_nothing_behind(tmp_path: Path) -> None:
    """What it started ends with the connection, also in a session of its own."""
    pid = tmp_path / "pid"
    starts = f"""
import subprocess
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
open({str(pid)!r}, "w").write(str(child.pid))
"""
    async with connected(StdioServer("large", sys.executable, ("-c", starts + PROGRAM))) as servers:
        assert set(await tools_of(servers)) == {"large__send"}
        os.kill(int(pid.read_text()), 0)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@pytest.mark.anyio
async def test_a_program_is_found_from_its_own_directory(tmp_path: Path) -> None:
    """A path that is relative leads from the directory that the program is started in."""
    (tmp_path / "large.py").write_text(PROGRAM)
    program = tmp_path / "large.sh"
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' large.py\n")
    program.chmod(0o700)
    async with connected(StdioServer("large", "./large.sh", cwd=str(tmp_path))) as servers:
        assert set(await tools_of(servers)) == {"large__send"}
    program.chmod(0o600)
    async with connected(StdioServer("large", "./large.sh", cwd=str(tmp_path))) as servers:
        with pytest.raises(ToolError, match="command not found"):
            await servers.list_tools("large")
