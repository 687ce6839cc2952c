"""What can be set from outside: flags, then `HOLDFAST_*` variables, then `holdfast.toml`, then these defaults."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Final, Literal

from holdfast.core.errors import HoldfastError
from holdfast.core.values import dataclass


@dataclass(eq=False)
class ConfigError(HoldfastError):
    code = "config"
    where: str
    problem: str

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Config:
    data_dir: Path
    host: str = "127.0.0.1"
    port: int = 8484
    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    log_format: Literal["text", "json"] = "text"
    retention_days: float = 30.0
    """How long the events of finished runs are kept; 0 for ever. Messages are always kept."""
    auto_continue: bool = False
    """Take up interrupted runs by themselves after a restart."""
    drain: float = 10.0
    """Seconds for which runs may go on by themselves when the server is told to stop."""
    max_runs: int = 2000
    max_file_mb: int = 50
    heartbeat: float = 15.0
    write_deadline: float = 30.0
    """Seconds after which a client that does not read is dropped. It loses nothing."""
    password: str | None = field(default=None, repr=False)
    """Set from outside, it goes before the one that `holdfast password` stored."""
    store_url: str | None = field(default=None, repr=False)
    """PostgreSQL, shared with other nodes. Without one everything is in the data directory, for this process alone."""
    journal_url: str | None = field(default=None, repr=False)
    """Where the journal is, if not in the store's PostgreSQL: another one, or Redis."""
    node_id: str | None = None
    """The name of this node among the others: the same after a restart, and nobody else's. Without one the data
    directory remembers one."""
    lease_time: float = 30.0
    """Several nodes: seconds after which the runs of a node that says nothing are taken over."""
    lease_renewal: float | None = None
    """Seconds between two renewals; a third of the lease unless it is set."""
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Tables of `holdfast.toml`: providers, MCP servers …"""

    @property
    def has_begun(self) -> bool:
        """Whether there may be data already, as far as that can be told without opening anything."""
        return self.store_url is not None or (self.data_dir / "holdfast.db").exists()


def load(
    flags: Mapping[str, Any], environ: Mapping[str, str], *, home: Path, working: Path, file: Path | None = None
) -> Config:
    """`flags` that are None were not given. ConfigError names what is wrong and where."""
    named = file or (Path(environ["HOLDFAST_CONFIG"]) if environ.get("HOLDFAST_CONFIG") else None)
    outside = _from_environ(environ)
    given = {name: value for name, value in flags.items() if value is not None}
    early = {**outside, **given}
    data_dir = early.get("data_dir") or default_data_dir(environ, home)
    path = named or next((p for p in (working / "holdfast.toml", data_dir / "holdfast.toml") if p.is_file()), None)
    written = {} if path is None else _from_file(path)
    values = {"data_dir": default_data_dir(environ, home), **written, **early}
    return _whole_config(Config(**values))


def _whole_config(config: Config) -> Config:
    if config.journal_url is not None and config.store_url is None:
        raise ConfigError("journal_url", "needs store_url: a journal elsewhere is for several nodes with one store")
    renewal = config.lease_renewal
    if renewal is not None and renewal * 2 > config.lease_time:
        limit = f"half of lease_time ({config.lease_time:g})"
        raise ConfigError("lease_renewal", f"{renewal:g} is more than {limit}: a single late renewal would lose runs")
    return config


def default_data_dir(environ: Mapping[str, str], home: Path) -> Path:
    base = environ.get("XDG_DATA_HOME")
    return (Path(base) if base else home / ".local" / "share") / "holdfast"


def _from_environ(environ: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, read in _READ.items():
        variable = f"HOLDFAST_{name.upper()}"
        text = environ.get(variable)
        if text:  # an empty variable is one that is not set
            found[name] = _checked(variable, read, text)
    return found


def _from_file(path: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(str(path), f"cannot be read: {error}") from None
    found: dict[str, Any] = {"more": {}}
    for name, value in table.items():
        if isinstance(value, dict) and name in TABLES:
            found["more"][name] = value
        elif name in _READ:
            found[name] = _checked(f"{path}: {name}", _READ[name], value)
        else:
            known = ", ".join([*_READ, *(f"[{table}]" for table in TABLES)])
            raise ConfigError(str(path), f"{name!r} is not a setting; there are {known}")
    if "data_dir" in found:
        found["data_dir"] = path.parent / found["data_dir"]
    return found


def _checked(where: str, read: Callable[[Any], Any], value: Any) -> Any:
    try:
        return read(value)
    except (ValueError, TypeError) as error:
        shown = "the value" if any(where.lower().endswith(name) for name in _SECRET) else repr(value)
        raise ConfigError(where, f"{shown} {error}") from None


# ---- readers: from a variable's text or a file's value; ValueError says what was expected ----


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        try:
            number = int(value) if isinstance(value, str | int) and not isinstance(value, bool) else None
        except ValueError:
            number = None
        if number is None or not low <= number <= high:
            raise ValueError(f"is not a whole number from {low} to {high}")
        return number

    return read


def _seconds(low: float) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        try:
            number = float(value) if not isinstance(value, bool) else -1.0
        except (TypeError, ValueError):
            number = -1.0
        if not low <= number < 1e9:
            raise ValueError(f"is not a number of at least {low:g}")
        return number

    return read


def _one_of(*choices: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if str(value).lower() not in choices:
            raise ValueError(f"is none of {', '.join(choices)}")
        return str(value).lower()

    return read


def _switch(value: Any) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if isinstance(value, bool):
        return value
    if str(value).lower() not in words:
        raise ValueError("is neither true nor false")
    return words[str(value).lower()]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("is not a text")
    return value


def _url(*schemes: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not isinstance(value, str) or value.partition("://")[0] not in schemes:
            # The value may hold a password: it is not repeated.
            raise ValueError(f"does not begin with {' or '.join(f'{scheme}://' for scheme in schemes)}")
        return value

    return read


def _path(value: Any) -> Path:
    return Path(_text(value)).expanduser()


_READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "data_dir": _path,
    "host": _text,
    "port": _whole(0, 65535),
    "log_level": _one_of("debug", "info", "warning", "error"),
    "log_format": _one_of("text", "json"),
    "retention_days": _seconds(0.0),
    "auto_continue": _switch,
    "drain": _seconds(0.0),
    "max_runs": _whole(1, 100_000),
    "max_file_mb": _whole(1, 10_000),
    "heartbeat": _seconds(0.1),
    "write_deadline": _seconds(0.1),
    "password": _text,
    "store_url": _url("postgresql", "postgres"),
    "journal_url": _url("postgresql", "postgres", "redis", "rediss", "unix"),
    "node_id": _text,
    "lease_time": _seconds(1.0),
    "lease_renewal": _seconds(0.1),
}
_SECRET: Final = frozenset({"password", "store_url", "journal_url"})
TABLES: Final = ("providers", "mcp", "tools", "memory", "models")
assert set(_READ) == {item.name for item in fields(Config)} - {"more"}
