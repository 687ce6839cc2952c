"""What people watch a server with: the dashboard over its metrics, and the ids in its log."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.http.client import Served
from tests.http.conftest import Start

ROOT: Final = Path(__file__).parents[2]
DASHBOARD: Final = ROOT / "deploy" / "grafana" / "holdfast.json"
_NAME: Final = re.compile(r"\bholdfast_[a-z_]+")


def _names_in_metrics(served: Served) -> set[str]:
    """Of all samples, and of metrics that have none yet."""
    text = served.http.get("/metrics").text
    described = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    return set(_NAME.findall(text)) | {f"{name}_bucket" for name, kind in described if kind == "histogram"}


def _values(item: Any, key: str) -> list[Any]:
    if isinstance(item, dict):
        return [value for name, value in item.items() if name == key] + _values(list(item.values()), key)
    return [found for each in item for found in _values(each, key)] if isinstance(item, list) else []


def test_the_dashboard_shows_metrics_that_exist(shared: Served) -> None:
    """Every metric in a panel or variable is one of the server's, and every metric is documented."""
    board = json.loads(DASHBOARD.read_text())
    queries = [text for text in _values(board, "expr") + _values(board, "definition") if isinstance(text, str)]
    assert len(queries) >= len(board["panels"])
    names = _names_in_metrics(shared)
    assert sorted({name for text in queries for name in _NAME.findall(text)} - names) == []
    text = shared.http.get("/metrics").text
    documented = (ROOT / "docs" / "how-to" / "observability.md").read_text()
    types = re.findall(r"^# TYPE (holdfast_\S+) (?:counter|gauge|histogram)$", text, re.MULTILINE)
    assert [name for name in types if f"`{name}`" not in documented] == []


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_log_lines_of_a_run_have_its_ids(start: Start, log_format: str) -> None:
    """Both when a run ends and when it fails, in both formats."""
    served = start(log_level="info", log_format=log_format)
    sid = served.session()
    runs = [served.begin(sid, "fine"), served.begin(sid, [{"crash": True}])]
    for rid in runs:
        served.ended(rid)
    lines = served.complaints.splitlines()
    for rid, text in zip(runs, ("ended: complete", "ended: failed"), strict=True):
        (line,) = [line for line in lines if rid in line and text in line]
        if log_format == "json":
            assert (json.loads(line)["run"], json.loads(line)["session"]) == (rid, sid)
        else:
            assert line.endswith(f"session={sid}")
    assert any(runs[1] in line and sid in line and " failed" in line and "ended" not in line for line in lines)
