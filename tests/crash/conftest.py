"""What tests with real processes share."""

from pathlib import Path

import pytest

from tests.crash.lives import World
from tests.nursery import ForkServer, Nursery


@pytest.fixture(scope="session")
def nursery(fork_server: ForkServer) -> Nursery:
    return Nursery(fork_server, "tests.crash.server")


@pytest.fixture
def world(tmp_path: Path, nursery: Nursery) -> World:
    return World(tmp_path / "data", nursery)
