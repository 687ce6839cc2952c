"""Budgets: how much an owner wants to use in a day or a month, and what happens beyond. Pure: the time and the time
zone are arguments. Where they are checked: `engine.transactions.budgets`.

A budget is reached when its period's settled runs have used at least its limit. Open runs are not counted, because what
they will use is not known, and they are never stopped.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import count
from typing import Final, Literal, get_args
from zoneinfo import ZoneInfo

from holdfast.core.parts import Json
from holdfast.core.usage import QUARTER, UsageSummary

BUDGETS: Final = "budgets"  # The owner's setting that has them
MAX_LIMIT: Final = 1e15
Period = Literal["day", "month"]
Unit = Literal["tokens", "usd"]
Action = Literal["warn", "refuse"]


@dataclass(frozen=True, slots=True)
class Budget:
    """At most so many tokens (input and output) or US dollars in a calendar day or month."""

    period: Period
    unit: Unit
    limit: float
    action: Action
    id: str = ""

    @property
    def name(self) -> str:
        return f"{'daily' if self.period == 'day' else 'monthly'} budget of {amount_text(self.limit, self.unit)}"


@dataclass(frozen=True, slots=True)
class Budgets:
    """An owner's budgets, and the time zone in which days and months begin: UTC if the system does not know the one
    that was chosen, for example because it was chosen on another system."""

    time_zone: str = "UTC"
    items: tuple[Budget, ...] = ()

    @property
    def zone(self) -> tzinfo:
        return find_zone(self.time_zone) or UTC

    @property
    def time_zone_in_use(self) -> str:
        return "UTC" if find_zone(self.time_zone) is None else self.time_zone


@dataclass(frozen=True, slots=True)
class BudgetState:
    """How much of a budget is used in the period that `resets_at` ends."""

    budget: Budget
    used: float
    resets_at: float
    unpriced_tokens: int = 0  # Tokens that a budget of money cannot count

    @property
    def is_reached(self) -> bool:
        return self.used >= self.budget.limit

    @property
    def message(self) -> str:
        return f"The {self.budget.name} is used up: {amount_text(self.used, self.budget.unit)} so far."


def amount_text(amount: float, unit: Unit) -> str:
    return f"{amount:,.0f} tokens" if unit == "tokens" else f"${amount:,.2f}"


def find_zone(name: str) -> tzinfo | None:
    """The time zone of an IANA name such as `Europe/Berlin`; None if there is none. Where the system has no data of
    time zones, there is only UTC."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # not found is a KeyError; others are names that are no plain paths
        return None


def state_of(budget: Budget, used: UsageSummary, resets_at: float) -> BudgetState:
    if budget.unit == "tokens":
        return BudgetState(budget, used.tokens, resets_at)
    return BudgetState(budget, used.cost or 0.0, resets_at, used.unpriced_tokens)


# ---- time ----


def midnight(day: date, zone: tzinfo) -> float:
    """When a day begins, in seconds since the epoch."""
    return datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()


def day_of(at: float, zone: tzinfo) -> date:
    return datetime.fromtimestamp(at, zone).date()


def bounds(period: Period, now: float, zone: tzinfo) -> tuple[float, float]:
    """When the period that contains `now` begins, and when the next one does."""
    first = day_of(now, zone)
    if period == "day":
        return midnight(first, zone), midnight(first + timedelta(days=1), zone)
    first = first.replace(day=1)
    return midnight(first, zone), midnight((first + timedelta(days=31)).replace(day=1), zone)


def constant_offsets(first: date, last: date, zone: tzinfo) -> list[tuple[float, float, float]]:
    """The time from the beginning of `first` to the end of `last` in parts with a constant offset from UTC: begin, end,
    offset in seconds. Clocks are changed at a whole hour, or half or quarter of one."""
    at, end = midnight(first, zone), midnight(last + timedelta(days=1), zone)
    parts: list[tuple[float, float, float]] = []
    while at < end:
        offset, change = _offset(at, zone), end
        step = at
        while step < end:  # day by day, then to the quarter of an hour
            step = min(step + 86400.0, end)
            if _offset(step, zone) != offset:
                change = _first_quarter_with_another(step - 86400.0, step, offset, zone)
                break
        parts.append((at, min(change, end), offset))
        at = change
    return parts


def _first_quarter_with_another(since: float, until: float, offset: float, zone: tzinfo) -> float:
    at = since // QUARTER * QUARTER
    while _offset(at, zone) == offset and at < until:
        at += QUARTER
    return at


def _offset(at: float, zone: tzinfo) -> float:
    found = datetime.fromtimestamp(at, zone).utcoffset()
    return 0.0 if found is None else found.total_seconds()


# ---- as settings ----


def read_budgets(preferences: Mapping[str, Json]) -> Budgets:
    """The owner's budgets. An item that is no budget is left out. One without an id, as it was stored at first,
    is known by its position until the next change."""
    stored = preferences.get(BUDGETS)
    if not isinstance(stored, dict):
        return Budgets()
    zone, items = stored.get("time_zone"), stored.get("items")
    found = map(_read_budget, items, count(1)) if isinstance(items, list) else ()
    return Budgets(zone if isinstance(zone, str) else "UTC", tuple(each for each in found if each is not None))


def _read_budget(value: Json, position: int) -> Budget | None:
    match value:
        case {"period": str(period), "unit": str(unit), "limit": int(limit) | float(limit), "action": str(action)}:
            known = period in get_args(Period) and unit in get_args(Unit) and action in get_args(Action)
            is_amount = not isinstance(limit, bool) and 0 <= limit <= MAX_LIMIT
            found = value.get("id")
            bid = found if isinstance(found, str) else f"bud_{position}"
            return Budget(period, unit, limit, action, bid) if known and is_amount else None  # type: ignore[arg-type]
        case _:
            return None


def budgets_to_json(time_zone: str, items: Iterable[Budget]) -> Json:
    return {
        "time_zone": time_zone,
        "items": [
            {"id": each.id, "period": each.period, "unit": each.unit, "limit": each.limit, "action": each.action}
            for each in items
        ],
    }
