"""Usage by day, model or project, budgets, and prices. Sums are computed from the runs when they are asked for, so they
cannot differ from them. What is counted: `core.usage`; what it costs: `core.costs`; what a reached budget does:
`engine.transactions.budgets`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta, tzinfo
from typing import Final, TypeVar

from anyio import CapacityLimiter

from holdfast.core.budgets import (
    BUDGETS,
    Budget,
    Budgets,
    BudgetState,
    budgets_to_json,
    constant_offsets,
    day_of,
    find_zone,
    midnight,
    read_budgets,
)
from holdfast.core.costs import PRICES, FindPrice, Price, own_prices, price_finder, prices_to_json
from holdfast.core.errors import InvalidInputError, NotFoundError, QuotaExceededError
from holdfast.core.ids import LOCAL, OwnerId
from holdfast.core.parts import Json
from holdfast.core.usage import UsageSum, UsageSummary, total_of, totals_by_key
from holdfast.engine.node_context import NodeContext
from holdfast.engine.transactions import budgets
from holdfast.ports.store import Tx, UsageGrouping, UsageQuery

T = TypeVar("T")

MAX_DAYS: Final = 366
MAX_GROUPS: Final = 1000
MAX_BUDGETS: Final = 8  # Of one owner
MAX_PRICES: Final = 500  # Of one owner
_DEFAULT_DAYS: Final = 30
_EPOCH: Final = date(1970, 1, 1)
FIRST_DAY: Final = date(2000, 1, 1)
LAST_DAY: Final = date(2999, 12, 31)


@dataclass(frozen=True, slots=True)
class UsagePeriod:
    """From the beginning of the first day to the end of the last one, in a time zone; at most `MAX_DAYS`."""

    first: date
    last: date
    time_zone: str
    zone: tzinfo


@dataclass(frozen=True, slots=True)
class UsageGroup:
    """The usage of a day (`2026-11-19`), a model or a project ('': of chats without one)."""

    key: str
    used: UsageSummary
    price: Price | None = None  # Of a model
    has_own_price: bool = False


@dataclass(frozen=True, slots=True)
class UsageReport:
    period: UsagePeriod
    total: UsageSummary
    groups: Sequence[UsageGroup]  # Days in order, all of them; others by tokens, the most first
    left_out: int  # Groups with fewer tokens than those in the list, beyond `MAX_GROUPS`; they are in the total


@dataclass(frozen=True, slots=True, eq=False)
class UsageReports:
    _node: NodeContext
    _reporting: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(1))
    """A report reads all runs of its period: the store's other readers are left to other requests."""

    async def report(
        self,
        by: UsageGrouping = "day",
        first: date | None = None,
        last: date | None = None,
        time_zone: str | None = None,
        owner: OwnerId = LOCAL,
    ) -> UsageReport:
        """The last 30 days, unless told otherwise, in the time zone of the budgets."""

        def work(tx: Tx, prices: FindPrice | None) -> UsageReport:
            preferences = tx.settings(owner)
            period = _period(tx.now, first, last, time_zone or read_budgets(preferences).time_zone_in_use)
            sums = _sums(tx, owner, by, period)
            return _report(by, period, sums, preferences, price_finder(preferences, prices))

        async with self._reporting:
            return await self._read(work)

    async def budgets(self, owner: OwnerId = LOCAL) -> tuple[Budgets, Sequence[BudgetState]]:
        """The owner's budgets, and how much of each is used."""

        def work(tx: Tx, prices: FindPrice | None) -> tuple[Budgets, Sequence[BudgetState]]:
            preferences = tx.settings(owner)
            found = read_budgets(preferences)
            return found, budgets.states(tx, owner, found, price_finder(preferences, prices))

        return await self._read(work)

    async def require_budget(self, owner: OwnerId = LOCAL) -> None:
        """Raises BudgetReachedError, for a request to a model that belongs to no run: its usage is not counted, but a
        budget that refuses is to keep a client from spending."""

        async def attempt(inputs: budgets.BudgetInputs) -> None:
            await self._node.store.read(lambda tx: budgets.check(tx, owner, tx.settings(owner), inputs))

        await self._node.with_budget_inputs(attempt)

    async def _read(self, work: Callable[[Tx, FindPrice | None], T]) -> T:
        return await self._node.with_prices(lambda prices: self._node.store.read(lambda tx: work(tx, prices)))

    async def add_budget(self, budget: Budget, owner: OwnerId = LOCAL) -> Budget:
        """Returns it with its id. It counts from the next message on, with what was used before."""
        added = replace(budget, id=self._node.ids.new("bud"))

        def change(found: Budgets) -> Budgets:
            if len(found.items) >= MAX_BUDGETS:
                raise QuotaExceededError("budgets", MAX_BUDGETS, "Remove one first.")
            return replace(found, items=(*found.items, added))

        await self._change_budgets(change, owner)
        return added

    async def remove_budget(self, budget_id: str, owner: OwnerId = LOCAL) -> None:
        def change(found: Budgets) -> Budgets:
            left = tuple(each for each in found.items if each.id != budget_id)
            if len(left) == len(found.items):
                raise NotFoundError("budget", budget_id)
            return replace(found, items=left)

        await self._change_budgets(change, owner)

    async def set_time_zone(self, time_zone: str, owner: OwnerId = LOCAL) -> None:
        """In which days and months of the owner's budgets begin."""
        if find_zone(time_zone) is None:
            raise InvalidInputError("time_zone", f"{time_zone!r} is not a time zone; use a name such as Europe/Berlin")
        await self._change_budgets(lambda found: replace(found, time_zone=time_zone), owner)

    async def _change_budgets(self, change: Callable[[Budgets], Budgets], owner: OwnerId) -> None:
        """In one transaction: what other tabs and programs change at the same time is kept."""

        def work(tx: Tx) -> None:
            changed = change(read_budgets(tx.settings(owner)))
            tx.put_setting(owner, BUDGETS, budgets_to_json(changed.time_zone, changed.items))

        await self._node.store.transact(work)

    async def prices(self, owner: OwnerId = LOCAL) -> Mapping[str, Price]:
        """The owner's own prices, by model."""
        return own_prices(await self._node.store.read(lambda tx: tx.settings(owner)))

    async def change_prices(self, changes: Mapping[str, Price | None], owner: OwnerId = LOCAL) -> Mapping[str, Price]:
        """Set or remove (None) the owner's prices of these models; others keep theirs. Returns all of them."""

        def work(tx: Tx) -> Mapping[str, Price]:
            merged = {**own_prices(tx.settings(owner)), **changes}
            prices = {model: price for model, price in merged.items() if price is not None}
            if len(prices) > MAX_PRICES:
                raise QuotaExceededError("prices", MAX_PRICES, "Remove some first.")
            tx.put_setting(owner, PRICES, prices_to_json(prices))
            return prices

        return await self._node.store.transact(work)


