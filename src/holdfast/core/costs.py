"""Decides what usage costs. The first of these that is known:

1. the cost that the provider reported (`core.events.Usage`);
2. the tokens at the owner's own price of the model, as it is now, so a price that is set later counts for earlier runs;
3. the tokens at the price in the table (`models.price_table`), in which models on this machine cost nothing.

Otherwise the cost is unknown, which is not nothing. Sums: `core.usage`; what a reached budget does: `core.budgets`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from holdfast.core.parts import Json

PRICES: Final = "prices"  # The owner's setting that has them, by model
MAX_PRICE: Final = 1_000_000.0
_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. Cached input tokens cost as much as others if `cached_input` is None."""

    input: float
    output: float
    cached_input: float | None = None

    def cost(self, input_tokens: int, cached_tokens: int, output_tokens: int) -> float:
        """`cached_tokens`: of the input tokens, those that the provider had cached."""
        cached_price = self.input if self.cached_input is None else self.cached_input
        fresh = max(0, input_tokens - cached_tokens)
        return (fresh * self.input + cached_tokens * cached_price + output_tokens * self.output) / _MILLION


FindPrice = Callable[[str], Price | None]


class UnbilledTokens(NamedTuple):
    """Tokens of runs without a reported cost. `cached`: of the input tokens, those that the provider had cached."""

    input: int
    cached: int
    output: int


class Cost(NamedTuple):
    known: float | None  # None: no part of it is known
    estimated: float  # Of the known cost, what was not reported
    unpriced_tokens: int  # Those that are not in the known cost


def cost_of(model: str, reported: float | None, unbilled: UnbilledTokens, price_of: FindPrice) -> Cost:
    """What a model's runs cost. `reported`: None if no provider reported a cost."""
    tokens = unbilled.input + unbilled.output
    price = None if reported is not None and not tokens else price_of(model)
    estimate = 0.0 if price is None else price.cost(*unbilled)
    known = None if reported is None and price is None else (reported or 0.0) + estimate
    return Cost(known, estimate, tokens if price is None else 0)


def price_finder(preferences: Mapping[str, Json], table: FindPrice | None) -> FindPrice:
    """The owner's own price of a model goes before that of the table, in which each is looked up once."""
    own = own_prices(preferences)

    @cache
    def find(model: str) -> Price | None:
        return own.get(model) or (None if table is None else table(model))

    return find


# ---- the owner's own prices ----


def own_prices(preferences: Mapping[str, Json]) -> dict[str, Price]:
    """The prices that the owner has set, by model. A value that is no price is left out."""
    stored = preferences.get(PRICES)
    if not isinstance(stored, dict):
        return {}
    found = {model: _read_price(value) for model, value in stored.items()}
    return {model: price for model, price in found.items() if price is not None}


def _read_price(value: Json) -> Price | None:
    if not isinstance(value, dict):
        return None
    read, written, cached = (_amount(value.get(name)) for name in ("input", "output", "cached_input"))
    return None if read is None or written is None else Price(read, written, cached)


def _amount(value: Json) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= MAX_PRICE else None


def prices_to_json(prices: Mapping[str, Price]) -> Json:
    """None without prices, which removes the setting."""
    return {
        model: {"input": price.input, "output": price.output, "cached_input": price.cached_input}
        for model, price in prices.items()
    } or None
