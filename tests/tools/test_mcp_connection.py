"""How long connecting to an MCP server may take."""

import asyncio
import importlib
from types import ModuleType

import pytest

from holdfast.tools.mcp import connection
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
