"""Settings: their precedence, their sections, and errors that name the setting and its source."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from holdfast import config
from holdfast.app.models import provider_configs
from holdfast.app.tool_admin import mcp_servers
from holdfast.cli.app import build
from holdfast.cli.context import CliContext
from holdfast.config import Config, LoadedConfig
from holdfast.core.errors import ConfigError
from holdfast.models.provider_config import ProviderConfig
from holdfast.tools.mcp.server_config import HttpServer, StdioServer


class Load:
    """Loads settings from a data directory, variables and flags."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self.home = directory / "home"
        self._monkeypatch = monkeypatch

    def everything(
        self, text: str = "", flags: dict[str, Any] | None = None, file: Path | None = None, **variables: Any
    ) -> LoadedConfig:
        data = self.home / ".local" / "share" / "holdfast"
        data.mkdir(parents=True, exist_ok=True)
        (data / "holdfast.toml").write_text(text)
        with self._monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            return config.load(flags or {}, home=self.home, file=file)

    def __call__(self, text: str = "", flags: dict[str, Any] | None = None, **variables: Any) -> Config:
        return self.everything(text, flags, **variables).config


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    return Load(tmp_path, monkeypatch)


# ---- sources and their precedence ----


def test_defaults_need_no_configuration(load: Load, tmp_path: Path) -> None:
    """Without any setting the server listens on loopback and stores data in the usual place."""
    found = load()
    assert (found.host, found.port, found.has_data) == ("127.0.0.1", 8484, False)
    assert found.data_dir == tmp_path / "home" / ".local" / "share" / "holdfast"
    assert load(XDG_DATA_HOME="/x").data_dir == Path("/x/holdfast")


def test_flags_override_variables_and_variables_override_the_file(load: Load) -> None:
    """A flag that is None was not given, and an empty variable is not set."""
    text = 'port = 1\nhost = "a"\nlog_level = "info"\nlog_format = "json"\n'
    variables = {"HOLDFAST_PORT": "2", "HOLDFAST_HOST": "b", "HOLDFAST_LOG_FORMAT": ""}
    found = load(text, {"port": 3, "host": None}, **variables)
    assert (found.port, found.host, found.log_level, found.log_format) == (3, "b", "info", "json")


def test_constructing_a_config_reads_no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only `load` reads the environment."""
    monkeypatch.setenv("HOLDFAST_PORT", "1")
    assert Config(data_dir=Path("/x")).port == 8484


def test_a_file_in_the_working_directory_is_ignored(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hostile holdfast.toml in a cloned repository neither starts programs nor redirects requests."""
    (tmp_path / "holdfast.toml").write_text(
        'host = "0.0.0.0"\n[mcp.evil]\ncommand = "evil"\n[tools]\nshell = "allow"\n'
        '[providers.openai]\nbase_url = "https://evil.example/v1"\n'
    )
    monkeypatch.chdir(tmp_path)
    found = load()
    assert (found.host, found.mcp, found.tools, found.providers) == ("127.0.0.1", {}, {}, {})


def test_a_named_file_replaces_that_of_the_data_directory(load: Load, tmp_path: Path) -> None:
    """`--config` and HOLDFAST_CONFIG name a file; a relative data directory in it is relative to the file."""
    named = tmp_path / "named.toml"
    named.write_text('data_dir = "here"\n')
    for found in (load.everything("port = 9", file=named), load.everything("port = 9", HOLDFAST_CONFIG=str(named))):
        assert (found.config.data_dir, found.config.port) == (tmp_path / "here", 8484)
        assert found.config.shell.hide == [str(named)], "commands must not read the keys in it"
    assert load("port = 9").shell.hide == []
    other = tmp_path / "other"
    other.mkdir()
    (other / "holdfast.toml").write_text("port = 7\n")
    assert load("port = 9", HOLDFAST_DATA_DIR=str(other)).port == 7


