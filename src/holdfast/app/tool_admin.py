"""The tools and MCP servers of the chat agent, as the settings page lists and changes them. Which tools a turn gets:
`tools.tool_selection`; when a call asks: `tools.approval_policy`."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
from anyio import to_thread

from holdfast.agents.chat.summary_and_title import ask
from holdfast.app.engine_proxy import EngineProxy
from holdfast.app.models import set_provider_key
from holdfast.app.stored_entries import with_entry, without_entry
from holdfast.config import Config, McpSection
from holdfast.core.errors import InvalidInputError, NotAllowedError, NotFoundError
from holdfast.core.ids import LOCAL
from holdfast.core.parts import Json
from holdfast.ports.agent import AgentError, Turn
from holdfast.ports.keyring import KeyringStore
from holdfast.ports.model import Model
from holdfast.ports.tool import Tool, ToolError
from holdfast.server.schemas.settings import (
    McpPromptResponse,
    McpServerRequest,
    McpServerResponse,
    ShellSandboxResponse,
    ToolResponse,
)
from holdfast.tools.mcp.oauth import OAuthSecrets
from holdfast.tools.mcp.server_config import HttpServer, McpServer, StdioServer
from holdfast.tools.mcp.servers import McpServers
from holdfast.tools.shell import ShellTool
from holdfast.tools.shell_sandbox import ShellSandbox

_KEY_PREFIX: Final = "mcp:"  # Before the server's name, in the keyring: its token, variables and headers
_ENV_PREFIX: Final = "mcp-env:"
_HEADERS_PREFIX: Final = "mcp-headers:"
_OAUTH_PREFIX: Final = "mcp-oauth:"  # The registered client and tokens, with the URL that they are for
_MAX_SERVERS: Final = 50
_TEST_TOKENS: Final = 1000  # Enough for a one-word answer of a reasoning model


class AppToolAdmin:
    """Implements `server.context.ToolAdmin`. Servers from the configuration come first; those added on the settings
    page are stored as a setting, and their tokens in the keyring."""

    def __init__(
        self,
        engine_proxy: EngineProxy,
        keys: KeyringStore,
        find_model: Callable[[str | None], Awaitable[Model]],
        own: Sequence[Tool],
        configured: Sequence[McpServer],
        sandbox: ShellSandbox,
    ) -> None:
        self._engine_proxy = engine_proxy
        self._keys = keys
        self._find_model = find_model
        self.own = own
        self._sandbox = sandbox
        self._configured = {server.name: server for server in configured}
        self.mcp = McpServers(configured)
        self._changing = anyio.Lock()  # One change at a time: a setting and its secrets

    async def mcp_tools_for_turn(self, turn: Turn) -> Sequence[Tool]:
        """Uses the settings that the turn was loaded with, so a change applies from the next run on."""
        self._configure(turn.preferences)
        return await self.mcp.tools()

    async def try_model(self, model: str) -> str:
        return await ask(await self._find_model(model), "Answer with one word.", "Say hello.", _TEST_TOKENS)

    async def tools(self) -> Sequence[ToolResponse]:
        self._configure(await self._settings())
        found: list[tuple[Tool, str | None]] = [(tool, None) for tool in self.own]
        found += [(tool, tool.spec.name.partition("__")[0]) for tool in await self.mcp.tools()]
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
        servers = self._configure(await self._settings())
        states, secrets = self.mcp.states(), self._keys.read().provider_keys
        infos = [_info(server, server.name not in self._configured, states[server.name]) for server in servers]
        for info in infos:
            info.has_token = info.editable and _KEY_PREFIX + info.name in secrets
            info.headers = [name for name in info.headers if not (info.has_token and name == "Authorization")]
        return infos

    async def try_server(self, name: str) -> Sequence[str]:
        if name not in {server.name for server in self._configure(await self._settings())}:
            raise NotFoundError("MCP server", name)
        try:
            return [tool.spec.name for tool in await self.mcp.list_tools(name)]
        except ToolError as error:
            raise AgentError("mcp", str(error)) from error

    async def prompts(self) -> Sequence[McpPromptResponse]:
        self._configure(await self._settings())
        return [McpPromptResponse.model_validate(asdict(prompt)) for prompt in await self.mcp.prompts()]

    async def get_prompt(self, server: str, prompt: str, arguments: Mapping[str, str]) -> str:
        if server not in {each.name for each in self._configure(await self._settings())}:
            raise NotFoundError("MCP server", server)
        try:
            return await self.mcp.get_prompt(server, prompt, arguments)
        except ToolError as error:
            raise AgentError("mcp", str(error)) from error

    async def start_sign_in(self, server: str, redirect_uri: str) -> str:
        if server not in {each.name for each in self._configure(await self._settings())}:
            raise NotFoundError("MCP server", server)
        try:
            return await self.mcp.start_sign_in(server, redirect_uri)
        except ToolError as error:
            raise AgentError("mcp", str(error)) from error

    async def finish_sign_in(self, state: str, code: str | None, issuer: str | None, error: str | None) -> str:
        try:
            return await self.mcp.finish_sign_in(state, code, issuer, error)
        except ToolError as failed:
            raise AgentError("mcp", str(failed)) from failed

    async def sign_out(self, server: str) -> None:
        await self._store(_OAUTH_PREFIX + server, None)
        self.mcp.reconnect(server)

    async def put_server(self, name: str, server: McpServerRequest) -> None:
        if name in self._configured:
            raise InvalidInputError("name", f"{name!r} is defined in holdfast.toml; change it there")
        if (server.command is None) == (server.url is None):
            raise InvalidInputError("command", "either a command or a url is required, not both")
        if server.url is not None and urlsplit(server.url).scheme not in ("http", "https"):
            raise InvalidInputError("url", "must start with http:// or https://")
        of_other_kind = ("headers", "token") if server.command is not None else ("env", "cwd")
        for field in of_other_kind:
            if getattr(server, field):
                raise InvalidInputError(field, "env and cwd belong to a command, headers and a token to a url")
        setting = server.model_dump(include={"url"} if server.command is None else {"command", "args", "cwd"})
        async with self._changing:
            before = _added(await self._settings()).get(name, {})
            is_elsewhere = _target(before) != _target(setting)
            # First, so that the secrets are never sent to the new address.
            if is_elsewhere or server.token is not None:
                await self._store_token(name, None)
            if is_elsewhere:
                await self._store_secrets(name, {}, {})
                await self._store(_OAUTH_PREFIX + name, None)
            env = self._with_stored("env", _ENV_PREFIX + name, server.env)
            headers = self._with_stored("headers", _HEADERS_PREFIX + name, server.headers)
            put = partial(with_entry, name=name, entry=setting, limit=_MAX_SERVERS, kind="MCP servers")
            settings = await self._engine_proxy.engine.preferences.update("mcp", put)
            if server.token is not None:
                await self._store_token(name, server.token)
            await self._store_secrets(name, env, headers)
            self._configure(settings)

    async def drop_server(self, name: str) -> None:
        if name in self._configured:
            raise NotAllowedError("remove it", "it is defined in holdfast.toml; remove it there")
        async with self._changing:
            drop = partial(without_entry, name=name, kind="MCP server")
            settings = await self._engine_proxy.engine.preferences.update("mcp", drop)
            await self._store_token(name, None)
            await self._store_secrets(name, {}, {})
            await self._store(_OAUTH_PREFIX + name, None)
            self._configure(settings)

    async def _settings(self) -> Mapping[str, Json]:
        return await self._engine_proxy.engine.preferences.settings(LOCAL)

    def _configure(self, settings: Mapping[str, Json]) -> Sequence[McpServer]:
        """Applies the owner's settings; returns all servers."""
        secrets = self._keys.read().provider_keys
        added = [
            _added_server(name, setting, secrets)
            for name, setting in _added(settings).items()
            if name not in self._configured
        ]
        servers = [self._with_oauth(server) for server in (*self._configured.values(), *added)]
        self.mcp.configure(servers)
        return servers

    def _with_stored(self, field: str, key: str, values: Mapping[str, str | None] | None) -> Mapping[str, str] | None:
        """The values, with the stored one for each null."""
        stored: Mapping[str, str] = json.loads(self._keys.read().provider_keys.get(key, "{}"))
        lost = next((name for name, value in (values or {}).items() if value is None and name not in stored), None)
        if lost is not None:
            raise InvalidInputError(f"{field}.{lost}", "has no stored value for this command or URL; enter it")
        return None if values is None else {n: stored[n] if value is None else value for n, value in values.items()}

    def _with_oauth(self, server: McpServer) -> McpServer:
        if isinstance(server, StdioServer):
            return server
        return replace(server, oauth=oauth_secrets(server, self._keys, self._engine_proxy))

    async def _store(self, key: str, text: str | None) -> None:
        await to_thread.run_sync(set_provider_key, self._keys, key, text)

    async def _store_token(self, name: str, token: str | None) -> None:
        await self._store(_KEY_PREFIX + name, token)

    async def _store_secrets(self, name: str, env: Mapping[str, str] | None, headers: Mapping[str, str] | None) -> None:
        """None keeps what is stored."""
        for prefix, values in ((_ENV_PREFIX, env), (_HEADERS_PREFIX, headers)):
            if values is not None:
                await self._store(prefix + name, json.dumps(dict(values)) if values else None)


