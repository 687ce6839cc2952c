"""Whose model an id names, by the providers and their lists of models at one moment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.models.model_listings import ListedModel
from holdfast.models.provider_config import PRESETS, ProviderConfig


@dataclass(frozen=True, slots=True)
class KnownProviders:
    by_name: Mapping[str, ProviderConfig]  # In the order in which they are asked for a model
    listed: Mapping[str, Sequence[ListedModel]]  # By the provider's name, unless its configuration names its models

    def of(self, model_id: str) -> tuple[ProviderConfig | None, str]:
        """The provider that a model id names, if there is one, and the provider's name of the model."""
        provider, _, name = model_id.partition("/")
        config = self.by_name.get(provider)
        return (self._find(model_id), model_id) if config is None or not name else (config, name)

    def _find(self, name: str) -> ProviderConfig | None:
        """The provider of a model named without one, as programs written for one provider do: the one that lists it,
        else the only configured one."""
        if name.partition("/")[0] in PRESETS:
            return None
        listing = next((config for config in self.by_name.values() if self._lists(config, name)), None)
        configured = [config for config in self.by_name.values() if not config.discovered]
        return listing or (configured[0] if len(configured) == 1 else None)

    def _lists(self, config: ProviderConfig, name: str) -> bool:
        if config.models:
            return name in config.models
        return any(model.name == name for model in self.listed.get(config.name, ()))
