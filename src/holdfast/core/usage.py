"""Usage: sums over runs. What they cost: `core.costs`; which runs are summed: `ports.store.UsageQuery`; what providers
report of one run: `core.events.Usage`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Final

from holdfast.core.costs import FindPrice, UnbilledTokens, cost_of

QUARTER: Final = 900
"""Seconds. What erased runs used is known by the quarter of an hour. Sums are exact all the same if their periods and
days begin with one, which midnight does in every time zone since 1972."""


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

    @property
    def reported(self) -> float | None:
        """The cost that providers reported, which may be nothing; None if they reported none."""
        billed = self.input_tokens + self.output_tokens - self.unbilled_input - self.unbilled_output
        return self.reported_cost if billed > 0 or self.reported_cost > 0 else None


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
    unbilled = UnbilledTokens(more.unbilled_input, more.unbilled_cached, more.unbilled_output)
    cost = cost_of(more.model, more.reported, unbilled, price_of)
    return replace(
        total,
        runs=total.runs + more.runs,
        input_tokens=total.input_tokens + more.input_tokens,
        output_tokens=total.output_tokens + more.output_tokens,
        cached_tokens=total.cached_tokens + more.cached_tokens,
        reasoning_tokens=total.reasoning_tokens + more.reasoning_tokens,
        cost=total.cost if cost.known is None else (total.cost or 0.0) + cost.known,
        estimated_cost=total.estimated_cost + cost.estimated,
        unpriced_tokens=total.unpriced_tokens + cost.unpriced_tokens,
        seconds=total.seconds + more.seconds,
    )
