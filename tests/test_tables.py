"""The tables of `holdfast.toml`: what good ones become, and what is said of bad ones."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.agents.models.provider_config import ProviderConfig
from holdfast.agents.tools.mcp.values import HttpServer, StdioServer
from holdfast.config import Config, ConfigError, load
from holdfast.storage.keys import KeyFile
from holdfast.wiring import tables
from holdfast.wiring.bridge import Bridge
from holdfast.wiring.crew import Office


def config(tmp_path: Path, text: str) -> Config:
    """Read as it is from a person's file."""
    file = tmp_path / "holdfast.toml"
    file.write_text(text)
    return load({"data_dir": tmp_path / "data"}, {}, home=tmp_path, working=tmp_path, file=file)


def providers(tmp_path: Path, text: str, keys: dict[str, str] | None = None) -> tuple[ProviderConfig, ...]:
    return tables.providers(config(tmp_path, text), {"WORK_KEY": "from the environment"}, keys or {})


def test_provider_with_everything(tmp_path: Path) -> None:
    """Every line of a provider's table counts."""
    (found,) = providers(
        tmp_path,
        """
        [providers.work]
        kind = "openai"
        base_url = "https://llm.work/v1"
        api_key_env = "WORK_KEY"
        models = ["a", "b"]
        default = "b"
        context = 9000
        abilities = ["tools", "images"]
        headers = { X-Team = "blue" }
        """,
    )
    assert found == ProviderConfig(
        name="work",
        kind="openai",
        base_url="https://llm.work/v1",
        api_key="from the environment",
        key_name="WORK_KEY",
        models=("a", "b"),
        default="b",
        context=9000,
        abilities=("tools", "images"),
        headers={"X-Team": "blue"},
    )
    assert "from the environment" not in repr(found)


def test_provider_with_next_to_nothing(tmp_path: Path) -> None:
    """A base URL is enough: anything that speaks the usual format, without a key."""
    (found,) = providers(tmp_path, '[providers.home]\nbase_url = "http://nas/v1"')
    assert found == ProviderConfig(name="home", base_url="http://nas/v1", key_name="the settings")


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
def test_where_a_key_comes_from(tmp_path: Path, lines: str, typed: dict[str, str], key: str | None) -> None:
    """What was typed into the settings goes before the file, and that before the environment."""
    assert providers(tmp_path, f"[providers.work]\n{lines}", typed)[0].api_key == key


def test_typed_key_of_a_known_kind_makes_a_provider(tmp_path: Path) -> None:
    """A key is enough for a provider whose address is known; one of an unknown name makes none."""
    (found,) = providers(tmp_path, "", {"openai": "sk-1", "nobody": "sk-2"})
    assert (found.name, found.kind, found.api_key) == ("openai", "openai", "sk-1")


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        ('[providers]\nwork = "x"', "[providers]", "write [providers.work]"),
        ('[providers.work]\nkind = "opanai"', "[providers.work]", "none of openai"),
        ('[providers.work]\nmodel = "a"', "[providers.work]", "'model' is not a setting"),
        ('[providers.work]\nmodels = "a"', "[providers.work]", "models"),
        ("[providers.work]\nmodels = [1]", "[providers.work]", "list of texts"),
        ("[providers.work]\nbase_url = 1", "[providers.work]", "base_url: 1"),
        ('[providers.work]\ncontext = "9k"', "[providers.work]", "context: '9k'"),
        ("[providers.work]\ncontext = true", "[providers.work]", "context: True"),
        ("[providers.work]\nheaders = { a = 1 }", "[providers.work]", "table of texts"),
        ('[providers.work]\nabilities = ["telepathy"]', "[providers.work]", "none of tools"),
    ],
)
def test_bad_provider_is_named(tmp_path: Path, text: str, where: str, words: str) -> None:
    """The message says which table, which line and what is wrong with it."""
    with pytest.raises(ConfigError) as caught:
        providers(tmp_path, text)
    assert where in str(caught.value)
    assert words in str(caught.value)