def oauth_secrets(server: HttpServer, keys: KeyringStore, engine: EngineProxy) -> OAuthSecrets:
    """The tokens of a server in the keyring. A run may refresh them, after which the old ones are worth nothing, so it
    waits for storage that is away."""
    key = _OAUTH_PREFIX + server.name

    async def write(text: str) -> None:
        await engine.retry_storage(lambda: to_thread.run_sync(set_provider_key, keys, key, text))

    return OAuthSecrets(server.url, lambda: keys.read().provider_keys.get(key), write)


def _added(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    return settings.get("mcp") or {}


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


def _target(setting: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """What a server's secrets are bound to: the program with its arguments, or the URL."""
    return setting.get("url"), setting.get("command"), setting.get("args")


def _added_server(name: str, setting: Mapping[str, Any], secrets: Mapping[str, str]) -> McpServer:
    if "command" in setting:
        env = json.loads(secrets.get(_ENV_PREFIX + name, "{}"))
        return StdioServer(name, setting["command"], tuple(setting.get("args", ())), env, setting.get("cwd"))
    headers = json.loads(secrets.get(_HEADERS_PREFIX + name, "{}"))
    token = secrets.get(_KEY_PREFIX + name)
    return HttpServer(
        name, setting["url"], headers if token is None else {**headers, "Authorization": f"Bearer {token}"}
    )


def _info(server: McpServer, editable: bool, state: Any) -> McpServerResponse:
    return McpServerResponse(
        name=server.name,
        kind="stdio" if isinstance(server, StdioServer) else "http",
        target=" ".join((server.command, *server.args)) if isinstance(server, StdioServer) else server.url,
        command=server.command if isinstance(server, StdioServer) else None,
        args=list(server.args) if isinstance(server, StdioServer) else [],
        editable=editable,
        cwd=server.cwd if isinstance(server, StdioServer) else None,
        env=sorted(server.env) if isinstance(server, StdioServer) else [],
        headers=[] if isinstance(server, StdioServer) else sorted(server.headers),
        can_sign_in=not isinstance(server, StdioServer) and server.uses_oauth,
        signed_in=not isinstance(server, StdioServer) and server.oauth is not None and server.oauth.has_tokens,
        connected=state.connected,
        failure=state.failure,
        stderr=state.stderr or None,
    )
