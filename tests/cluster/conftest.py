"""Nodes that share one PostgreSQL, with nginx in front: all of them real."""

import itertools
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.fork_server import ForkServer, ServerForker
from tests.http.client import Served
from tests.servers import Nginx, PostgresServer, RedisServer, Wire, free_port, load_balancer


@pytest.fixture(scope="session")
def cluster_forker(fork_server: ForkServer) -> ServerForker:
    return ServerForker(fork_server, "tests.http.server")


@pytest.fixture(scope="session")
def durable_postgres() -> Iterator[PostgresServer]:
    """Everything is on that makes a commit outlive a crash."""
    with closing(PostgresServer(durable=True)) as server:
        yield server.start()


NUMBERS = itertools.count(1)


class Cluster:
    """Three nodes at most, each with its own data directory and port, the same after a restart."""

    def __init__(self, forker: ServerForker, root: Path, postgres: PostgresServer, **settings: Any) -> None:
        self._forker = forker
        self._root = root
        self.postgres = postgres
        self.database = f"cluster_{next(NUMBERS)}"
        postgres.database(self.database)
        self._settings = settings
        self.ports = [free_port() for _ in range(3)]
        self.nodes: dict[int, Served] = {}
        self._lives: list[Served] = []
        self._nginx: Nginx | None = None
        self._wires: list[Wire] = []

    @property
    def store_url(self) -> str:
        return self.postgres.url(self.database)

    def start(self, n: int, *, wire: Wire | None = None, **settings: Any) -> Served:
        """Start node `n`, once or after its last life has ended."""
        url = self.store_url if wire is None else self.postgres.url(self.database, port=wire.port)
        served = Served(
            self._forker,
            self._root / f"node{n}",
            **{**self._settings, "store_url": url, **settings, "port": self.ports[n]},
        )
        self._lives.append(served)
        self.nodes[n] = served
        return served.ready()

    def wire(self, port: int | None = None) -> Wire:
        self._wires.append(Wire(port or self.postgres.port))
        return self._wires[-1]

    @property
    def front(self) -> str:
        """nginx's address."""
        if self._nginx is None:
            self._nginx = load_balancer(self.ports)
        return self._nginx.url

    def close(self) -> None:
        for served in self._lives:
            if served.exit_code is None:
                served.kill()
        for wire in self._wires:
            wire.close()
        if self._nginx is not None:
            self._nginx.close()

    @property
    def complaints(self) -> str:
        return "\n".join(served.complaints for served in self._lives)


QUICK: dict[str, Any] = {"lease_time": 60.0, "engine": {"sweep_interval": 0.5, "poll_interval": 1.0}}
"""Leases are longer than a busy machine takes for a renewal."""
SHORT_LEASE: dict[str, Any] = {"lease_time": 3.0}
"""For nodes whose leases a test lets lapse."""


@pytest.fixture
def cluster(cluster_forker: ServerForker, tmp_path: Path, durable_postgres: PostgresServer) -> Iterator[Cluster]:
    with closing(Cluster(cluster_forker, tmp_path, durable_postgres, **QUICK)) as made:
        yield made
    assert "Exception in ASGI application" not in made.complaints, made.complaints


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with closing(RedisServer()) as server:
        yield server.start()


@pytest.fixture
def with_redis(
    cluster_forker: ServerForker, tmp_path: Path, durable_postgres: PostgresServer, redis: RedisServer
) -> Iterator[Cluster]:
    """The store in PostgreSQL, the journal in Redis."""
    with closing(Cluster(cluster_forker, tmp_path, durable_postgres, **QUICK, journal_url=redis.url)) as made:
        yield made
    assert "Exception in ASGI application" not in made.complaints, made.complaints
