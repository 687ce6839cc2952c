"""Usage and cost: sums over runs, prices of models, and how a cost is estimated. Which runs are summed:
`ports.store.UsageQuery`; what providers report of one run: `core.events.Usage`.

A cost that a provider reported is taken as it is. Otherwise it is estimated from the tokens and the price of the model
as it is now, so a price that is set later counts for earlier runs too.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Final

from holdfast.core.parts import Json

PRICES: Final = "prices"  # The owner's setting that has them, by model
MAX_PRICE: Final = 1_000_000.0
_MILLION: Final = 1_000_000
QUARTER: Final = 900
"""Seconds. What erased runs used is known by the quarter of an hour. Sums are exact all the same if their periods and
days begin with one, which midnight does in every time zone since 1972."""


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


@dataclass(frozen=True, slots=True)
class UsageSum:
    """What the runs of one group and one model used. The tokens of runs without a reported cost are also in the fields
    `unbilled_…`."""

    key: str | int  # The model, the project, or the number of the day since 1970-01-01
    model: str
    runs: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    reported_cost: float
    unbilled_input: int
    unbilled_cached: int
    unbilled_output: int
    seconds: float


_NUMBERS: Final = tuple(each.name for each in fields(UsageSum) if each.name not in ("key", "model"))


@dataclass(frozen=True, slots=True)
class UsageSummary:
    """What a number of runs used, as far as their providers reported it. `cost` is None if no part of it is known."""

    runs: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None
    estimated_cost: float = 0.0  # Of the cost, what was not reported but estimated from a price
    unpriced_tokens: int = 0  # Tokens that are not in the cost, because nobody knows the price of their model
    seconds: float = 0.0  # From the starts of the runs to their ends

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


def merge_sums(*sums: Iterable[UsageSum]) -> Sequence[UsageSum]:
    """One sum for each group and model."""
    found: dict[tuple[str | int, str], UsageSum] = {}
    for each in chain(*sums):
        same = (each.key, each.model)
        other = found.get(same)
        numbers = {} if other is None else {name: getattr(each, name) + getattr(other, name) for name in _NUMBERS}
        found[same] = replace(each, **numbers)
    return [*found.values()]


def total_of(sums: Iterable[UsageSum], price_of: FindPrice) -> UsageSummary:
    total = UsageSummary()
    for each in sums:
        total = _add(total, each, price_of)
    return total


def totals_by_key(sums: Iterable[UsageSum], price_of: FindPrice) -> dict[str | int, UsageSummary]:
    found: dict[str | int, UsageSummary] = {}
    for each in sums:
        found[each.key] = _add(found.get(each.key, UsageSummary()), each, price_of)
    return found


def _add(total: UsageSummary, more: UsageSum, price_of: FindPrice) -> UsageSummary:
    unbilled = more.unbilled_input + more.unbilled_output
    is_reported = unbilled < more.input_tokens + more.output_tokens or more.reported_cost > 0
    price = None if is_reported and not unbilled else price_of(more.model)
    estimate = 0.0 if price is None else price.cost(more.unbilled_input, more.unbilled_cached, more.unbilled_output)
    return replace(
        total,
        runs=total.runs + more.runs,
        input_tokens=total.input_tokens + more.input_tokens,
        output_tokens=total.output_tokens + more.output_tokens,
        cached_tokens=total.cached_tokens + more.cached_tokens,
        reasoning_tokens=total.reasoning_tokens + more.reasoning_tokens,
        cost=(total.cost or 0.0) + more.reported_cost + estimate if is_reported or price is not None else total.cost,
        estimated_cost=total.estimated_cost + estimate,
        unpriced_tokens=total.unpriced_tokens + (unbilled if price is None else 0),
        seconds=total.seconds + more.seconds,
    )


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