def _period(now: float, first: date | None, last: date | None, time_zone: str) -> UsagePeriod:
    zone = find_zone(time_zone)
    if zone is None:
        raise InvalidInputError("time_zone", f"{time_zone!r} is not a time zone; use a name such as Europe/Berlin")
    last = last or day_of(now, zone)
    first = first or last - timedelta(days=_DEFAULT_DAYS - 1)
    for name, day in (("to", last), ("from", first)):
        if not FIRST_DAY <= day <= LAST_DAY:
            raise InvalidInputError(name, f"must be a day from {FIRST_DAY} to {LAST_DAY}")
    days = (last - first).days + 1
    if not 1 <= days <= MAX_DAYS:
        raise InvalidInputError("from", f"must be at most {MAX_DAYS} days up to `to`, which is {last}")
    return UsagePeriod(first, last, time_zone, zone)


def _sums(tx: Tx, owner: OwnerId, by: UsageGrouping, period: UsagePeriod) -> list[UsageSum]:
    if by == "day":
        parts = constant_offsets(period.first, period.last, period.zone)
        return [each for part in parts for each in tx.usage(UsageQuery(owner, part[0], part[1], by, part[2]))]
    since = midnight(period.first, period.zone)
    return list(tx.usage(UsageQuery(owner, since, midnight(period.last + timedelta(days=1), period.zone), by)))


def _report(
    by: UsageGrouping,
    period: UsagePeriod,
    sums: Sequence[UsageSum],
    preferences: Mapping[str, Json],
    price_of: FindPrice,
) -> UsageReport:
    found = totals_by_key(sums, price_of)
    total = total_of(sums, price_of)
    if by == "day":
        days = [period.first + timedelta(days=n) for n in range((period.last - period.first).days + 1)]
        groups = [UsageGroup(day.isoformat(), found.get((day - _EPOCH).days, UsageSummary())) for day in days]
        return UsageReport(period, total, groups, 0)
    ordered = sorted(found.items(), key=lambda item: (-item[1].tokens, str(item[0])))
    shown = ordered[:MAX_GROUPS]
    if by == "model":
        own = own_prices(preferences)
        groups = [UsageGroup(str(key), used, price_of(str(key)), key in own) for key, used in shown]
    else:
        groups = [UsageGroup(str(key), used) for key, used in shown]
    return UsageReport(period, total, groups, len(ordered) - len(shown))
