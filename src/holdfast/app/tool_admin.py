"""The tools and MCP servers of the chat agent, as the settings page lists and changes them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final
from urllib.parse import urlsplit

from anyio import to_thread

from holdfast.agents.chat.summary_and_title import ask
from holdfast.app.late_engine import LateEngine
from holdfast.app.models import set_provider_key
from holdfast.config import Config, McpSection
from holdfast.core.errors import InvalidInputError, NotAllowedError, NotFoundError
from holdfast.core.ids import LOCAL
from holdfast.ports.agent import AgentError
from holdfast.ports.keyring import KeyringStore
from holdfast.ports.model import Model
from holdfast.ports.tool import Tool, ToolError
from holdfast.server.schemas.settings import McpServerRequest, McpServerResponse, ShellSandboxResponse, ToolResponse
from holdfast.tools.mcp.servers import McpServers
from holdfast.tools.mcp.tool_mapping import HttpServer, McpServer, StdioServer
from holdfast.tools.shell import ShellTool
from holdfast.tools.shell_sandbox import ShellSandbox

_KEY_PREFIX: Final = "mcp:"  # Before the server's name, in the keyring
_TEST_TOKENS: Final = 1000  # Enough for a one-word answer of a reasoning model


class AppToolAdmin:
    """Implements `server.context.ToolAdmin`. Servers from the configuration come first; those added on the settings
    page are stored as a setting, and their tokens in the keyring."""

    def __init__(
        self,
        late_engine: LateEngine,
        keys: KeyringStore,
        find_model: Callable[[str | None], Awaitable[Model]],
        own: Sequence[Tool],
        configured: Sequence[McpServer],
        sandbox: ShellSandbox,
    ) -> None:
        self._late_engine = late_engine
        self._keys = keys
        self._find_model = find_model
        self.own = own
        self._sandbox = sandbox
        self._configured = {server.name: server for server in configured}
        self.mcp = McpServers(configured)

    async def mcp_tools(self) -> Sequence[Tool]:
        """Applies the current settings first, so that a change counts from the next run on."""
        await self._configure()
        return await self.mcp.tools()

    async def try_model(self, model: str) -> str:
        return await ask(await self._find_model(model), "Answer with one word.", "Say hello.", _TEST_TOKENS)

    async def tools(self) -> Sequence[ToolResponse]:
        found: list[tuple[Tool, str | None]] = [(tool, None) for tool in self.own]
        found += [(tool, tool.spec.name.partition("__")[0]) for tool in await self.mcp_tools()]
        sandbox = ShellSandboxResponse.model_validate(asdict(await self._sandbox.status()))
        return [
            ToolResponse(
                name=tool.spec.name,
                description=tool.spec.description,
                rule=tool.traits.rule,
                server=server,
                sandbox=sandbox if isinstance(tool, ShellTool) else None,
            )
            for tool, server in found
        ]

    # ---- MCP servers ----

    async def servers(self) -> Sequence[McpServerResponse]:
        servers = await self._configure()
        states = self.mcp.states()
        return [_info(server, server.name not in self._configured, states[server.name]) for server in servers]

    async def try_server(self, name: str) -> Sequence[str]:
        if name not in {server.name for server in await self._configure()}:
            raise NotFoundError("MCP server", name)
        try:
            return [tool.spec.name for tool in await self.mcp.list_tools(name)]
        except ToolError as error:
            raise AgentError("mcp", str(error)) from error

    async def put_server(self, name: str, server: McpServerRequest) -> None:
        if name in self._configured:
            raise InvalidInputError("name", f"{name!r} is defined in holdfast.toml; change it there")
        if (server.command is None) == (server.url is None):
            raise InvalidInputError("command", "either a command or a url is required, not both")
        if server.url is not None and urlsplit(server.url).scheme not in ("http", "https"):
            raise InvalidInputError("url", "must start with http:// or https://")
        setting = server.model_dump(include={"url"} if server.command is None else {"command", "args"})
        if server.token is not None:
            await self._store_token(name, server.token)
        await self._late_engine.engine.preferences.change({"mcp": {**await self._added(), name: setting}})
        await self._configure()

    async def drop_server(self, name: str) -> None:
        added = dict(await self._added())
        if name in self._configured:
            raise NotAllowedError("remove it", "it is defined in holdfast.toml; remove it there")
        if added.pop(name, None) is None:
            raise NotFoundError("MCP server", name)
        await self._late_engine.engine.preferences.change({"mcp": added})
        await self._store_token(name, None)
        await self._configure()

    async def _added(self) -> Mapping[str, Any]:
        return (await self._late_engine.engine.preferences.settings(LOCAL)).get("mcp") or {}

    async def _configure(self) -> Sequence[McpServer]:
        tokens = self._keys.read().provider_keys
        added = [
            _added_server(name, setting, tokens.get(_KEY_PREFIX + name))
            for name, setting in (await self._added()).items()
            if name not in self._configured
        ]
        servers = [*self._configured.values(), *added]
        self.mcp.configure(servers)
        return servers

    async def _store_token(self, name: str, token: str | None) -> None:
        await to_thread.run_sync(set_provider_key, self._keys, _KEY_PREFIX + name, token)


def mcp_servers(config: Config) -> tuple[McpServer, ...]:
    return tuple(_configured_server(name, section) for name, section in config.mcp.items())


def _configured_server(name: str, section: McpSection) -> McpServer:
    if section.command is not None:
        env = {variable: value.get_secret_value() for variable, value in section.env.items()}
        trusted = section.trusted is not False
        return StdioServer(name, section.command, tuple(section.args), env, section.cwd, trusted=trusted)
    assert section.url is not None
    headers = {header: value.get_secret_value() for header, value in section.headers.items()}
    return HttpServer(name, section.url, headers, trusted=section.trusted is True)


def _added_server(name: str, setting: Mapping[str, Any], token: str | None) -> McpServer:
    if "command" in setting:
        return StdioServer(name, setting["command"], tuple(setting.get("args", ())))
    return HttpServer(name, setting["url"], {} if token is None else {"Authorization": f"Bearer {token}"})


def _info(server: McpServer, editable: bool, state: Any) -> McpServerResponse:
    return McpServerResponse(
        name=server.name,
        kind="stdio" if isinstance(server, StdioServer) else "http",
        target=" ".join((server.command, *server.args)) if isinstance(server, StdioServer) else server.url,
        editable=editable,
        connected=state.connected,
        failure=state.failure,
    )
