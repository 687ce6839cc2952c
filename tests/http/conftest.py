"""Real server processes, one data directory a test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.http.client import Served
from tests.nursery import Nursery

Start = Callable[..., Served]


@pytest.fixture(scope="session")
def http_nursery() -> Iterator[Nursery]:
    with Nursery("tests.http.server") as nursery:
        yield nursery


@pytest.fixture
def start(tmp_path: Path, http_nursery: Nursery) -> Iterator[Start]:
    """Start a server on the test's directory, once or after the last one has gone."""
    lives: list[Served] = []
    with ExitStack() as started:

        def begin(**settings: Any) -> Served:
            lives.append(started.enter_context(Served(http_nursery, tmp_path / "data", **settings)))
            return lives[-1].ready()

        yield begin
    for served in lives:  # no call may end in an exception that nobody foresaw
        assert "Exception in ASGI application" not in served.complaints, served.complaints


@pytest.fixture
def server(start: Start) -> Served:
    return start()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, http_nursery: Nursery) -> Iterator[Served]:
    """One server for tests that leave nothing behind which another would notice."""
    with Served(http_nursery, tmp_path_factory.mktemp("shared") / "data") as served:
        yield served.ready()
