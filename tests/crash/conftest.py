"""What tests with real processes share."""

from pathlib import Path

import pytest

from tests.crash.random_restarts import World
from tests.fork_server import ForkServer, ServerForker


@pytest.fixture(scope="session")
def forker(fork_server: ForkServer) -> ServerForker:
    return ServerForker(fork_server, "tests.crash.server")


@pytest.fixture
def world(tmp_path: Path, forker: ServerForker) -> World:
    return World(tmp_path / "data", forker)
