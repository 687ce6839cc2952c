"""The tables of `holdfast.toml` as the values that adapters want. ConfigError names the table and the line.

[providers.work]                    [mcp.files]                     [tools]
kind = "openai"                     command = "my-mcp-server"       shell = "deny"
base_url = "https://llm.work/v1"    args = ["--stdio"]              github__* = "ask"
api_key_env = "WORK_KEY"            [mcp.search]                    [models]
models = ["a", "b"]                 url = "https://…/mcp"           default = "work/a"
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, get_args

from holdfast.agents.models.port import Ability
from holdfast.agents.models.provider_config import Kind, ProviderConfig
from holdfast.agents.tools.mcp.values import HttpServer, McpServer, StdioServer
from holdfast.agents.tools.port import Rule
from holdfast.config import Config, ConfigError
from holdfast.core.ledger import OFF
from holdfast.core.values import dataclass


@dataclass(frozen=True, slots=True)
class _Table:
    """A table and what of it has been read: what is left over is a mistake."""

    name: str
    values: dict[str, Any]

    def take(self, key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        value = self.values.pop(key, default)
        if value is not default and (not isinstance(value, kind) or isinstance(value, bool) != (kind is bool)):
            raise ConfigError(f"holdfast.toml, [{self.name}]", f"{key}: {value!r} is not what is expected there")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        found = self.take(key, list, [])
        if not all(isinstance(item, str) for item in found):
            raise ConfigError(f"holdfast.toml, [{self.name}]", f"{key} is not a list of texts")
        return tuple(found)

    def pairs(self, key: str) -> dict[str, str]:
        found = self.take(key, dict, {})
        if not all(isinstance(item, str) for item in found.values()):
            raise ConfigError(f"holdfast.toml, [{self.name}]", f"{key} is not a table of texts")
        return dict(found)

    def done(self) -> None:
        if self.values:
            raise ConfigError(f"holdfast.toml, [{self.name}]", f"{next(iter(self.values))!r} is not a setting there")


def _tables(config: Config, name: str) -> list[_Table]:
    found = []
    for key, values in config.more.get(name, {}).items():
        if not isinstance(values, dict):
            raise ConfigError(f"holdfast.toml, [{name}]", f"{key} is not a table; write [{name}.{key}]")
        found.append(_Table(f"{name}.{key}", dict(values)))
    return found


def providers(config: Config, environment: Mapping[str, str], keys: Mapping[str, str]) -> tuple[ProviderConfig, ...]:
    """`keys` are those that were typed into the settings, by provider; one of a kind that is not configured makes it
    one."""
    found = [_provider(table, environment, keys) for table in _tables(config, "providers")]
    named = {provider.name for provider in found}
    typed = [
        ProviderConfig(name=name, kind=name, api_key=key, key_name="the settings")  # type: ignore[arg-type]
        for name, key in keys.items()
        if name not in named and name in get_args(Kind)
    ]
    return (*found, *typed)


def _provider(table: _Table, environment: Mapping[str, str], keys: Mapping[str, str]) -> ProviderConfig:
    name = table.name.partition(".")[2]
    kind = table.take("kind", str, "compatible")
    if kind not in get_args(Kind):
        raise ConfigError(f"holdfast.toml, [{table.name}]", f"kind {kind!r} is none of {', '.join(get_args(Kind))}")
    variable = table.take("api_key_env", str)
    key = keys.get(name) or table.take("api_key", str) or (environment.get(variable) if variable else None)
    table.values.pop("api_key", None)
    provider = ProviderConfig(
        name=name,
        kind=kind,
        base_url=table.take("base_url", str),
        api_key=key or None,
        key_name=variable or "the settings",
        models=table.texts("models"),
        default=table.take("default", str),
        context=table.take("context", int),
        abilities=_abilities(table),
        headers=table.pairs("headers"),
    )
    table.done()
    return provider


def _abilities(table: _Table) -> tuple[Ability, ...] | None:
    if "abilities" not in table.values:
        return None
    found = table.texts("abilities")
    for ability in found:
        if ability not in get_args(Ability):
            known = ", ".join(get_args(Ability))
            raise ConfigError(f"holdfast.toml, [{table.name}]", f"ability {ability!r} is none of {known}")
    return found  # type: ignore[return-value]


def mcp_servers(config: Config) -> tuple[McpServer, ...]:
    return tuple(_mcp_server(table) for table in _tables(config, "mcp"))


def _mcp_server(table: _Table) -> McpServer:
    name, command, url = table.name.partition(".")[2], table.take("command", str), table.take("url", str)
    if (command is None) == (url is None):
        raise ConfigError(f"holdfast.toml, [{table.name}]", "needs either a command or a url")
    server: McpServer
    if command is not None:
        trusted = table.take("trusted", bool, True)
        server = StdioServer(
            name, command, table.texts("args"), table.pairs("env"), table.take("cwd", str), trusted=trusted
        )
    else:
        server = HttpServer(name, url, table.pairs("headers"), table.take("trusted", bool, False))
    table.done()
    return server


def tool_rules(config: Config) -> dict[str, Rule]:
    """By name or pattern."""
    rules = dict(config.more.get("tools", {}))
    for tool, rule in rules.items():
        if rule not in get_args(Rule):
            raise ConfigError("holdfast.toml, [tools]", f"{tool} = {rule!r} is none of {', '.join(get_args(Rule))}")
    return rules


def default_model(config: Config) -> str | None:
    table = _Table("models", dict(config.more.get("models", {})))
    model: str | None = table.take("default", str)
    table.done()
    return model


@dataclass(frozen=True, slots=True)
class Remembering:
    provider: str
    extract: str
    viking_url: str | None
    viking_key: str | None = field(repr=False)


def memory(config: Config, environment: Mapping[str, str]) -> Remembering:
    table = _Table("memory", dict(config.more.get("memory", {})))
    viking = _Table("memory.openviking", dict(table.take("openviking", dict, {})))
    provider, extract = table.take("provider", str, "notes"), table.take("extract", str, "model")
    table.done()
    url, variable = viking.take("url", str), viking.take("api_key_env", str)
    key = viking.take("api_key", str) or (environment.get(variable) if variable else None)
    viking.done()
    for what, value, choices in (
        ("provider", provider, ("notes", "openviking", OFF)),
        ("extract", extract, ("model", "rules")),
    ):
        if value not in choices:
            raise ConfigError("holdfast.toml, [memory]", f"{what} {value!r} is none of {', '.join(choices)}")
    if provider == "openviking" and url is None:
        raise ConfigError("holdfast.toml, [memory.openviking]", "needs a url, such as http://127.0.0.1:1933")
    return Remembering(provider, extract, url, key)
