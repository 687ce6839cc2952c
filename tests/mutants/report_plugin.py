"""A pytest plugin for the runs on mutated code: writes down which code that was, what was selected and what failed."""

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Final, TypedDict

import pytest

import holdfast

REPORT: Final = "MUTANTS_REPORT"
"""Environment variable that names the file."""


class Report(TypedDict):
    package: str
    """Where `holdfast` was imported from."""
    selected: dict[str, str]
    """The docstrings of the tests, by node id."""
    failed: list[str]
    """Tests whose own code failed; trouble with fixtures or collection is not a test that noticed something."""


class Witness:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._report: Report = {"package": str(holdfast.__file__), "selected": {}, "failed": []}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            function = getattr(item, "function", None)
            self._report["selected"][item.nodeid] = getattr(function, "__doc__", None) or ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.when == "call" and report.failed:
            self._report["failed"].append(item.nodeid)
        return report

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(json.dumps(self._report))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Witness(Path(os.environ[REPORT])))