def test_each_setting_knows_its_source_and_masks_secrets(load: Load) -> None:
    """`config show` lists all settings with flag, variable, file or default; no password or key appears."""
    text = """
    log_level = "info"
    [providers.work]
    api_key = "swordfish"
    headers = { X-Key = "swordfish" }
    models = ["a"]
    [mcp.files]
    command = "serve"
    env = { KEY = "swordfish" }
    args = ["--token", "swordfish", "-v", "--api-key=swordfish", "DB_PASSWORD=swordfish", "Authorization: swordfish"]
    """
    variables: dict[str, Any] = {
        "HOLDFAST_PASSWORD": "swordfish",
        "HOLDFAST_STORE_URL": "postgres://me:swordfish@db/x?a=b",
    }
    loaded = load.everything(text, {"port": 1}, **variables)
    assert "swordfish" not in repr(loaded)
    assert "swordfish" not in str(loaded.settings())
    found = {setting.name: (setting.value, setting.source) for setting in loaded.settings()}
    file = str(loaded.file)
    assert found["port"] == (1, "--port")
    assert found["host"] == ("127.0.0.1", "default")
    assert found["log_level"] == ("info", file)
    assert found["password"] == ("********", "HOLDFAST_PASSWORD")
    assert found["store_url"] == ("postgres://me:********@db/x?a=b", "HOLDFAST_STORE_URL")
    assert found["providers.work.api_key"] == found["mcp.files.env.KEY"] == ("********", file)
    masked = ["--token", "********", "-v", "--api-key=********", "DB_PASSWORD=********", "Authorization:********"]
    assert found["mcp.files.args"] == (masked, file)
    assert found["providers.work.models"] == (["a"], file)
    assert found["providers.work.kind"] == ("compatible", "default")
    assert found["memory.provider"] == ("notes", "default")


# ---- errors ----


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"HOLDFAST_PORT": "http"}, "HOLDFAST_PORT: must be a whole number; found 'http'"),
        ({"HOLDFAST_PORT": "70000"}, "HOLDFAST_PORT: must be less than or equal to 65535"),
        ({"HOLDFAST_AUTO_CONTINUE": "maybe"}, "HOLDFAST_AUTO_CONTINUE: must be true or false; found 'maybe'"),
        ({"HOLDFAST_LOG_LEVEL": "loud"}, "HOLDFAST_LOG_LEVEL: must be 'debug', 'info', 'warning' or 'error'"),
        ({"HOLDFAST_DRAIN": "-1"}, "HOLDFAST_DRAIN: must be greater than or equal to 0"),
        ({"HOLDFAST_HEARTBEAT": "nan"}, "HOLDFAST_HEARTBEAT"),
        ({"HOLDFAST_LEASE_TIME": "0"}, "HOLDFAST_LEASE_TIME: must be greater than or equal to 1"),
        ({"HOLDFAST_CONFIG": "/nowhere.toml"}, "/nowhere.toml: cannot be read: there is no such file"),
        ({"HOLDFAST_STORE_URL": "mysql://me:swordfish@db/x"}, "must start with postgresql:// or postgres://"),
        ({"HOLDFAST_JOURNAL_URL": "redis://cache"}, "HOLDFAST_JOURNAL_URL: needs store_url"),
        (
            {"HOLDFAST_STORE_URL": "postgres://db/x", "HOLDFAST_LEASE_RENEWAL": "20"},
            "HOLDFAST_LEASE_RENEWAL: must be at most half of lease_time (30)",
        ),
    ],
)
def test_a_wrong_variable_is_named(load: Load, variables: dict[str, Any], message: str) -> None:
    """The error says what was found and what was expected, but repeats no secret."""
    with pytest.raises(ConfigError) as caught:
        load(**variables)
    assert message in str(caught.value)
    assert "swordfish" not in str(caught.value) + repr(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prot = 1", ": 'prot' is not a setting; expected one of data_dir, host, port"),
        ("port = true", ", port: must be a number"),
        ("port = ", ": cannot be read: Invalid value"),
        ("host = 5", ", host: must be a string in quotes; found 5"),
        ("providers = 5", ", providers: must be a section: write [providers]"),
        ('[providers]\nwork = "x"', ", [providers] work: must be a section: write [providers.work]"),
        ('[providers.work]\nkind = "opanai"', ", [providers.work] kind: must be 'openai', "),
        ('[providers.work]\nmodel = "a"', ", [providers.work]: 'model' is not a setting; expected one of kind, "),
        ('[providers.work]\nmodels = "a"', ", [providers.work] models: must be a list in brackets; found 'a'"),
        ("[providers.work]\nmodels = [1]", ", [providers.work] models: must be a string in quotes; found 1"),
        ("[providers.work]\nbase_url = 1", ", [providers.work] base_url: must be a string in quotes; found 1"),
        ('[providers.work]\ncontext = "9k"', ", [providers.work] context: must be a whole number; found '9k'"),
        ("[providers.work]\ncontext = true", ", [providers.work] context: must be a number"),
        ("[providers.work]\nheaders = { a = 1 }", ", [providers.work.headers] a: must be a string in quotes"),
        ('[providers.work]\nabilities = ["fly"]', ", [providers.work] abilities: must be 'tools', "),
        ("[mcp.x]\nargs = []", ", [mcp.x]: must have either a command or a url"),
        ('[mcp.x]\ncommand = "a"\nurl = "b"', ", [mcp.x]: must have either a command or a url"),
        ('[mcp.x]\nurl = "b"\nargs = ["c"]', ", [mcp.x]: args cannot be combined with url"),
        ('[mcp.x]\ncommand = "a"\ntrusted = "maybe"', ", [mcp.x] trusted: must be true or false; found 'maybe'"),
        ('[tools]\nshell = "perhaps"', ", [tools] shell: must be 'allow', 'ask' or 'deny'; found 'perhaps'"),
        ("[models]\ndefault = 1", ", [models] default: must be a string in quotes; found 1"),
        ('[models]\nfavourite = "a/b"', ", [models]: 'favourite' is not a setting; expected one of default"),
        ('[memory]\nprovider = "elephant"', ", [memory] provider: must be 'notes', 'openviking' or 'none'"),
        ('[memory]\nextract = "magic"', ", [memory] extract: must be 'model' or 'rules'; found 'magic'"),
        ('[memory]\nprovider = "openviking"', ", [memory]: provider 'openviking' needs a url"),
        ('[memory.openviking]\nport = "x"', ", [memory.openviking]: 'port' is not a setting; expected one of url"),
    ],
)
def test_a_wrong_line_of_the_file_is_named(load: Load, text: str, message: str) -> None:
    """The error names file, section and setting; a misspelled name is an error too."""
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert f"holdfast.toml{message}" in str(caught.value)


