"""`holdfast usage`, as a table, as JSON and as CSV."""

import csv
import io
from datetime import UTC, datetime

from tests.cli.terminal import Terminal, as_json, ok, refused
from tests.http.client import Served
from tests.http.conftest import Start

ANSWER = [{"say": "yes"}, {"usage": [9000, 100]}]


def fill(server: Served) -> None:
    for fields in ({"model": "m/large", "project": "garden"}, {"model": "m/small"}, {"model": "m/small"}):
        server.ended(server.begin(server.session(**fields), ANSWER))
    server.call("PATCH", "/api/prices", {"prices": {"m/small": {"input": 1000, "output": 1000}}}, 200)
    budget = {"period": "day", "unit": "tokens", "limit": 27300, "action": "refuse"}
    server.set_budgets(budget)


def test_usage_for_people_and_for_programs(start: Start) -> None:
    """Through the running server and without one alike. A price is estimated, and an unknown cost is left empty."""
    server = start()
    fill(server)
    data = server.data_dir
    for _ in range(2):
        rows = [line.split("\t") for line in ok("usage", "--by", "model", data=data).splitlines()]
        assert [row[:5] for row in rows] == [
            ["m/small", "2", "18,000", "200", "~$18.20"],
            ["m/large", "1", "9,000", "100", ""],
        ]
        today = datetime.now(UTC).date().isoformat()
        assert today in [line.split("\t")[0] for line in ok("usage", data=data).splitlines()]
        projects = list(csv.DictReader(io.StringIO(ok("usage", "--by", "project", "--csv", data=data))))
        assert [(row["project"], row["input_tokens"]) for row in projects] == [("", "18000"), ("garden", "9000")]
        found = as_json("usage", "--by", "project", "--from", "2020-01-01", "--to", "2020-02-01", data=data)
        assert (found["items"], found["budgets"][0]["used"]) == ([], 27300)
        server.terminate()


def test_a_person_sees_totals_budgets_and_what_is_unknown(start: Start) -> None:
    server = start()
    fill(server)
    with Terminal("usage", "--by", "model", data=server.data_dir, width=100) as terminal:
        assert terminal.end() == 0
    for text in ("total", "27,000", "~ Estimated from prices", "9,100 tokens is unknown", "new messages are refused"):
        assert text in terminal.seen
    with Terminal("usage", "--from", "2020-01-01", "--to", "2020-01-02", data=server.data_dir, width=100) as terminal:
        assert terminal.end() == 0
    assert "No answers from 2020-01-01 to 2020-01-02." in terminal.seen


def test_a_wrong_grouping_or_day_is_refused(shared: Served) -> None:
    refused("usage", "--by", "year", data=shared.data_dir, message="must be one of day, model, project", code=2)
    refused("usage", "--from", "yesterday", data=shared.data_dir, message="from")
