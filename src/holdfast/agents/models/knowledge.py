"""What is known of each provider's models, and how it is kept up to date."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final

import anyio
from anyio.abc import TaskGroup

from holdfast.agents.models.dialects import DIALECTS, GENERIC
from holdfast.agents.models.http import Http
from holdfast.agents.models.listing import Listed, pick
from holdfast.agents.models.port import Ability, ModelInfo
from holdfast.agents.models.probe import Seen, probe
from holdfast.agents.models.provider_config import PRESETS, ProviderConfig, title
from holdfast.agents.models.providers import missing
from holdfast.core.values import dataclass

_PREFILL: frozenset[Ability] = frozenset({"prefill"})


UNNAMED: Final = "default"
"""What a server's model is called that was configured and does not list any: many take whatever name they are told."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    seen: Seen
    at: float


class Knowledge:
    """Providers are asked concurrently, each at most once at a time. A provider that is down keeps the models that it
    had, marked with the reason."""

    def __init__(
        self,
        http: Http,
        monotonic: Callable[[], float],
        *,
        fresh: float,
        here: float,
        elsewhere: float,
    ) -> None:
        self._http = http
        self._group: TaskGroup | None = None
        self._monotonic = monotonic
        self._fresh = fresh
        self._here = here
        self._elsewhere = elsewhere
        self._seen: dict[str, _Remembered] = {}
        self._asking: dict[str, anyio.Event] = {}

    async def __aenter__(self) -> "Knowledge":
        self._group = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        group, self._group = self._group, None
        if group is not None:
            group.cancel_scope.cancel()
            await group.__aexit__(None, None, None)  # the caller's error is not one of the group's

    def forget(self, name: str) -> None:
        """What is known of this provider was told to another key, or by another server."""
        self._seen.pop(name, None)

    async def refresh(self, providers: Sequence[ProviderConfig]) -> None:
        """Ask those of which too little or only old things are known; wait for those of which nothing is."""
        assert self._group is not None, "the catalogue is used within `async with`"
        for config in providers:
            if not config.models and self._is_old(config.name) and config.name not in self._asking:
                self._asking[config.name] = anyio.Event()
                self._group.start_soon(self._look, config)
        for config in providers:
            asked = self._asking.get(config.name)
            if asked is not None and config.name not in self._seen:
                await asked.wait()

    def infos(self, config: ProviderConfig) -> Sequence[ModelInfo]:
        """The provider's part of the list."""
        seen = self._known(config)
        if config.found and (not seen.models or seen.reason is not None):
            return ()
        listed = [Listed(name, name) for name in config.models] or list(seen.models)
        if not listed:
            name = config.default or next(iter(PRESETS[config.kind].prefer), UNNAMED)
            listed = [Listed(name, name)]
        reason = seen.reason or missing(config.kind)
        return [_describe(config, model, reason) for model in listed]

    def names(self, config: ProviderConfig) -> Sequence[str]:
        """Of its models, as far as they are known."""
        return config.models or [model.name for model in self._known(config).models]

    def info(self, config: ProviderConfig, name: str) -> ModelInfo:
        """One of its models, listed or not."""
        listed = {model.name: model for model in self._known(config).models}
        return _describe(config, listed.get(name, Listed(name, name)), None)

    def default_name(self, config: ProviderConfig) -> str | None:
        """The model to begin with, if this provider is one to begin with."""
        if missing(config.kind) is not None:
            return None
        if config.default is not None:
            return config.default
        seen = self._known(config)
        if config.found and (not seen.models or seen.reason is not None):
            return None
        prefer = PRESETS[config.kind].prefer
        named = pick(list(config.models) or [m.name for m in seen.models], prefer) or (prefer[0] if prefer else None)
        return named or (None if config.found else UNNAMED)

    def _known(self, config: ProviderConfig) -> Seen:
        known = self._seen.get(config.name)
        return Seen() if known is None else known.seen

    def _is_old(self, name: str) -> bool:
        known = self._seen.get(name)
        if known is None:
            return True
        lasts = self._fresh if known.seen.reason is None else self._fresh / 10
        return self._monotonic() - known.at > lasts

    async def _look(self, config: ProviderConfig) -> None:
        try:
            try:
                seen = await probe(self._http, config, here=self._here, elsewhere=self._elsewhere)
            except Exception as error:  # noqa: BLE001  a task's edge: one odd provider must not end the others
                seen = Seen(reason=f"{title(config)} could not be asked for its models ({type(error).__name__}).")
            if seen.reason is not None:
                seen = Seen(self._known(config).models, seen.reason)
            self._seen[config.name] = _Remembered(seen, self._monotonic())
        finally:
            self._asking.pop(config.name).set()


def _describe(config: ProviderConfig, model: Listed, reason: str | None) -> ModelInfo:
    abilities = model.abilities
    if abilities is None:
        abilities = PRESETS[config.kind].abilities if config.abilities is None else frozenset(config.abilities)
    if DIALECTS.get(config.kind, GENERIC).prefill != "never":
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
