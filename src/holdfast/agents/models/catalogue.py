"""All models that can be had, from wherever they come: configured providers, keys in the environment, servers on this
machine, the local model, the demo."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

import anyio

from holdfast.agents.environment import without_secrets
from holdfast.agents.models import local_wire, weights
from holdfast.agents.models.demo import DEMO, DemoModel
from holdfast.agents.models.dialects import DIALECTS, GENERIC
from holdfast.agents.models.endpoint import Endpoint, Patience
from holdfast.agents.models.http import Http
from holdfast.agents.models.knowledge import Knowledge
from holdfast.agents.models.local import LOCAL_ID, LocalModel, local_info
from holdfast.agents.models.local_process import LocalSettings
from holdfast.agents.models.openai import OpenAIModel
from holdfast.agents.models.port import Model, ModelFailed, ModelInfo
from holdfast.agents.models.probe import who
from holdfast.agents.models.provider_config import (
    PRESETS,
    Kind,
    ProviderConfig,
    base_url,
    from_environment,
    merged,
    on_this_machine,
)
from holdfast.agents.models.providers import KINDS, ProviderModel, Providers, settings_of
from holdfast.agents.models.retry import RetryPolicy
from holdfast.core.values import dataclass
from holdfast.ports import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueSettings:
    providers: tuple[ProviderConfig, ...] = ()
    """Configured by a person; they come before those of the environment."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    ports: Mapping[Kind, int] | None = None
    """Where servers on this machine may listen; None: at their usual ports."""
    weights_directory: Path | None = None
    fresh: float = 60.0
    """Seconds for which a list is not asked for again; a provider that was down is asked again after a tenth."""
    here: float = 0.5
    elsewhere: float = 2.0
    """Seconds that a provider has for its list: on this machine, and anywhere else."""
    threads: int = field(default_factory=lambda: max(1, (os.cpu_count() or 2) - 1))
    """Of the local model; a core is left for everything else."""
    patience: Patience = field(default_factory=Patience)
    retry: RetryPolicy = field(default_factory=RetryPolicy)


