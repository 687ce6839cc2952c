"""Settings: one typed model, read from flags, `HOLDFAST_*` variables and `holdfast.toml`, in that order.

[providers.work]                    [mcp.files]                     [tools]
kind = "openai"                     command = "my-mcp-server"       shell = "deny"
base_url = "https://llm.work/v1"    args = ["--stdio"]              "github__*" = "ask"
api_key_env = "WORK_KEY"            [mcp.search]                    [models]
models = ["a", "b"]                 url = "https://…/mcp"           default = "work/a"

Some of these values can also be stored by the settings page. Which of the two counts is decided where they are read:
keys of providers in `models.provider_config.choose_key`, the default model in `models.default_model`, rules of tools in
`app.agents`, agent programs in `app.agent_programs`, MCP servers in `app.tool_admin`.

`holdfast.toml` names programs to start and addresses to send data to, so it is read from the data directory or from
`--config` only: a file in the working directory may have been written by anybody.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from holdfast.core.errors import ConfigError
from holdfast.core.validation_text import validation_text
from holdfast.ports.model import Ability, ProviderKind
from holdfast.ports.tool import Rule

FILE_NAME: Final = "holdfast.toml"
DEFAULT: Final = "default"
LOGIN_IDLE_DAYS: Final = 7.0
PUSH_CONTACT: Final = "https://github.com/holdfast-chat/holdfast"
_SECRETS: Final = frozenset({"password", "store_url", "journal_url", "api_key", "headers", "env", "args"})
"""Settings whose value no error message repeats."""
_IN_FILE: Final = {
    "list_type": "must be a list in brackets",
    "path_type": "must be a path in quotes",
    "string_type": "must be a string in quotes",
}
"""How the file writes what a value must be."""
_FLAGS: Final = {"store_url": "--to", "journal_url": "--journal"}  # Flags that are not named after their setting
_MASK: Final = "********"
_SECRET_NAME: Final = "[^=:]*(?i:authorization|credential|key|passw|secret|token)[^=:]*"


def _reject_bool(value: Any) -> Any:
    """pydantic takes `true` for the number 1."""
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _lowercase(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _split(value: Any) -> Any:
    """Reads a list from an environment variable, in which its items are separated by commas."""
    return [item.strip() for item in value.split(",") if item.strip()] if isinstance(value, str) else value


def _check_gateway(url: str) -> str:
    """It is shown, so it must not contain credentials."""
    if not re.fullmatch(r"https?://[^/\s?#@]+(/[^\s?#]*)?", url):
        raise ValueError("must be an address such as http://127.0.0.1:8642, without user name, password or query")
    if urlsplit(url).port == 0:  # raises ValueError for one that is no number or too large
        raise ValueError("must not have port 0")
    return url.rstrip("/")


def _check_origin(origin: str) -> str:
    if not re.fullmatch(r"https?://[^/\s?#@*]+", origin):
        raise ValueError(f"{origin!r} is not an origin, such as https://app.example.com")
    return origin.lower()


def _check_contact(contact: str) -> str:
    if not re.fullmatch(r"mailto:[^\s@]+@[^\s@]+|https://[^/\s?#@]+(/\S*)?", contact):
        raise ValueError("must be an address such as mailto:admin@example.com or https://example.com")
    return contact


def _check_root_path(path: str) -> str:
    path = path.rstrip("/")
    if path and not re.fullmatch(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*){1,10}", path):
        raise ValueError("must be a path such as /holdfast, of letters, digits and . _ ~ -")
    return path


def _url_scheme(*schemes: str) -> AfterValidator:
    def check(url: str) -> str:
        if url.partition("://")[0] not in schemes:
            raise ValueError(f"must start with {' or '.join(f'{scheme}://' for scheme in schemes)}")
        return url

    return AfterValidator(check)


Proxy = Annotated[str, AfterValidator(lambda text: str(ip_network(text, strict=False)))]
Text = Annotated[str, Field(min_length=1)]
Integer = Annotated[int, BeforeValidator(_reject_bool)]
Number = Annotated[float, BeforeValidator(_reject_bool), Field(lt=1e9)]
Directory = Annotated[Path, AfterValidator(Path.expanduser)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ProviderSection(Section):
    kind: ProviderKind = "compatible"
    base_url: str | None = None
    api_key: SecretStr | None = None
    api_key_env: str | None = None
    models: list[str] = []
    default: str | None = None
    context: Integer | None = None
    abilities: list[Ability] | None = None
    headers: dict[str, SecretStr] = {}


class McpSection(Section):
    command: str | None = None
    args: list[str] = Field(default=[], repr=False)
    env: dict[str, SecretStr] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, SecretStr] = {}
    trusted: bool | None = None
    """Whether to believe what the server says about its tools; by default only a local command is believed."""

    @model_validator(mode="after")
    def _check_transport(self) -> "McpSection":
        if (self.command is None) == (self.url is None):
            raise ValueError("must have either a command or a url")
        given = self.model_fields_set & ({"headers"} if self.url is None else {"args", "env", "cwd"})
        if given:
            raise ValueError(f"{', '.join(sorted(given))} cannot be combined with {'url' if self.url else 'command'}")
        return self


class AgentSection(Section):
    """A program that speaks the Agent Client Protocol, or the address of a gateway of Hermes."""

    command: Text | None = None  # Unset: that of the known program with this name
    args: list[str] | None = Field(default=None, repr=False)
    env: dict[str, SecretStr] = {}  # Besides the harmless part of the server's environment
    cwd: Text | None = None  # Unset: a directory of its own for each session
    answer_within: Number | None = Field(default=None, ge=0)
    """Seconds after which the agent itself denies a question that nobody has answered; 0: never."""
    url: Annotated[str, AfterValidator(_check_gateway)] | None = None
    api_key: SecretStr | None = None
    api_key_env: str | None = None

    @model_validator(mode="after")
    def _check_transport(self) -> "AgentSection":
        others = {"api_key", "api_key_env"} if self.url is None else {"command", "args", "env", "cwd"}
        if given := self.model_fields_set & others:
            needs = "need a url" if self.url is None else "cannot be combined with url"
            raise ValueError(f"{', '.join(sorted(given))} {needs}")
        return self


class ShellSection(Section):
    sandbox: Literal["auto", "off", "required"] = "auto"
    """Whether commands run in bubblewrap: where it works, never, or always (else they are refused)."""
    network: bool = False  # Whether sandboxed commands have network access
    env: list[str] = []  # Names of further environment variables that commands inherit
    hide: list[str] = []  # Further files and directories that sandboxed commands cannot see


class ModelsSection(Section):
    default: str | None = None


class OpenVikingSection(Section):
    url: str | None = None
    api_key: SecretStr | None = None
    api_key_env: str | None = None


class MemorySection(Section):
    provider: Literal["notes", "openviking", "none"] = "notes"
    extract: Literal["model", "rules"] = "model"
    confirm: bool = False
    openviking: OpenVikingSection = OpenVikingSection()

    @model_validator(mode="after")
    def _check_openviking(self) -> "MemorySection":
        if self.provider == "openviking" and self.openviking.url is None:
            raise ValueError("provider 'openviking' needs a url in [memory.openviking], such as http://127.0.0.1:1933")
        return self


class Config(Section):
    """All settings. Constructing it reads no variable and no file; `load` does."""

    data_dir: Directory
    host: Text = "127.0.0.1"
    port: Integer = Field(default=8484, ge=0, le=65535)
    root_path: Annotated[str, Field(max_length=200), AfterValidator(_check_root_path)] = ""
    """The path below which a reverse proxy publishes the server, such as /holdfast."""
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lowercase)] = "warning"
    log_format: Annotated[Literal["text", "json"], BeforeValidator(_lowercase)] = "text"
    retention_days: Number = Field(default=30.0, ge=0)
    """How long the events of finished runs are kept; 0 keeps them forever. Messages are always kept."""
    auto_continue: bool = False  # Whether interrupted runs continue by themselves after a restart
    drain: Number = Field(default=10.0, ge=0)  # Seconds that open runs get to finish when the server stops
    agent_directories: Annotated[list[Directory], BeforeValidator(_split)] = [Path("~")]
    """Directories below which users may choose the one that an agent program works in; empty: they may not choose."""
    titles: Literal["model", "words", "off"] = "model"
    """How a new chat gets its title: the first words of the message, which one that the model writes after the first
    answer replaces; only the words; or not at all."""
    max_runs: Integer = Field(default=2000, ge=1, le=100_000)
    max_file_mb: Integer = Field(default=50, ge=1, le=10_000)
    heartbeat: Number = Field(default=15.0, ge=0.1)
    write_deadline: Number = Field(default=30.0, ge=0.1)
    """Seconds after which a client that does not read is disconnected. It can resume without loss."""
    fetch_urls: bool = False  # Whether images and files that a call of /v1 names by URL are fetched
    cors_origins: Annotated[list[Annotated[str, AfterValidator(_check_origin)]], BeforeValidator(_split)] = []
    """Origins whose pages may call the APIs below /v1. With a password they need a token."""
    push_contact: Annotated[str, Field(max_length=200), AfterValidator(_check_contact)] = PUSH_CONTACT
    """Whom a push service turns to about this server's notifications."""
    push_origins: Annotated[list[Annotated[str, AfterValidator(_check_origin)]], BeforeValidator(_split)] = []
    """Push services that need not be on the public internet or use HTTPS; others must."""
    password: SecretStr | None = Field(default=None, min_length=1)
    """Takes precedence over the password that `holdfast password` stored."""
    require_password: bool = False
    """Whether to create a password at the first start, also on loopback, where it is optional. For containers, in which
    the address of a connection does not tell whether it comes from this machine."""
    login_idle_days: Number = Field(default=LOGIN_IDLE_DAYS, gt=0.001)
    """Days without use after which a browser must log in again."""
    trusted_proxies: Annotated[tuple[Proxy, ...], BeforeValidator(_split)] = ()
    """Addresses or networks of reverse proxies whose `X-Forwarded-For` header is believed."""
    store_url: Annotated[str, _url_scheme("postgresql", "postgres")] | None = Field(default=None, repr=False)
    """PostgreSQL, shared with other nodes. Unset, all data is in the data directory, used by this process alone."""
    journal_url: Annotated[str, _url_scheme("postgresql", "postgres", "redis", "rediss", "unix")] | None = Field(
        default=None, repr=False
    )
    """Another PostgreSQL, or Redis, for the journal. Unset, the journal is in the store's PostgreSQL."""
    node_id: Text | None = None
    """This node's unique name, the same after a restart. Unset, a generated name is kept in the data directory."""
    lease_time: Number = Field(default=30.0, ge=1)
    """Cluster: seconds without a sign of life after which other nodes take over a node's runs."""
    lease_renewal: Annotated[Number, Field(ge=0.1)] | None = None
    """Seconds between two renewals; a third of `lease_time` if unset."""

    providers: dict[str, ProviderSection] = {}
    mcp: dict[str, McpSection] = {}
    agents: dict[Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,40}$")], AgentSection] = {}
    tools: dict[str, Rule] = {}  # Approval rules by tool name or pattern
    shell: ShellSection = ShellSection()
    memory: MemorySection = MemorySection()
    models: ModelsSection = ModelsSection()

    @field_validator("agents")
    @classmethod
    def _check_agents(cls, agents: dict[str, AgentSection]) -> dict[str, AgentSection]:
        if taken := sorted(agents.keys() & {"chat", "direct"}):
            raise ValueError(f"{taken[0]!r} is the name of a built-in agent; choose another name")
        return agents

    @field_validator("journal_url")
    @classmethod
    def _check_journal_url(cls, url: str | None, info: ValidationInfo) -> str | None:
        if url is not None and info.data.get("store_url", "") is None:
            raise ValueError("needs store_url: only nodes that share a store can share a journal")
        return url

    @field_validator("lease_renewal")
    @classmethod
    def _check_lease_renewal(cls, renewal: float | None, info: ValidationInfo) -> float | None:
        lease_time = info.data.get("lease_time")
        if renewal is not None and lease_time is not None and renewal * 2 > lease_time:
            raise ValueError(f"must be at most half of lease_time ({lease_time:g}), to survive one late renewal")
        return renewal

    @property
    def has_data(self) -> bool:
        """Whether there may be data already, judged without opening anything."""
        return self.store_url is not None or (self.data_dir / "holdfast.db").exists()


