"""Prices of providers' models, from the table of the package `genai-prices`, which is maintained by others and comes
with the extra `providers`. It is as old as the installed package: nothing is downloaded. What goes before a
price of the table: `core.costs`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from types import ModuleType
from typing import Any, Final

from anyio import to_thread

from holdfast.core.costs import FindPrice, Price
from holdfast.models.demo_model import DEMO
from holdfast.models.known_providers import KnownProviders
from holdfast.models.local_model import LOCAL_ID
from holdfast.models.provider_config import PRESETS
from holdfast.ports.model import ProviderKind
from holdfast.ports.prices import PricesNotLoadedError

FREE: Final = Price(0.0, 0.0)  # Of a model that runs on one's own machine
_OWN_SERVERS: Final = frozenset[ProviderKind]({"ollama", "lmstudio", "llamacpp", "vllm"})
_PROVIDERS: Final[Mapping[ProviderKind, str]] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "google",
    "openrouter": "openrouter",
    "mistral": "mistral",
    "deepseek": "deepseek",
    "groq": "groq",
    "xai": "x-ai",
    "together": "together",
}
"""The table's names. A model of another kind of provider has no price there: its server may charge anything."""
_TOKENS: Final = 1000  # Below the number at which a long prompt costs more

_MAX_CACHED: Final = 2000  # A price takes half a millisecond to find
FindTablePrice = Callable[[ProviderKind, str], Price | None]


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """The table. It does not change while the server runs."""

    package: ModuleType | None  # None: not installed

    def price(self, kind: ProviderKind, name: str) -> Price | None:
        """The price of a provider's model, without surcharges for long prompts; None if the table does not have it."""
        if kind in _OWN_SERVERS:
            return FREE
        provider, package = _PROVIDERS.get(kind), self.package
        if provider is None or package is None:
            return None
        try:
            plain = _calc(package, name, provider, output_tokens=_TOKENS)
            cached = _calc(package, name, provider, cache_read_tokens=_TOKENS)
        except (LookupError, ValueError):
            return None
        return Price(
            _per_million(plain.input_price), _per_million(plain.output_price), _per_million(cached.input_price)
        )


def _per_million(price: Decimal) -> float:
    return float(price * (1_000_000 // _TOKENS))


def _calc(package: ModuleType, name: str, provider: str, **tokens: int) -> Any:
    return package.calc_price(package.Usage(input_tokens=_TOKENS, **tokens), name, provider_id=provider)


def load() -> LoadedTable:
    """Blocks for a third of a second: the package is large."""
    try:
        import genai_prices  # in an extra
    except ImportError:
        return LoadedTable(None)
    table = LoadedTable(genai_prices)
    table.price("openai", "gpt-4o")  # the first look reads it
    return table


class ModelPrices:
    """`PriceTable` for the models of a catalog."""

    def __init__(self, known_providers: Callable[[], KnownProviders]) -> None:
        self._known_providers = known_providers
        self._price: FindTablePrice | None = None

    def snapshot(self) -> FindPrice:
        return _not_loaded if self._price is None else partial(model_price, self._price, self._known_providers())

    async def load(self) -> FindPrice:
        if self._price is None:
            table = await to_thread.run_sync(load)
            self._price = lru_cache(_MAX_CACHED)(table.price)
        return self.snapshot()


def _not_loaded(_: str) -> Price | None:
    raise PricesNotLoadedError


def model_price(price: FindTablePrice, providers: KnownProviders, model_id: str) -> Price | None:
    """What the model costs, if the table has it. Models of this machine cost nothing. Also of a provider that is not
    configured any more, because it may have answered before."""
    if model_id in (LOCAL_ID, DEMO.id):
        return FREE
    config, name = providers.of(model_id)
    if config is not None:
        return price(config.kind, name)
    used_before = next((kind for kind in PRESETS if model_id.startswith(f"{kind}/")), None)
    return None if used_before is None else price(used_before, model_id.removeprefix(f"{used_before}/"))
