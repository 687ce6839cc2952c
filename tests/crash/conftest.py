"""What tests with real processes share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.lives import World
from tests.nursery import Nursery


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with Nursery("tests.crash.server") as nursery:
        yield nursery


@pytest.fixture
def world(tmp_path: Path, nursery: Nursery) -> World:
    return World(tmp_path / "data", nursery)