SECTIONS: Final = ("providers", "mcp", "agents", "tools", "shell", "memory", "models")


class Setting(NamedTuple):
    """One value as `holdfast config show` prints it, with secrets masked."""

    name: str
    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    config: Config
    file: Path  # The configuration file that was read, or would have been if it existed
    sources: Mapping[str, str]
    """By setting: the flag, variable or file that its value came from. Defaults are left out."""

    def settings(self) -> list[Setting]:
        return [
            Setting(
                name,
                _masked_args(value) if name.endswith(".args") else _masked(value),
                self.sources.get(name.partition(".")[0], DEFAULT) if is_set else DEFAULT,
            )
            for name, value, is_set in _flatten(self.config)
        ]


def load(flags: Mapping[str, Any], *, home: Path, file: Path | None = None) -> LoadedConfig:
    """Merges `flags` that are not None, variables, the file and the defaults. Raises ConfigError for the first
    setting that is wrong."""
    given = {name: value for name, value in flags.items() if value is not None}
    variables = {
        name: value
        for name in Config.model_fields
        if name not in SECTIONS and (value := os.environ.get(f"HOLDFAST_{name.upper()}"))
    }
    default_data_dir = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "holdfast"
    data_dir = Path(given.get("data_dir") or variables.get("data_dir") or default_data_dir).expanduser()
    named = file or (Path(os.environ["HOLDFAST_CONFIG"]) if os.environ.get("HOLDFAST_CONFIG") else None)
    path = named or data_dir / FILE_NAME
    written = _read_file(path) if named is not None or path.is_file() else {}
    sources = {
        **dict.fromkeys(written, str(path)),
        **{name: f"HOLDFAST_{name.upper()}" for name in variables},
        **{name: _FLAGS.get(name, f"--{name.replace('_', '-')}") for name in given},
    }
    try:
        config = Config(**{"data_dir": default_data_dir, **written, **variables, **given})
    except ValidationError as error:
        raise _config_error(error.errors()[0], sources) from None
    if named is not None:  # the data directory's own file is hidden with it
        hide = [*config.shell.hide, str(path.absolute())]
        config = config.model_copy(update={"shell": config.shell.model_copy(update={"hide": hide})})
    return LoadedConfig(config, path, sources)