def test_mcp_servers(tmp_path: Path) -> None:
    """A command is a server on this machine and trusted; a URL is one that is not."""
    found = tables.mcp_servers(
        config(
            tmp_path,
            """
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
            """,
        )
    )
    assert found == (
        StdioServer("files", "my-server", ("--stdio",), {"A": "1"}, "/srv", trusted=True),
        HttpServer("search", "https://search/mcp", {"Authorization": "Bearer x"}, trusted=False),
        HttpServer("known", "https://known/mcp", {}, trusted=True),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[mcp.x]\nargs = []", "either a command or a url"),
        ('[mcp.x]\ncommand = "a"\nurl = "b"', "either a command or a url"),
        ('[mcp.x]\nurl = "b"\nargs = ["c"]', "'args' is not a setting"),
        ('[mcp.x]\ncommand = "a"\ntrusted = "yes"', "trusted"),
        ('[mcp]\nx = "a"', "write [mcp.x]"),
    ],
)
def test_bad_mcp_server_is_named(tmp_path: Path, text: str, words: str) -> None:
    """The message says what a server needs."""
    with pytest.raises(ConfigError) as caught:
        tables.mcp_servers(config(tmp_path, text))
    assert words in str(caught.value)


def test_tool_rules_and_the_default_model(tmp_path: Path) -> None:
    """Names and patterns with one of three rules; a model to begin with."""
    found = config(tmp_path, '[tools]\nshell = "deny"\n"github__*" = "ask"\n[models]\ndefault = "work/a"')
    assert tables.tool_rules(found) == {"shell": "deny", "github__*": "ask"}
    assert tables.default_model(found) == "work/a"
    assert tables.default_model(config(tmp_path, "")) is None


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (tables.tool_rules, '[tools]\nshell = "perhaps"', "shell = 'perhaps' is none of allow, ask, deny"),
        (tables.tool_rules, "[tools]\nshell = []", "is none of"),
        (tables.default_model, "[models]\ndefault = 1", "default: 1"),
        (tables.default_model, '[models]\nfavourite = "a/b"', "'favourite' is not a setting"),
    ],
)
def test_bad_rules_and_defaults_are_named(tmp_path: Path, read: Any, text: str, words: str) -> None:
    """The message quotes the line."""
    with pytest.raises(ConfigError) as caught:
        read(config(tmp_path, text))
    assert words in str(caught.value)


def test_bad_table_stops_the_server_before_it_starts(tmp_path: Path) -> None:
    """A mistake in any table is said at the start and not in the first turn."""
    for text in ('[providers.a]\nkind = "b"', "[mcp.a]", '[tools]\na = "b"', "[models]\ndefault = 1"):
        with pytest.raises(ConfigError):
            Office(config(tmp_path, text), KeyFile(tmp_path), Bridge(), environment={}, home=tmp_path)


def test_memory_by_default_and_with_everything(tmp_path: Path) -> None:
    """Nothing said: the built-in memory, extracting with a model. Every line counts, and a key is not shown."""
    assert tables.memory(config(tmp_path, ""), {}) == tables.Remembering("notes", "model", None, None)
    text = """
    [memory]
    provider = "openviking"
    extract = "rules"
    [memory.openviking]
    url = "http://127.0.0.1:1933"
    api_key_env = "VIKING_KEY"
    """
    found = tables.memory(config(tmp_path, text), {"VIKING_KEY": "secret"})
    assert found == tables.Remembering("openviking", "rules", "http://127.0.0.1:1933", "secret")
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[memory]\nprovider = "elephant"', "provider 'elephant' is none of notes, openviking, none"),
        ('[memory]\nextract = "magic"', "extract 'magic' is none of model, rules"),
        ('[memory]\nprovider = "openviking"', "needs a url"),
        ("[memory]\nprovider = 3", "provider: 3 is not what is expected there"),
        ("[memory]\nsize = 3", "'size' is not a setting there"),
        ('[memory.openviking]\nport = "x"', "'port' is not a setting there"),
    ],
)
def test_memory_tables_that_are_wrong_say_so(tmp_path: Path, text: str, said: str) -> None:
    """A wrong line is named with its table, and what could be there."""
    with pytest.raises(ConfigError, match=said):
        tables.memory(config(tmp_path, text), {})
