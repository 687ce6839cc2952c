"""Fixtures: a server process as in the HTTP tests, and its data directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminal import nurseries
from tests.http.conftest import Start, http_nursery, shared, start
from tests.http.conftest import fresh as server
from tests.nursery import ForkServer, Nursery

__all__ = ["Start", "http_nursery", "server", "shared", "start"]


@pytest.fixture(scope="session", autouse=True)
def command_nursery(fork_server: ForkServer) -> Iterator[None]:
    """Forks the processes of `terminal.holdfast` and `terminal.Terminal`."""
    nurseries.append(Nursery(fork_server, "tests.cli.program"))
    yield
    nurseries.clear()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"
