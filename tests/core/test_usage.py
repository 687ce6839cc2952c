"""Prices, costs and sums of usage."""

from dataclasses import replace

import pytest

from holdfast.core.costs import Price, own_prices, prices_to_json
from holdfast.core.events import Usage, add_usage
from holdfast.core.parts import Json
from holdfast.core.usage import UsageSum, total_of, totals_by_key

REPORTED = UsageSum("a", "m", 2, 100, 20, 10, 5, 0.5, 0, 0, 0, 4.0)
UNBILLED = UsageSum("b", "n", 1, 2_000_000, 1_000_000, 500_000, 0, 0.0, 2_000_000, 500_000, 1_000_000, 6.0)


def test_a_reported_cost_is_not_estimated_again() -> None:
    total = total_of([REPORTED], lambda _: Price(1e6, 1e6))
    assert (total.cost, total.estimated_cost, total.unpriced_tokens) == (0.5, 0.0, 0)


def test_no_more_tokens_are_cached_than_were_sent() -> None:
    """A report that says so does not make the input of other runs free."""
    assert Usage(10, 5, None, 999_999).cached_tokens == 10
    assert add_usage(Usage(1000, 0, None, 0), Usage(10, 0, None, 50)) == Usage(1010, 0, None, 10)


def test_cached_tokens_have_their_own_price() -> None:
    """1.5 million fresh at 2 dollars, half a million cached at 0.2, a million written at 10; without a price of their
    own, cached tokens cost as much as others."""
    total = total_of([UNBILLED], lambda _: Price(2.0, 10.0, 0.2))
    assert total.cost == total.estimated_cost == pytest.approx(3.0 + 0.1 + 10.0)
    assert total_of([UNBILLED], lambda _: Price(2.0, 10.0)).cost == pytest.approx(4.0 + 10.0)


def test_tokens_without_a_price_are_counted_and_not_guessed() -> None:
    """A cost of which nothing is known is None, which is not nothing."""
    total = total_of([UNBILLED], lambda _: None)
    assert (total.cost, total.unpriced_tokens) == (None, 3_000_000)
    both = total_of([REPORTED, UNBILLED], lambda _: None)
    assert (both.cost, both.unpriced_tokens, both.runs, both.tokens, both.seconds) == (0.5, 3_000_000, 3, 3_000_120, 10)
    free = total_of([UNBILLED], lambda _: Price(0.0, 0.0))
    assert (free.cost, free.unpriced_tokens) == (0.0, 0)


def test_a_reported_cost_of_nothing_is_known() -> None:
    assert total_of([replace(REPORTED, reported_cost=0.0)], lambda _: None).cost == 0.0


def test_groups_have_the_prices_of_their_models() -> None:
    prices = {"m": Price(1.0, 1.0), "n": Price(10.0, 10.0)}
    sums = [replace(UNBILLED, key="day", model=model, unbilled_cached=0) for model in prices]
    (total,) = totals_by_key(sums, prices.get).values()
    assert total.cost == pytest.approx(3.0 + 30.0)


NO_PRICES: list[Json] = [
    None,
    "x",
    {"input": 1},
    {"input": "1", "output": 1},
    {"input": -1, "output": 1},
    {"input": True, "output": 1},
    {"input": 1e7, "output": 1},
]


@pytest.mark.parametrize("stored", [None, [], "x", *({"m": each} for each in NO_PRICES)])
def test_what_is_no_price_is_left_out(stored: Json) -> None:
    assert own_prices({"prices": stored}) == {}


def test_prices_survive_being_stored() -> None:
    prices = {"m": Price(0.0, 2.5), "n": Price(1.0, 2.0, 0.1)}
    assert own_prices({"prices": prices_to_json(prices)}) == prices
    assert prices_to_json({}) is None
