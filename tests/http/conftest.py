"""Real server processes, one data directory a test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fork_server import ForkServer, ServerForker
from tests.http.client import Served

Start = Callable[..., Served]


@pytest.fixture(scope="session")
def http_forker(fork_server: ForkServer) -> ServerForker:
    return ServerForker(fork_server, "tests.http.server")


@contextmanager
def starting(make: Start) -> Iterator[Start]:
    """Servers of one test; no call of theirs may end in an exception that nobody foresaw."""
    lives: list[Served] = []
    with ExitStack() as started:

        def begin(**settings: Any) -> Served:
            lives.append(started.enter_context(make(**settings)))
            return lives[-1].ready()

        yield begin
    for served in lives:
        assert "Exception in ASGI application" not in served.complaints, served.complaints


@pytest.fixture
def start(tmp_path: Path, http_forker: ServerForker) -> Iterator[Start]:
    """Start a server on the test's directory, once or after the last one has gone."""
    with starting(lambda **settings: Served(http_forker, tmp_path / "data", **settings)) as begin:
        yield begin


@pytest.fixture
def fresh(start: Start) -> Served:
    """A process of its own, for a test that counts, restarts or looks into the directory."""
    return start()


@pytest.fixture(scope="session")
def reusable() -> Iterator[list[Served]]:
    """The server that the next test can use, if there is one."""
    found: list[Served] = []
    yield found
    for served in found:
        served.kill()


@pytest.fixture
def server(
    tmp_path_factory: pytest.TempPathFactory, http_forker: ServerForker, reusable: list[Served]
) -> Iterator[Served]:
    """A server without sessions. One process serves many tests and is cleaned after each."""
    if not reusable:
        reusable.append(Served(http_forker, tmp_path_factory.mktemp("reused") / "data").ready())
    served = reusable.pop()
    before = len(served.complaints)
    with ExitStack() as unclean:
        unclean.enter_context(served)
        yield served
        assert "Exception in ASGI application" not in served.complaints[before:], served.complaints
        if served.exit_code is None:
            served.clean()
            unclean.pop_all()
            reusable.append(served)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, http_forker: ServerForker) -> Iterator[Served]:
    """One server for tests that leave nothing behind which another would notice."""
    with Served(http_forker, tmp_path_factory.mktemp("shared") / "data") as served:
        yield served.ready()