class Catalogue:
    """For one event loop, as `async with Catalogue(…) as catalogue`. Leaving closes connections and ends the local
    model's process."""

    def __init__(
        self,
        settings: CatalogueSettings,
        clock: Clock,
        *,
        monotonic: Callable[[], float] = anyio.current_time,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._providers: tuple[ProviderConfig, ...] = ()
        self._by_name: dict[str, ProviderConfig] = {}
        self._http = Http(settings.environment)
        self._libraries = Providers(settings.patience, settings.retry)
        self._known = Knowledge(
            self._http, monotonic, fresh=settings.fresh, here=settings.here, elsewhere=settings.elsewhere
        )
        self._local: LocalModel | None = None
        self.configure(settings.providers)

    def configure(self, providers: Sequence[ProviderConfig]) -> None:
        """Take these instead of those that were configured; what was learnt of a provider that changed is forgotten."""
        settings, before = self._settings, self._by_name
        self._providers = merged(
            tuple(providers), from_environment(settings.environment), on_this_machine(settings.ports)
        )
        self._by_name = {config.name: config for config in self._providers}
        for name, config in self._by_name.items():
            if name in before and before[name] != config:
                self._known.forget(name)

    async def __aenter__(self) -> "Catalogue":
        await self._known.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._known.__aexit__(kind, error, trace)
        finally:
            with anyio.CancelScope(shield=True):
                if self._local is not None:
                    await self._local.aclose()
                await self._libraries.aclose()
                await self._http.aclose()

    def providers(self) -> Sequence[tuple[str, bool]]:
        """Those that are configured, and the kinds that a key alone would add; and whether there is a key."""
        names: dict[str, bool] = {kind: False for kind, preset in PRESETS.items() if preset.keys}
        names |= {config.name: bool(config.api_key) for config in self._providers if not config.found}
        return sorted(names.items())

    async def list(self) -> Sequence[ModelInfo]:
        """All models, those that are down among them with the reason. Waits for a provider only if nothing is known of
        it yet; what has grown old is shown, and asked for again behind this call's back."""
        await self._known.refresh(self._providers)
        infos = [info for config in self._providers for info in self._known.infos(config)]
        return [*infos, self._local_info(), DEMO]

    async def default(self) -> str:
        """The id of the model to begin with. A configured provider stays the choice while it is down: answering with
        another model without a word would be worse than failing."""
        await self._known.refresh(self._providers)
        for config in self._providers:
            name = self._known.default_name(config)
            if name is not None:
                return f"{config.name}/{name}"
        return LOCAL_ID if self._local_info().available else DEMO.id

    def get(self, model_id: str) -> Model:
        """The model, without asking anybody. ModelFailed where the id names nothing that could answer."""
        if model_id == DEMO.id:
            return DemoModel()
        if model_id == LOCAL_ID:
            return self._get_local()
        provider, _, name = model_id.partition("/")
        config = self._by_name.get(provider)
        if config is None or not name:
            config, name = self._whose(model_id), model_id
        if config is None:
            raise self._unknown(model_id, provider)
        if config.kind in KINDS:
            return self._libraries.model(self._known.info(config, name), config, name)
        return OpenAIModel(self._known.info(config, name), self._endpoint(config, name), self._http, self._clock)

    async def knows(self, model_id: str) -> frozenset[str]:
        """The settings that reach this model, and `tools`, `images` and `documents` if it can be given any. ModelFailed
        as `get`."""
        try:
            model = self.get(model_id)
        except ModelFailed:  # named without its provider, of whom nothing may be known yet
            await self._known.refresh(self._providers)
            model = self.get(model_id)
        reads = {"images", "documents"} & model.info.abilities
        match model:
            case OpenAIModel():
                return model.endpoint.dialect.settings | {"tools", *reads}
            case ProviderModel():
                return settings_of(model.config.kind) | {"tools", *reads}
            case LocalModel():
                return local_wire.SETTINGS
            case _:
                return frozenset()

    def _whose(self, name: str) -> ProviderConfig | None:
        """The provider of a model that is named without one, as programs do that know one provider: who lists it, else
        the only one that is configured."""
        if name.partition("/")[0] in PRESETS:
            return None
        listing = [config for config in self._providers if name in self._known.names(config)]
        configured = [config for config in self._providers if not config.found]
        if listing:
            return listing[0]
        return configured[0] if len(configured) == 1 else None

    # ---- making ----

    def _endpoint(self, config: ProviderConfig, name: str) -> Endpoint:
        about = who(config, name)
        return Endpoint(
            base_url=base_url(config),
            model=name,
            provider=about.provider,
            api_key=config.api_key,
            key_name=about.key_name,
            headers=config.headers,
            dialect=DIALECTS.get(config.kind, GENERIC),
            patience=self._settings.patience,
            retry=self._settings.retry,
        )

    def _weights(self) -> Path | None:
        directory = self._settings.weights_directory
        return None if directory is None else weights.find(directory)

    def _local_info(self) -> ModelInfo:
        if find_spec("xllamacpp") is None:
            return local_info(None, "It needs xllamacpp, which is not installed: pip install xllamacpp.")
        path = self._weights()
        if path is None:
            return local_info(None, "Its weights are not here. Fetch them with `holdfast models pull`.")
        return local_info(LocalSettings(path).context)

    def _get_local(self) -> Model:
        if self._local is None:
            info, path = self._local_info(), self._weights()
            if path is None or not info.available:
                raise ModelFailed("unavailable", f"The local model cannot answer. {info.reason}")
            environment = without_secrets(self._settings.environment)
            self._local = LocalModel(LocalSettings(path, threads=self._settings.threads, environment=environment))
        return self._local

    def _unknown(self, model_id: str, provider: str) -> ModelFailed:
        kind = next((kind for kind in PRESETS if kind == provider), None)
        if kind is not None and PRESETS[kind].keys:
            return ModelFailed(
                "auth", f"{PRESETS[kind].title} needs a key. Set {PRESETS[kind].keys[0]}, or choose another model."
            )
        names = ", ".join([*self._by_name, "local", "demo"])
        return ModelFailed(
            "bad-request",
            f"There is no model {model_id!r}. Ids are provider/name, and the providers here are {names}. Choose "
            "another model, or configure its provider.",
        )