# ---- what sections become ----


def providers(load: Load, text: str, keys: dict[str, str] | None = None) -> tuple[ProviderConfig, ...]:
    return provider_configs(load(text), {"WORK_KEY": "from the environment"}, keys or {})


def test_provider_with_all_settings(load: Load) -> None:
    """Every setting of a provider section reaches the provider."""
    text = """
    [providers.work]
    kind = "openai"
    base_url = "https://llm.work/v1"
    api_key_env = "WORK_KEY"
    models = ["a", "b"]
    default = "b"
    context = 9000
    abilities = ["tools", "images"]
    headers = { X-Team = "blue" }
    """
    (found,) = providers(load, text)
    assert found == ProviderConfig(
        name="work",
        kind="openai",
        base_url="https://llm.work/v1",
        api_key="from the environment",
        key_name="WORK_KEY",
        key_source="environment",
        models=("a", "b"),
        default="b",
        context=9000,
        abilities=("tools", "images"),
        headers={"X-Team": "blue"},
    )
    assert "from the environment" not in repr(found)


def test_provider_with_a_base_url_only(load: Load) -> None:
    """A base URL is enough for any server with a compatible API and no key."""
    (found,) = providers(load, '[providers.home]\nbase_url = "http://nas/v1"')
    assert found == ProviderConfig(name="home", base_url="http://nas/v1", key_name="the key in Settings → Models")


