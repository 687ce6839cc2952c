"""Settings: flags before variables before the file before the defaults, and errors that name their place."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.config import Config, ConfigError, load


def read(tmp_path: Path, flags: dict[str, Any] | None = None, environ: dict[str, str] | None = None) -> Config:
    return load(flags or {}, environ or {}, home=tmp_path / "home", working=tmp_path)


def test_a_fresh_machine_needs_nothing(tmp_path: Path) -> None:
    """Zero configuration: loopback, the usual port, the usual place for data."""
    config = read(tmp_path)
    assert (config.host, config.port) == ("127.0.0.1", 8484)
    assert config.data_dir == tmp_path / "home" / ".local" / "share" / "holdfast"
    assert read(tmp_path, environ={"XDG_DATA_HOME": "/x"}).data_dir == Path("/x/holdfast")


def test_flags_go_before_variables_and_these_before_the_file(tmp_path: Path) -> None:
    """The nearer to the hand, the stronger."""
    (tmp_path / "holdfast.toml").write_text(
        'port = 1\nhost = "a"\nlog_level = "info"\n[providers.x]\nkind = "openai"\n'
    )
    environ = {"HOLDFAST_PORT": "2", "HOLDFAST_HOST": "b"}
    config = read(tmp_path, {"port": 3, "host": None}, environ)
    assert (config.port, config.host, config.log_level) == (3, "b", "info")
    assert config.more == {"providers": {"x": {"kind": "openai"}}}


def test_an_empty_variable_is_not_set(tmp_path: Path) -> None:
    """As a shell leaves it."""
    assert read(tmp_path, environ={"HOLDFAST_PORT": ""}).port == 8484


def test_the_file_may_lie_in_the_data_directory(tmp_path: Path) -> None:
    """Next to the data that it is about; a path in it is seen from there."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "holdfast.toml").write_text("port = 9\n")
    assert read(tmp_path, {"data_dir": data}).port == 9
    named = tmp_path / "elsewhere.toml"
    named.write_text('data_dir = "here"\n')
    assert read(tmp_path, environ={"HOLDFAST_CONFIG": str(named)}).data_dir == tmp_path / "here"


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"HOLDFAST_PORT": "http"}, "HOLDFAST_PORT: 'http' is not a whole number from 0 to 65535"),
        ({"HOLDFAST_PORT": "70000"}, "HOLDFAST_PORT"),
        ({"HOLDFAST_AUTO_CONTINUE": "perhaps"}, "HOLDFAST_AUTO_CONTINUE: 'perhaps' is neither true nor false"),
        ({"HOLDFAST_LOG_LEVEL": "loud"}, "HOLDFAST_LOG_LEVEL"),
        ({"HOLDFAST_DRAIN": "-1"}, "HOLDFAST_DRAIN"),
        ({"HOLDFAST_HEARTBEAT": "nan"}, "HOLDFAST_HEARTBEAT"),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, environ: dict[str, str], told: str) -> None:
    """With what was found and what was expected."""
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, environ=environ)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("prot = 1", "'prot' is not a setting; there are data_dir, host, port"),
        ("port = true", "port: True is not a whole number"),
        ("port = ", "cannot be read"),
        ("host = 5", "host: 5 is not a text"),
        ("providers = 5", "'providers' is not a setting"),
    ],
)
def test_a_wrong_line_in_the_file_is_named(tmp_path: Path, text: str, told: str) -> None:
    """Also a name that is misspelt: a setting that is silently ignored is worse than none."""
    (tmp_path / "holdfast.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        read(tmp_path)
    assert told in str(caught.value)
    assert "holdfast.toml" in str(caught.value)


def test_a_password_is_in_no_representation(tmp_path: Path) -> None:
    """Logs and traces show configurations."""
    assert "swordfish" not in repr(read(tmp_path, environ={"HOLDFAST_PASSWORD": "swordfish"}))


def test_a_cluster_is_set_up_by_its_addresses(tmp_path: Path) -> None:
    """Where the store and the journal are, the node's name, and how long leases last."""
    environ = {
        "HOLDFAST_STORE_URL": "postgresql://holdfast@db/holdfast",
        "HOLDFAST_JOURNAL_URL": "redis://cache:6379/0",
        "HOLDFAST_NODE_ID": "node-a",
        "HOLDFAST_LEASE_TIME": "12",
        "HOLDFAST_LEASE_RENEWAL": "3",
    }
    found = read(tmp_path, environ=environ)
    assert (found.store_url, found.journal_url) == (
        "postgresql://holdfast@db/holdfast",
        "redis://cache:6379/0",
    )
    assert (found.node_id, found.lease_time, found.lease_renewal) == ("node-a", 12.0, 3.0)
    assert found.has_begun
    assert not read(tmp_path).has_begun


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"HOLDFAST_STORE_URL": "mysql://root:swordfish@db/x"}, "does not begin with postgresql:// or postgres://"),
        ({"HOLDFAST_JOURNAL_URL": "redis://cache:6379/0"}, "needs store_url"),
        (
            {"HOLDFAST_STORE_URL": "postgres://db/x", "HOLDFAST_LEASE_RENEWAL": "20"},
            "20 is more than half of lease_time (30)",
        ),
        ({"HOLDFAST_LEASE_TIME": "0"}, "at least 1"),
    ],
)
def test_a_cluster_that_cannot_work_is_refused(tmp_path: Path, environ: dict[str, str], told: str) -> None:
    """With the reason, and without the password that an address may hold."""
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, environ=environ)
    assert told in str(caught.value)
    assert "swordfish" not in str(caught.value)
    assert "swordfish" not in repr(caught.value)
