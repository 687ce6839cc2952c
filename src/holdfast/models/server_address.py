"""Reads addresses of model servers that people type or that variables hold, such as `OLLAMA_HOST`: completes the scheme
and the port, and guesses the kind of server. Which address of a provider counts: `models.provider_config`."""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Final

from yarl import URL

from holdfast.core.loopback import is_loopback
from holdfast.models.discovery import LOCAL_PORTS
from holdfast.models.provider_config import PRESETS, ProviderConfig, from_environment, name_from_address
from holdfast.ports.model import ProviderKind

OLLAMA_VARIABLES: Final = ("OLLAMA_BASE_URL", "OLLAMA_HOST")  # The first that is set counts
_OLLAMA_PORT: Final = 11434
_KINDS: Final[Mapping[int, ProviderKind]] = {_OLLAMA_PORT: "ollama", 1234: "lmstudio"}
"""Servers that say more about their models than the common format does, by their port."""
_ENDPOINT: Final = re.compile(r"/(chat/completions|completions|models|responses|api/tags|api)/*$")
_PRIVATE_SUFFIXES: Final = (".local", ".lan", ".internal")
_ANY_ADDRESS: Final = ("0.0.0.0", "::")


def read_address(text: str) -> URL | None:
    """The address of a server without a trailing slash or the path of one of its endpoints; None if it is not one.
    Without a scheme it is `https`, or `http` for a server nearby, which seldom has a certificate."""
    text = text.strip().strip("'\"")
    if " " in text:
        return None
    has_scheme = "://" in text
    if not has_scheme:
        text = f"https://{text}"
    try:
        url = URL(_ENDPOINT.sub("", text.rstrip("/")).rstrip("/"))
        if url.scheme not in ("http", "https") or not url.host or url.port is None or url.query_string or url.fragment:
            return None
    except ValueError:
        return None
    if not has_scheme and _is_nearby(url):
        url = url.with_scheme("http")
    return url.with_host("127.0.0.1") if url.host in _ANY_ADDRESS else url


def _is_nearby(url: URL) -> bool:
    """Whether it is an address of this machine or a private network, or has the port of a local model server."""
    host = (url.host or "").rstrip(".")
    if is_loopback(host) or url.explicit_port in LOCAL_PORTS.values():
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith(_PRIVATE_SUFFIXES)


def providers_of_environment(environment: Mapping[str, str]) -> tuple[ProviderConfig, ...]:
    """The providers that variables name: by a key, or by an address."""
    ollama = ollama_from_environment(environment)
    return (*from_environment(environment), *(() if ollama is None else (ollama,)))


def ollama_from_environment(environment: Mapping[str, str]) -> ProviderConfig | None:
    """Ollama where its own variable or Open WebUI's says it is. On this machine it is one that may not be running;
    elsewhere it is one that the owner wants."""
    for variable in OLLAMA_VARIABLES:
        text = environment.get(variable, "").strip().strip("'\"")
        has_scheme = "://" in text
        url = read_address(text if has_scheme else f"http://{text}") if text else None  # as Ollama reads it
        if url is None:
            continue
        if not has_scheme and url.explicit_port is None:
            url = url.with_port(_OLLAMA_PORT)
        address = str(url) if url.path.endswith("/v1") else f"{str(url).rstrip('/')}/v1"
        return ProviderConfig(name="ollama", kind="ollama", base_url=address, discovered=is_loopback(url.host or ""))
    return None


def candidates(url: URL, key: str | None) -> Sequence[ProviderConfig]:
    """What a server at this address may be, most likely first. Without a path, most have their API below `/v1`."""
    bare = url.path in ("", "/")
    kind = _KINDS.get(url.port or 0, "compatible") if bare or url.path == "/v1" else "compatible"
    address = str(url).rstrip("/")
    paths = ("/v1", "") if bare else ("",)
    return [
        ProviderConfig(
            name=server_name(url, kind),
            kind=kind,
            base_url=address + path,
            api_key=key,
            key_name="the key",
            key_source=None if key is None else "settings",
        )
        for path in paths
    ]


def server_name(url: URL, kind: ProviderKind) -> str:
    """A short name for the server at this address: the ids of its models start with it."""
    if kind != "compatible" and is_loopback(url.host or ""):
        return kind
    usual = {"http": 80, "https": 443}[url.scheme]
    host = url.host or ""
    return not_reserved(name_from_address(host if url.port == usual else f"{host}:{url.port}"))


def not_reserved(name: str) -> str:
    """The name of a server, changed if it is that of a known provider."""
    return f"{name}-server" if name in PRESETS or name in ("local", "demo", "") else name
