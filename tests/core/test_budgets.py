"""Budgets: their periods, in every time zone, and their storage."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.budgets import (
    Budget,
    Budgets,
    bounds,
    budgets_to_json,
    constant_offsets,
    day_of,
    find_zone,
    midnight,
    read_budgets,
    state_of,
)
from holdfast.core.usage import QUARTER, UsageSummary

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Santiago")


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("period", "zone", "now", "begins", "ends"),
    [
        ("day", "UTC", "2026-11-19T23:59:59Z", "2026-11-19T00:00:00Z", "2026-11-20T00:00:00Z"),
        ("day", "Asia/Kathmandu", "2026-11-19T18:15:00Z", "2026-11-19T18:15:00Z", "2026-11-20T18:15:00Z"),
        ("day", "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
        ("month", "UTC", "2026-12-31T12:00:00Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("month", "Europe/Berlin", "2026-03-31T22:30:00Z", "2026-03-31T22:00:00Z", "2026-04-30T22:00:00Z"),
        ("month", "UTC", "2028-02-29T00:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"),
    ],
)
def test_days_and_months_begin_at_local_midnight(period: Any, zone: str, now: str, begins: str, ends: str) -> None:
    """Also when the day has 25 hours, and at the last and first moment of a period."""
    found = find_zone(zone)
    assert found is not None
    assert bounds(period, at(now), found) == (at(begins), at(ends))


@given(zone=st.sampled_from(ZONES), first=st.dates(date(2001, 1, 1), date(2030, 1, 1)), days=st.integers(0, 365))
def test_parts_with_a_constant_offset_tell_each_moment_its_local_day(zone: str, first: date, days: int) -> None:
    """The parts cover the period without gaps, are few, and give the day that the calendar gives."""
    found = find_zone(zone)
    assert found is not None
    last = first + timedelta(days=days)
    parts = constant_offsets(first, last, found)
    assert (parts[0][0], parts[-1][1]) == (midnight(first, found), midnight(last + timedelta(days=1), found))
    assert [end for _, end, _ in parts[:-1]] == [begin for begin, _, _ in parts[1:]]
    assert len(parts) <= 4
    for begin, end, offset in parts:
        for moment in (begin, (begin + end) / 2, end - 1):
            number = int((moment + offset) // 86400)
            assert date(1970, 1, 1) + timedelta(days=number) == day_of(moment, found)


def test_every_day_begins_with_a_quarter_of_an_hour() -> None:
    """So the usage of erased runs, which is kept by quarters, is of one day in every time zone."""
    for zone in map(ZoneInfo, available_timezones() - {"localtime"}):
        for month in range(2000 * 12, 2038 * 12):
            assert midnight(date(month // 12, month % 12 + 1, 1), zone) % QUARTER == 0, zone


@pytest.mark.parametrize("name", ["", "Nowhere/Land", "../../etc/passwd", "/etc/passwd", "Europe", "a\x00b"])
def test_an_unknown_time_zone_is_none(name: str) -> None:
    assert find_zone(name) is None
    assert (Budgets(name).zone, Budgets(name).time_zone_in_use) == (UTC, "UTC")
    assert Budgets("Europe/Berlin").time_zone_in_use == "Europe/Berlin"


def test_a_budget_is_reached_at_its_limit() -> None:
    tokens, money = Budget("day", "tokens", 1000, "warn"), Budget("month", "usd", 2.5, "refuse")
    used = UsageSummary(input_tokens=999, output_tokens=1, cost=2.49, unpriced_tokens=70)
    assert state_of(tokens, used, 5.0).is_reached
    state = state_of(money, used, 5.0)
    assert (state.is_reached, state.used, state.unpriced_tokens) == (False, 2.49, 70)
    assert tokens.name == "daily budget of 1,000 tokens"
    assert state.message == "The monthly budget of $2.50 is used up: $2.49 so far."
    assert state_of(money, UsageSummary(), 5.0).used == 0.0


def test_budgets_survive_being_stored_and_what_is_none_is_left_out() -> None:
    items = (Budget("day", "tokens", 1000, "warn", "bud_a"), Budget("month", "usd", 2.5, "refuse", "bud_b"))
    stored: Any = budgets_to_json("Europe/Berlin", items)
    assert read_budgets({"budgets": stored}) == Budgets("Europe/Berlin", items)
    good = stored["items"][0]
    damaged = [None, 7, {}, {**good, "period": "year"}, {**good, "limit": "1"}, {**good, "limit": -1}]
    damaged += [{**good, "limit": True}, {**good, "limit": float("inf")}, {**good, "limit": float("nan")}, good]
    assert read_budgets({"budgets": {"time_zone": 3, "items": damaged}}) == Budgets("UTC", items[:1])
    assert read_budgets({}) == read_budgets({"budgets": [1]}) == Budgets()


def test_budgets_that_were_stored_without_ids_get_some() -> None:
    """They differ, also of budgets that are alike, and are the same until something is changed."""
    plain = {"period": "day", "unit": "tokens", "limit": 5, "action": "warn"}
    found = read_budgets({"budgets": {"time_zone": "UTC", "items": [plain, plain]}})
    assert [each.id for each in found.items] == ["bud_1", "bud_2"]
    kept: Any = budgets_to_json("UTC", found.items[1:])
    assert [each.id for each in read_budgets({"budgets": kept}).items] == ["bud_2"]
