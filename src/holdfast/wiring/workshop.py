"""What the chat agent works with, as a person sees and changes it in the settings."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from anyio import to_thread

from holdfast.agents.chat.helpers import ask
from holdfast.agents.models.port import Model
from holdfast.agents.tools.mcp.servers import McpServers
from holdfast.agents.tools.mcp.values import HttpServer, McpServer, StdioServer
from holdfast.agents.tools.port import Tool, ToolFailed
from holdfast.core.errors import Invalid, NotAllowed, NotFound
from holdfast.core.ids import LOCAL
from holdfast.core.values import replace
from holdfast.engine.preferences import Preferences
from holdfast.faces.http.api import McpInfo, ToolInfo
from holdfast.ports import AgentFailed, Keyring, Keys

_KEY: Final = "mcp:"
"""Before the server's name, in the keyring."""
_ROOM: Final = 1000
"""Tokens for one word: a reasoning model needs them."""


class Workroom:
    """`faces.http.api.Workshop`. Servers of the configuration come first; what was added here is a setting, and its
    token is in the keyring."""

    def __init__(
        self,
        preferences: Callable[[], Preferences],
        keys: Keys,
        find_model: Callable[[str | None], Awaitable[Model]],
        own: Sequence[Tool],
        configured: Sequence[McpServer],
    ) -> None:
        self._preferences = preferences
        self._keys = keys
        self._find_model = find_model
        self.own = own
        self._configured = tuple(configured)
        self.mcp = McpServers(configured)

    async def mcp_tools(self) -> Sequence[Tool]:
        """As the settings are now: a change counts from the next run on."""
        await self._configure()
        return await self.mcp.tools()

    async def try_model(self, model: str) -> str:
        return await ask(await self._find_model(model), "Answer with one word.", "Say hello.", _ROOM)

    async def tools(self) -> Sequence[ToolInfo]:
        found = [ToolInfo(tool.spec.name, tool.spec.description, tool.traits.rule, None) for tool in self.own]
        for tool in await self.mcp_tools():
            server = tool.spec.name.partition("__")[0]
            found.append(ToolInfo(tool.spec.name, tool.spec.description, tool.traits.rule, server))
        return found

    # ---- MCP servers ----

    async def _added(self) -> Mapping[str, Any]:
        return (await self._preferences().settings(LOCAL)).get("mcp") or {}

    async def _configure(self) -> Sequence[McpServer]:
        tokens = self._keys.read().provider_keys
        taken = {server.name for server in self._configured}
        added = [_made(name, it, tokens.get(_KEY + name)) for name, it in (await self._added()).items()]
        servers = [*self._configured, *(server for server in added if server.name not in taken)]
        self.mcp.configure(servers)
        return servers

    async def servers(self) -> Sequence[McpInfo]:
        servers = await self._configure()
        states = self.mcp.states()
        return [_info(server, server not in self._configured, states[server.name]) for server in servers]

    async def try_server(self, name: str) -> Sequence[str]:
        if name not in {server.name for server in await self._configure()}:
            raise NotFound("MCP server", name)
        try:
            return [tool.spec.name for tool in await self.mcp.look(name)]
        except ToolFailed as error:
            raise AgentFailed("mcp", str(error)) from error

    async def put_server(
        self, name: str, *, command: str | None, args: Sequence[str], url: str | None, token: str | None
    ) -> None:
        if name in {server.name for server in self._configured}:
            raise Invalid("name", f"{name!r} is in holdfast.toml already; change it there")
        if (command is None) == (url is None):
            raise Invalid("command", "or a url is needed, and only one of them")
        if url is not None and urlsplit(url).scheme not in ("http", "https"):
            raise Invalid("url", "begins with http:// or https://")
        server = {"command": command, "args": list(args)} if command is not None else {"url": url}
        if token is not None:
            await self._keep(name, token)
        await self._preferences().change({"mcp": {**await self._added(), name: server}})
        await self._configure()

    async def drop_server(self, name: str) -> None:
        added = dict(await self._added())
        if name in {server.name for server in self._configured}:
            raise NotAllowed("remove it", "it is in holdfast.toml; take it out there")
        if added.pop(name, None) is None:
            raise NotFound("MCP server", name)
        await self._preferences().change({"mcp": added})
        await self._keep(name, None)
        await self._configure()

    async def _keep(self, name: str, token: str | None) -> None:
        def change(ring: Keyring) -> Keyring:
            others = {key: value for key, value in ring.provider_keys.items() if key != _KEY + name}
            return replace(ring, provider_keys=others if token is None else {**others, _KEY + name: token})

        await to_thread.run_sync(self._keys.change, change)


def _made(name: str, setting: Mapping[str, Any], token: str | None) -> McpServer:
    if "command" in setting:
        return StdioServer(name, setting["command"], tuple(setting.get("args", ())))
    return HttpServer(name, setting["url"], {} if token is None else {"Authorization": f"Bearer {token}"})


def _info(server: McpServer, editable: bool, state: Any) -> McpInfo:
    match server:
        case StdioServer(name, command, args):
            return McpInfo(name, "stdio", " ".join((command, *args)), editable, state.connected, state.failure)
        case HttpServer(name, url):
            return McpInfo(name, "http", url, editable, state.connected, state.failure)