@pytest.mark.parametrize(
    ("lines", "typed", "key"),
    [
        ('api_key = "in the file"', {}, "in the file"),
        ('api_key = "in the file"', {"work": "typed"}, "typed"),
        ('api_key_env = "WORK_KEY"', {"work": "typed"}, "typed"),
        ('api_key = "in the file"\napi_key_env = "WORK_KEY"', {}, "in the file"),
        ('api_key_env = "NOT_SET"', {}, None),
        ("", {"other": "typed"}, None),
    ],
)
def test_precedence_of_keys(load: Load, lines: str, typed: dict[str, str], key: str | None) -> None:
    """A key typed into the settings overrides the file, and the file overrides the environment."""
    assert providers(load, f"[providers.work]\n{lines}", typed)[0].api_key == key


def test_typed_key_of_a_known_kind_adds_a_provider(load: Load) -> None:
    """A key is enough for a provider whose address is known; a key with an unknown name adds none."""
    (found,) = providers(load, "", {"openai": "sk-1", "nobody": "sk-2"})
    assert (found.name, found.kind, found.api_key) == ("openai", "openai", "sk-1")


def test_mcp_servers(load: Load) -> None:
    """A command is a trusted local server; a URL is a remote one that is not trusted by default."""
    text = """
    [mcp.files]
    command = "my-server"
    args = ["--stdio"]
    env = { A = "1" }
    cwd = "/srv"
    [mcp.search]
    url = "https://search/mcp"
    headers = { Authorization = "Bearer x" }
    [mcp.known]
    url = "https://known/mcp"
    trusted = true
    """
    assert mcp_servers(load(text)) == (
        StdioServer("files", "my-server", ("--stdio",), {"A": "1"}, "/srv", trusted=True),
        HttpServer("search", "https://search/mcp", {"Authorization": "Bearer x"}, trusted=False),
        HttpServer("known", "https://known/mcp", {}, trusted=True),
    )


def test_tool_rules_default_model_and_memory(load: Load) -> None:
    """Tool rules take names and patterns; the built-in memory is the default."""
    found = load('[tools]\nshell = "deny"\n"github__*" = "ask"\n[models]\ndefault = "work/a"')
    assert (found.tools, found.models.default) == ({"shell": "deny", "github__*": "ask"}, "work/a")
    assert (found.memory.provider, found.memory.extract) == ("notes", "model")
    text = '[memory]\nprovider = "openviking"\nextract = "rules"\n[memory.openviking]\nurl = "http://127.0.0.1:1933"'
    memory = load(text).memory
    assert (memory.provider, memory.extract, memory.openviking.url) == ("openviking", "rules", "http://127.0.0.1:1933")


def test_cluster_settings(load: Load) -> None:
    """Store, journal, node id and lease times come from variables like any other setting."""
    found = load(
        HOLDFAST_STORE_URL="postgresql://holdfast@db/holdfast",
        HOLDFAST_JOURNAL_URL="redis://cache:6379/0",
        HOLDFAST_NODE_ID="node-a",
        HOLDFAST_LEASE_TIME="12",
        HOLDFAST_LEASE_RENEWAL="3",
    )
    assert (found.store_url, found.journal_url) == ("postgresql://holdfast@db/holdfast", "redis://cache:6379/0")
    assert (found.node_id, found.lease_time, found.lease_renewal) == ("node-a", 12.0, 3.0)
    assert found.has_data


def test_config_show_names_units_and_what_is_not_set(tmp_path: Path) -> None:
    """Empty values of every kind read the same, and numbers have their unit."""
    shown = CliRunner().invoke(build(CliContext()), ["config", "show", "--data-dir", str(tmp_path)]).output
    values = {name: value for name, value, _ in (line.split("\t") for line in shown.splitlines() if "\t" in line)}
    assert {values[name] for name in ("cors_origins", "trusted_proxies", "password", "node_id")} == {"(not set)"}
    assert (values["drain"], values["retention_days"], values["max_file_mb"]) == ("10 s", "30 days", "50 MB")


@pytest.mark.parametrize("path", ["holdfast", "//host", "/a b", "/../x", "/x?y", '/"', "https://host/x"])
def test_a_root_path_is_a_path(path: str) -> None:
    """It becomes part of headers and pages."""
    with pytest.raises(ValueError, match="must be a path such as /holdfast"):
        Config(data_dir=Path("x"), root_path=path)
    assert [Config(data_dir=Path("x"), root_path=good).root_path for good in ("/", "/a/b/")] == ["", "/a/b"]
