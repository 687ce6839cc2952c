"""Cache of each provider's list of models, refreshed in the background; decides which abilities each is assumed to
have. A provider that is down keeps its last models, marked with the reason; one that is only slow keeps them as they
are. How old a list may be: `models.catalog.CatalogSettings`."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from holdfast.models.default_model import UNNAMED
from holdfast.models.discovery import ProbeResult
from holdfast.models.model_listings import ListedModel
from holdfast.models.provider_config import PRESETS, ProviderConfig, dialect, title
from holdfast.models.pydantic_ai_models import KINDS, missing_extra, settings_of
from holdfast.models.vision_names import is_vision_name
from holdfast.ports.model import Ability, ModelInfo

_PREFILL: frozenset[Ability] = frozenset({"prefill"})
_IMAGES: frozenset[Ability] = frozenset({"images"})


class ModelListCache:
    """Providers are asked concurrently, each at most once at a time. A provider that is down keeps its last models,
    marked with the reason."""

    def __init__(
        self, probe: Callable[[ProviderConfig], Awaitable[ProbeResult]], monotonic: Callable[[], float], max_age: float
    ) -> None:
        self._probe = probe
        self._monotonic = monotonic
        self._max_age = max_age
        self.group: TaskGroup | None = None
        self._lists: dict[str, _Listing] = {}  # by the provider's name
        self._refreshing: dict[str, _Refresh] = {}  # by the provider's name

    async def refresh(self, providers: Sequence[ProviderConfig], *, all_now: bool = False) -> None:
        """Asks the providers whose list is missing or old, and waits for the missing ones; or asks all and waits."""
        assert self.group is not None, "the catalog is used within `async with`"
        awaited: list[_Refresh] = []
        for config in providers:
            running = self._refreshing.get(config.name)
            if running is None or running.config != config:  # what an old address answers says nothing about a new one
                if config.models or not (all_now or self._is_old(config)):
                    continue
                running = self._refreshing[config.name] = _Refresh(config)
                self.group.start_soon(self._refresh, running)
            if all_now or self._listing(config) is None:
                awaited.append(running)
        for refresh in awaited:
            await refresh.done.wait()

    def infos(self, config: ProviderConfig) -> Sequence[ModelInfo]:
        """The provider's models; none for a discovered server that does not answer."""
        known = self.known(config)
        if config.discovered and (not known.models or known.is_down):
            return ()
        listed = self.listed(config)
        is_usable = known.is_slow and bool(listed or config.default)  # models that were listed before or are configured
        if not listed:
            name = config.default or next(iter(PRESETS[config.kind].prefer), UNNAMED)
            listed = (ListedModel(name, name),)
        reason = (None if is_usable else known.reason) or missing_extra(config.kind)
        return [_describe(config, model, reason) for model in listed]

    def listed(self, config: ProviderConfig) -> tuple[ListedModel, ...]:
        """The models that its configuration names, else those it listed."""
        return tuple(ListedModel(name, name) for name in config.models) or self.known(config).models

    def info(self, config: ProviderConfig, name: str) -> ModelInfo:
        """One of its models, listed or not."""
        listed = {model.name: model for model in self.known(config).models}
        return _describe(config, listed.get(name, ListedModel(name, name)), None)

    def known(self, config: ProviderConfig) -> ProbeResult:
        """What the provider answered when it was last asked."""
        listing = self._listing(config)
        return ProbeResult() if listing is None else listing.result

    def _listing(self, config: ProviderConfig) -> "_Listing | None":
        """None if the provider had another key or address when it was asked."""
        listing = self._lists.get(config.name)
        return None if listing is None or listing.config != config else listing

    def _is_old(self, config: ProviderConfig) -> bool:
        listing = self._listing(config)
        if listing is None:
            return True
        max_age = self._max_age if listing.result.reason is None else self._max_age / 10
        return self._monotonic() - listing.at > max_age

    async def _refresh(self, refresh: "_Refresh") -> None:
        config = refresh.config
        try:
            try:
                result = await self._probe(config)
            except Exception as error:  # noqa: BLE001  a task boundary: one provider must not end the others
                result = ProbeResult(
                    reason=f"{title(config)} could not be asked for its models ({type(error).__name__})."
                )
            if result.reason is not None:
                result = ProbeResult(self.known(config).models, result.reason, result.error)
            if self._refreshing.get(config.name) is refresh:  # else it has another key or address since
                self._lists[config.name] = _Listing(config, result, self._monotonic())
        finally:
            if self._refreshing.get(config.name) is refresh:
                del self._refreshing[config.name]
            refresh.done.set()


@dataclass(frozen=True, slots=True)
class _Listing:
    """What a provider answered, and when."""

    config: ProviderConfig
    result: ProbeResult
    at: float


@dataclass(frozen=True, slots=True, eq=False)
class _Refresh:
    """A provider that is being asked."""

    config: ProviderConfig
    done: anyio.Event = field(default_factory=anyio.Event)


def _describe(config: ProviderConfig, model: ListedModel, reason: str | None) -> ModelInfo:
    abilities = model.abilities
    if abilities is None:
        abilities = _assumed_abilities(config, model.name) if config.abilities is None else frozenset(config.abilities)
    if dialect(config).prefill != "never":
        abilities |= _PREFILL
    return ModelInfo(
        f"{config.name}/{model.name}",
        model.title,
        title(config),
        model.context or config.context,
        abilities,
        reason is None,
        reason,
        settings_of(config.kind) if config.kind in KINDS else dialect(config).settings,
    )


def _assumed_abilities(config: ProviderConfig, name: str) -> frozenset[Ability]:
    """Of a model whose server says nothing about it. llama.cpp reports vision elsewhere, if it has any."""
    abilities = PRESETS[config.kind].abilities
    return abilities | _IMAGES if config.kind != "llamacpp" and is_vision_name(name) else abilities
