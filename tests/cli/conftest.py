"""A server process of a test's own, as the HTTP tests have it, and the directory it serves."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminal import nurseries
from tests.http.conftest import Start, http_nursery, server, start
from tests.nursery import Nursery

__all__ = ["Start", "http_nursery", "server", "start"]


@pytest.fixture(scope="session", autouse=True)
def command_nursery() -> Iterator[None]:
    """What `terminal.holdfast` and `terminal.Terminal` start their processes with."""
    with Nursery("tests.cli.program") as nursery:
        nurseries.append(nursery)
        yield
        nurseries.clear()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"
