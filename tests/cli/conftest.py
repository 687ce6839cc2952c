"""Fixtures: a server process as in the HTTP tests, and its data directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminal import nurseries
from tests.fork_server import ForkServer, ServerForker
from tests.http.conftest import Start, http_forker, shared, start
from tests.http.conftest import fresh as server

__all__ = ["Start", "http_forker", "server", "shared", "start"]


@pytest.fixture(scope="session", autouse=True)
def command_forker(fork_server: ForkServer) -> Iterator[None]:
    """Forks the processes of `terminal.holdfast` and `terminal.Terminal`."""
    nurseries.append(ServerForker(fork_server, "tests.cli.program"))
    yield
    nurseries.clear()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"
