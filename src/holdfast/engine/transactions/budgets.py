"""Checks the owner's budgets in the transaction that accepts a run. Without budgets nothing is read. What was used some
time ago is an argument (`engine.earlier_usage`), because all other writes wait for this transaction."""

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Final, NamedTuple

from holdfast.core.budgets import Budgets, BudgetState, bounds, read_budgets, state_of
from holdfast.core.costs import FindPrice, price_finder
from holdfast.core.errors import BudgetReachedError
from holdfast.core.export_format import iso_timestamp
from holdfast.core.ids import OwnerId
from holdfast.core.parts import Json
from holdfast.core.usage import QUARTER, UsageSum, total_of
from holdfast.ports.store import Tx, UsageQuery

_LONGEST_TRANSACTION: Final = 60.0
"""Seconds between the time that a transaction writes and its commit, at most."""


class OwnerPeriod(NamedTuple):
    """From this time on, until now."""

    owner: OwnerId
    since: float


class SummedUsage(NamedTuple):
    """What was used in a period until a quarter of an hour that is over."""

    until: float
    sums: Sequence[UsageSum]


SummedPeriods = Mapping[OwnerPeriod, SummedUsage]


class NotSummedError(Exception):
    """What was used earlier in these periods is not known: sum it outside of the transaction, then do that again."""

    def __init__(self, periods: Sequence[OwnerPeriod]) -> None:
        super().__init__(periods)
        self.periods = periods


class BudgetInputs(NamedTuple):
    """What the check needs beside the store. Without `earlier`, the whole period is summed."""

    prices: FindPrice | None = None
    earlier: SummedPeriods | None = None


NO_INPUTS: Final = BudgetInputs()


def summed_until(now: float) -> float:
    """The last quarter of an hour at whose beginning no run can still end: transactions do not take that long."""
    return (now - _LONGEST_TRANSACTION) // QUARTER * QUARTER


def states(
    tx: Tx, owner: OwnerId, budgets: Budgets, price_of: FindPrice, earlier: SummedPeriods | None = None
) -> list[BudgetState]:
    """How much of each budget is used. Each period is summed once; prices are for budgets of money alone. Raises
    NotSummedError if `earlier` is given and lacks something."""
    zone = budgets.zone
    priced = {budget.period for budget in budgets.items if budget.unit == "usd"}
    spans = {period: bounds(period, tx.now, zone) for period in sorted({budget.period for budget in budgets.items})}
    known = {period: _known(tx, OwnerPeriod(owner, since), earlier) for period, (since, _) in spans.items()}
    missing = [OwnerPeriod(owner, spans[period][0]) for period, summed in known.items() if summed is None]
    if missing:
        raise NotSummedError(missing)
    used = {
        period: total_of(
            [*summed.sums, *tx.usage(UsageQuery(owner, summed.until, spans[period][1]))],
            price_of if period in priced else _no_price,
        )
        for period, summed in known.items()
        if summed is not None
    }
    return [state_of(budget, used[budget.period], spans[budget.period][1]) for budget in budgets.items]


def _known(tx: Tx, period: OwnerPeriod, earlier: SummedPeriods | None) -> SummedUsage | None:
    """What need not be summed again; None if it is too little, or was summed before the clock was set back."""
    newest = summed_until(tx.now)
    if earlier is None or period.since >= newest:
        return SummedUsage(period.since, ())
    found = earlier.get(period)
    return found if found is not None and newest - QUARTER <= found.until <= newest else None


def _no_price(_: str) -> None:
    return None


def check(tx: Tx, owner: OwnerId, preferences: Mapping[str, Json], inputs: BudgetInputs) -> Sequence[BudgetState]:
    """The budgets that are reached and only warn. Raises BudgetReachedError for one that refuses: of several, the one
    that is free again last. Raises NotSummedError."""
    budgets = read_budgets(preferences)
    if not budgets.items:
        return ()
    found = states(tx, owner, budgets, price_finder(preferences, inputs.prices), inputs.earlier)
    reached = [state for state in found if state.is_reached]
    refusing = [state for state in reached if state.budget.action == "refuse"]
    if refusing:
        raise _refusal(max(refusing, key=lambda state: state.resets_at), budgets.zone, tx.now)
    return reached


def _refusal(state: BudgetState, zone: tzinfo, now: float) -> BudgetReachedError:
    begins = datetime.fromtimestamp(state.resets_at, zone)
    free_from = f"{begins:%Y-%m-%d %H:%M} ({zone})"
    return BudgetReachedError(state.message, free_from, iso_timestamp(state.resets_at), max(0.0, state.resets_at - now))
