"""Cache of each provider's list of models, refreshed in the background."""

from collections.abc import Awaitable, Callable, Sequence

import anyio
from anyio.abc import TaskGroup

from holdfast.models.default_model import UNNAMED
from holdfast.models.discovery import ProbeResult
from holdfast.models.model_listings import ListedModel
from holdfast.models.provider_config import PRESETS, ProviderConfig, dialect, title
from holdfast.models.pydantic_ai_models import missing_extra
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
        self._lists: dict[str, tuple[ProbeResult, float]] = {}  # by provider, with the time of asking
        self._refreshing: dict[str, anyio.Event] = {}

    def forget(self, name: str) -> None:
        """Drops the list of a provider whose key or address has changed."""
        self._lists.pop(name, None)

    async def refresh(self, providers: Sequence[ProviderConfig], *, all_now: bool = False) -> None:
        """Asks the providers whose list is missing or old, and waits for the missing ones; or asks all and waits."""
        assert self.group is not None, "the catalog is used within `async with`"
        for config in providers:
            is_due = all_now or self._is_old(config.name)
            if not config.models and is_due and config.name not in self._refreshing:
                self._refreshing[config.name] = anyio.Event()
                self.group.start_soon(self._refresh, config)
        for config in providers:
            done = self._refreshing.get(config.name)
            if done is not None and (all_now or config.name not in self._lists):
                await done.wait()

    def infos(self, config: ProviderConfig) -> Sequence[ModelInfo]:
        """The provider's models; none for a discovered server that does not answer."""
        known = self.known(config)
        if config.discovered and (not known.models or known.reason is not None):
            return ()
        listed = [ListedModel(name, name) for name in config.models] or list(known.models)
        if not listed:
            name = config.default or next(iter(PRESETS[config.kind].prefer), UNNAMED)
            listed = [ListedModel(name, name)]
        reason = known.reason or missing_extra(config.kind)
        return [_describe(config, model, reason) for model in listed]

    def names(self, config: ProviderConfig) -> Sequence[str]:
        """Names of its models, as far as they are known."""
        return config.models or [model.name for model in self.known(config).models]

    def info(self, config: ProviderConfig, name: str) -> ModelInfo:
        """One of its models, listed or not."""
        listed = {model.name: model for model in self.known(config).models}
        return _describe(config, listed.get(name, ListedModel(name, name)), None)

    def known(self, config: ProviderConfig) -> ProbeResult:
        return self._lists.get(config.name, (ProbeResult(), 0.0))[0]

    def _is_old(self, name: str) -> bool:
        if name not in self._lists:
            return True
        result, at = self._lists[name]
        return self._monotonic() - at > (self._max_age if result.reason is None else self._max_age / 10)

    async def _refresh(self, config: ProviderConfig) -> None:
        try:
            try:
                result = await self._probe(config)
            except Exception as error:  # noqa: BLE001  a task boundary: one provider must not end the others
                result = ProbeResult(
                    reason=f"{title(config)} could not be asked for its models ({type(error).__name__})."
                )
            if result.reason is not None:
                result = ProbeResult(self.known(config).models, result.reason, result.error)
            self._lists[config.name] = (result, self._monotonic())
        finally:
            self._refreshing.pop(config.name).set()


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
    )


def _assumed_abilities(config: ProviderConfig, name: str) -> frozenset[Ability]:
    """Of a model whose server says nothing about it. llama.cpp reports vision elsewhere, if it has any."""
    abilities = PRESETS[config.kind].abilities
    return abilities | _IMAGES if config.kind != "llamacpp" and is_vision_name(name) else abilities
