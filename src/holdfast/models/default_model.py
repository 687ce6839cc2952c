"""Which model answers when a request names none: the person's choice, else the configured one, else the default of the
first provider that has one, else the local model, else the demo. A run's own model comes first
(`app.models.find_for_turn`)."""

from collections.abc import Iterable
from typing import Final

from holdfast.models.discovery import ProbeResult
from holdfast.models.model_listings import pick_default
from holdfast.models.provider_config import PRESETS, ProviderConfig
from holdfast.models.pydantic_ai_models import missing_extra

UNNAMED: Final = "default"  # The model name used for a configured server that lists none: many accept any name


def default_model(chosen: str | None, configured: str | None, offered: Iterable[str | None]) -> str:
    """`offered`: the providers' defaults in their order, then the models of this machine."""
    return chosen or configured or next(model for model in offered if model is not None)


def provider_default(config: ProviderConfig, known: ProbeResult) -> str | None:
    """The default among a provider's models; None if it cannot be the default provider. A configured provider stays the
    default while it is down: silently answering with another model would be worse than failing."""
    if missing_extra(config.kind) is not None:
        return None
    if config.default is not None:
        return config.default
    if config.discovered and (not known.models or known.is_down):
        return None
    prefer = PRESETS[config.kind].prefer
    listed = pick_default(list(config.models) or [m.name for m in known.models], prefer)
    return listed or next(iter(prefer), None if config.discovered else UNNAMED)
