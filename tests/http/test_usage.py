"""Usage, budgets and prices over HTTP."""

import csv
import io
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.http.client import Served
from tests.http.conftest import Start

ANSWER: list[Any] = [{"say": "yes"}, {"usage": [900, 100]}]
DAILY = {"period": "day", "unit": "tokens", "limit": 1000, "action": "refuse"}


def test_usage_is_read_by_day_model_and_project(fresh: Served) -> None:
    """Every answer once; a deleted chat still counts, and a day without use is listed."""
    garden = fresh.session(project="garden", model="m/large")
    other = fresh.session(model="m/small")
    for sid in (garden, other, other):
        fresh.ended(fresh.begin(sid, ANSWER))
    fresh.call("DELETE", f"/api/sessions/{garden}", expect=204)
    days = fresh.get("/api/usage")
    assert (days["by"], len(days["items"]), days["items"][-1]["key"]) == ("day", 30, days["last_day"])
    assert sum(day["runs"] for day in days["items"]) == 3
    assert days["total"] == {
        "runs": 3,
        "input_tokens": 2700,
        "output_tokens": 300,
        "cached_tokens": 0,
        "reasoning_tokens": 0,
        "cost": None,
        "estimated_cost": 0.0,
        "unpriced_tokens": 3000,
        "seconds": days["total"]["seconds"],
    }
    models = fresh.get("/api/usage?by=model")["items"]
    assert [(item["key"], item["runs"], item["price"]) for item in models] == [
        ("m/small", 2, None),
        ("m/large", 1, None),
    ]
    projects = fresh.get("/api/usage?by=project")["items"]
    assert [(item["key"], item["runs"]) for item in projects] == [("", 2), ("garden", 1)]


def test_prices_are_set_and_removed_one_by_one(fresh: Served) -> None:
    """They survive `kill -9` with everything else that an owner has set."""
    fresh.ended(fresh.begin(fresh.session(model="m/large"), ANSWER))
    price = {"input": 1000.0, "output": 2000.0, "cached_input": None}
    fresh.call("PATCH", "/api/prices", {"prices": {"m/large": {"input": 1000, "output": 2000}, "m/x": price}}, 200)
    changed = fresh.call("PATCH", "/api/prices", {"prices": {"m/x": None}}, 200)
    assert changed == fresh.get("/api/prices") == {"prices": {"m/large": price}}
    (item,) = fresh.get("/api/usage?by=model")["items"]
    assert (item["cost"], item["estimated_cost"], item["unpriced_tokens"]) == (1.1, 1.1, 0)
    assert (item["price"], item["has_own_price"]) == (price, True)


def test_usage_is_read_as_csv(fresh: Served) -> None:
    """A spreadsheet that opens it evaluates nothing that a project is called."""
    fresh.ended(fresh.begin(fresh.session(project='=HYPERLINK("x")'), ANSWER))
    response = fresh.http.get("/api/usage?by=project&format=csv&from=2020-01-01&to=2020-01-02")
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert 'filename="holdfast-usage-project-2020-01-01-2020-01-02.csv"' in response.headers["content-disposition"]
    assert response.text.splitlines()[1:] == []
    (row,) = csv.DictReader(io.StringIO(fresh.http.get("/api/usage?by=project&format=csv").text))
    assert (row["project"], row["input_tokens"], row["cost"]) == ('\'=HYPERLINK("x")', "900", "")


def test_a_reached_budget_answers_429_and_says_which_and_until_when(start: Start) -> None:
    """Nothing is stored, the active run ends as it would have, and a restart changes nothing."""
    server = start()
    server.set_budgets(DAILY)
    sid = server.session()
    active = server.stand(sid, [*ANSWER, {"meet": "here"}])
    waiting = server.begin(sid, ANSWER)
    server.order(open="here")
    assert [server.ended(rid)["status"] for rid in (active, waiting)] == ["complete", "complete"]
    server.kill()
    server = start()
    refused = server.refused("budget-reached", "POST", f"/api/sessions/{sid}/runs", {"input": "more"})
    assert refused["detail"].startswith("The daily budget of 1,000 tokens is used up: 2,000 tokens so far.")
    (state,) = server.get("/api/budgets")["items"]
    assert {name: state[name] for name in DAILY} == DAILY
    assert (state["used"], state["is_reached"], state["resets_at"]) == (2000, True, refused["resets_at"])
    assert len(server.messages(sid)) == 4
    server.set_budgets({**DAILY, "limit": 2001})
    server.send(sid, ANSWER)