def _read_file(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file():
            raise FileNotFoundError("there is no such file")
        values = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(str(path), f"cannot be read: {error}") from None
    if isinstance(values.get("data_dir"), str):
        values["data_dir"] = path.parent / Path(values["data_dir"]).expanduser()
    return values


def _config_error(error: ErrorDetails, sources: Mapping[str, str]) -> ConfigError:
    """Names the setting by its source, says what was expected, and repeats the value unless it may be a secret."""
    path = [str(step) for step in error["loc"] if isinstance(step, str)]
    source, kind, value = sources.get(path[0], path[0]), error["type"], error["input"]
    if kind == "extra_forbidden":
        *section, name = path
        problem = f"{name!r} is not a setting; expected one of {', '.join(_setting_names(section))}"
        return ConfigError(f"{source}, [{'.'.join(section)}]" if section else source, problem)
    problem = _IN_FILE.get(kind) or validation_text(error)
    if kind in ("model_type", "dict_type"):
        problem = f"must be a section: write [{'.'.join(path)}]"
    elif kind != "value_error" and _SECRETS.isdisjoint(path):
        problem += f"; found {str(value).lower() if isinstance(value, bool) else repr(value)}"
    return ConfigError(_where(path, source, is_section=isinstance(value, dict)), problem)


def _where(path: list[str], source: str, *, is_section: bool) -> str:
    *section, name = path
    if is_section:
        return f"{source}, [{'.'.join(path)}]"
    if section:
        return f"{source}, [{'.'.join(section)}] {name}"
    return source if source == name or source.startswith(("--", "HOLDFAST_")) else f"{source}, {name}"


def _setting_names(section: list[str]) -> list[str]:
    """What can be set in a section of the file, or outside all sections."""
    found: Any = Config
    for name in section:
        found = get_args(found)[1] if get_origin(found) is dict else found.model_fields[name].annotation
    return [f"[{name}]" if not section and name in SECTIONS else name for name in found.model_fields]


def _flatten(model: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any, bool]]:
    """Each value with its dotted name and whether it was set. Unset optional values of sections are left out."""
    for name in type(model).model_fields:
        value, is_set = getattr(model, name), name in model.model_fields_set
        members = value.items() if isinstance(value, dict) else [("", value)]
        for key, member in members:
            path = prefix + name + (f".{key}" if key else "")
            if isinstance(member, BaseModel):
                yield from _flatten(member, f"{path}.")
            elif is_set or not prefix or member not in (None, []):
                yield path, member, is_set


def _masked(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return _MASK
    if isinstance(value, str):
        return re.sub(r"(://[^/@:]*:)[^/@]*(@)|([?&]password=)[^&]*", r"\1\3********\2", value)
    if isinstance(value, list):
        return [str(item) if isinstance(item, Path) else item for item in value]
    return str(value) if isinstance(value, Path) else value


def _masked_args(args: list[str]) -> list[str]:
    """Masks what the name before it marks as a secret: `--token X`, `--token=X`, `API_KEY=X`, `Authorization: X`."""
    return [
        _MASK
        if re.fullmatch(f"-{_SECRET_NAME}", previous)
        else re.sub(f"^({_SECRET_NAME}[=:]).+", rf"\1{_MASK}", _masked(arg))
        for previous, arg in zip(["", *args], args, strict=False)
    ]
