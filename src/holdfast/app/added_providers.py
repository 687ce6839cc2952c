"""Model servers that were added on a page: address and key together in the keyring, so that a key is only ever sent to
the address it was entered for. Configured ones: `models.provider_config`."""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain, count
from typing import Any, Final

from holdfast.core.errors import InvalidInputError, QuotaExceededError
from holdfast.models.discovery import NO_MODELS, ProbeResult
from holdfast.models.provider_config import STORED_KEY, ProviderConfig, base_url, title
from holdfast.models.server_address import candidates, read_address
from holdfast.ports.keyring import Keyring, KeyringStore
from holdfast.ports.model import Ability, ProviderCheck

PREFIX: Final = "provider:"  # Before the server's name, in the keyring
_MAX_ADDED: Final = 20
_SEEING: Final[tuple[Ability, ...]] = ("tools", "images")
_SHOWN: Final = 200  # Names of models that a check returns
_ADVICE: Final[Mapping[str, str]] = {
    "ollama": "Download one with “ollama pull llama3.2”",
    "lmstudio": "Load one in LM Studio",
}


def read_added(keys: Mapping[str, str]) -> Iterator[ProviderConfig]:
    for name, text in keys.items():
        if name.startswith(PREFIX):
            stored: Any = json.loads(text)
            key = stored.get("key")
            yield ProviderConfig(
                name=name.removeprefix(PREFIX),
                kind=stored["kind"],
                base_url=stored["base_url"],
                api_key=key,
                key_name=STORED_KEY,
                key_source=None if key is None else "settings",
                abilities=_SEEING if stored.get("images") else None,
                added=True,
            )


def write_added(config: ProviderConfig, key: str | None) -> str:
    """The entry of the keyring."""
    images = {"images": True} if sends_images(config) else {}
    shown = {"kind": config.kind, "base_url": base_url(config), **images}
    return json.dumps(shown if key is None else {**shown, "key": key})


def with_images(config: ProviderConfig, images: bool) -> ProviderConfig:
    """With `images`, its models are sent images even if the server does not say that they can see them."""
    return replace(config, abilities=_SEEING if images else None)


def sends_images(config: ProviderConfig) -> bool:
    return "images" in (config.abilities or ())


def possible_servers(text: str, key: str | None, keys: Mapping[str, str]) -> Sequence[ProviderConfig]:
    """What a server at the address that a person entered may be. Raises InvalidInputError and QuotaExceededError."""
    url = read_address(text)
    if url is None or url.user is not None:
        raise InvalidInputError(
            "base_url",
            "must be the address of a server, such as http://192.168.1.20:11434 or https://llm.example.com/v1",
        )
    found = candidates(url, key)
    added = {base_url(config) for config in read_added(keys)}
    if added.isdisjoint(map(base_url, found)) and len(added) >= _MAX_ADDED:
        raise QuotaExceededError("model servers", _MAX_ADDED, "Remove one that is no longer used.")
    return found


def add_server(keys: KeyringStore, config: ProviderConfig, used: Set[str]) -> ProviderConfig:
    """Stores a server with its key, and returns it with its name: the one it has if it was added before, else one that
    no other server has. `used` are the names of providers that were not added. Blocks."""
    named = config

    def change(ring: Keyring) -> Keyring:
        nonlocal named
        added = {base_url(each): each.name for each in read_added(ring.provider_keys)}
        name = added.get(base_url(config))
        if name is None or name in used:
            taken = used | set(added.values())
            names = chain((config.name,), (f"{config.name}-{number}" for number in count(2)))
            name = next(name for name in names if name not in taken)
        named = replace(config, name=name)
        entry = {PREFIX + name: write_added(config, config.api_key)}
        return replace(ring, provider_keys={**ring.provider_keys, **entry})

    keys.change(change)
    return named


def describe_check(config: ProviderConfig, result: ProbeResult) -> ProviderCheck:
    """What people read about it. A server that does not answer may have another address; a provider may be down."""
    names = tuple(model.name for model in result.models[:_SHOWN])
    reason, address, error = result.reason, base_url(config), result.error
    if error == NO_MODELS:
        advice = _ADVICE.get(config.kind, "Add one there")
        reason = f"{title(config)} is running, but it has no models. {advice}, then try again."
    elif error is not None and error.source == "connection":
        reason = f"No server answers at {address} ({error.detail}). Check the address, and that the server is running."
    elif error is not None and error.code == "timeout":
        reason = f"The server at {address} did not answer in time. Check the address, then try again."
    elif error is not None and error.code == "auth" and config.api_key is None:
        reason = f"The server at {address} needs an API key."
    elif error is not None and error.code in ("not-found", "protocol", "bad-request"):
        reason = f"There is no list of models at {address}/models. Check the address; it usually ends in /v1."
    return ProviderCheck(config.name, title(config), address, names, reason)