def test_a_refused_comparison_leaves_nothing_behind(fresh: Served) -> None:
    """No chat without a message; one that was there before stays."""
    fresh.set_budgets({**DAILY, "limit": 0})
    sid = fresh.session()
    comparison = {"id": "cmp", "blind": False}
    for runs in ([{"input": "hi"}, {"input": "hi"}], [{"input": "hi", "session_id": sid}]):
        fresh.refused("budget-reached", "POST", "/api/compare", {"runs": runs, "comparison": comparison})
    assert [item["id"] for item in fresh.get("/api/sessions")["items"]] == [sid]
    assert fresh.get("/api/sessions?source=compare")["items"] == []


def test_a_budget_that_warns_says_so_in_the_answer(fresh: Served) -> None:
    assert fresh.send(fresh.session(), "hi")["warnings"] == []
    fresh.set_budgets({**DAILY, "limit": 0, "action": "warn"})
    (warning,) = fresh.send(fresh.session(), "hi")["warnings"]
    assert warning == "The daily budget of 0 tokens is used up: 0 tokens so far."


def test_budgets_are_added_and_removed_one_by_one(fresh: Served) -> None:
    """Also two that are alike, and at the same time: neither is lost. Neither changes the time zone."""
    fresh.call("PATCH", "/api/budgets", {"time_zone": "Europe/Berlin"}, 200)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: fresh.post("/api/budgets", DAILY, 201), range(8)))
    assert fresh.post("/api/budgets", DAILY, 429)["type"] == "quota-exceeded"
    ids = [item["id"] for item in fresh.get("/api/budgets")["items"]]
    assert len(set(ids)) == 8
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda bid: fresh.call("DELETE", f"/api/budgets/{bid}", expect=204), ids[1:]))
    left = fresh.get("/api/budgets")
    assert ([item["id"] for item in left["items"]], left["time_zone"]) == (ids[:1], "Europe/Berlin")
    fresh.refused("not-found", "DELETE", f"/api/budgets/{ids[1]}")


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("GET", "/api/usage?by=year", None, "by"),
        ("GET", "/api/usage?from=yesterday", None, "from"),
        ("GET", "/api/usage?from=2026-02-01&to=2026-01-01", None, "from"),
        ("GET", "/api/usage?from=2020-01-01&to=2026-01-01", None, "from"),
        ("GET", "/api/usage?to=9999-12-31", None, "to"),
        ("GET", "/api/usage?time_zone=Nowhere/Land", None, "time_zone"),
        ("PATCH", "/api/budgets", {"time_zone": "Nowhere/Land"}, "time_zone"),
        ("POST", "/api/budgets", {**DAILY, "limit": -1}, "limit"),
        ("POST", "/api/budgets", {**DAILY, "limit": True}, "limit"),
        ("POST", "/api/budgets", {**DAILY, "period": "year"}, "period"),
        ("PATCH", "/api/prices", {"prices": {"m": {"input": 1}}}, "prices.m.output"),
        ("PATCH", "/api/prices", {"prices": {"m": {"input": 1, "output": 1e9}}}, "prices.m.output"),
    ],
)
def test_what_cannot_be_is_refused_by_name(shared: Served, method: str, path: str, body: Any, field: str) -> None:
    assert shared.call(method, path, body, 422)["field"] == field
    assert shared.get("/api/budgets") == {"time_zone": "UTC", "time_zone_in_use": "UTC", "items": []}
