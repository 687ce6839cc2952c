"""Storage and event loops of the engine tests.

`world` is SQLite storage, in `make test-all` also in-memory storage; `memory` is in-memory storage, there also on trio;
`virtual` is in-memory storage in virtual time: whenever all tasks wait, the clock jumps to the next deadline.
"""

import shutil
from pathlib import Path

import anyio
import pytest
import trio
import trio.testing

from holdfast.testing import FakeClock
from tests.harness import AnyWorld, SqliteWorld, World

pytest.register_assert_rewrite("tests.engine.checks")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "world" in metafunc.fixturenames:
        places = [
            pytest.param("asyncio", "memory", id="memory", marks=pytest.mark.soak),
            pytest.param("trio", "memory", id="memory-trio", marks=pytest.mark.soak),
            pytest.param("asyncio", "sqlite", id="sqlite"),
        ]
        metafunc.parametrize(("anyio_backend", "world"), places, indirect=["world"])
    elif "memory" in metafunc.fixturenames:
        trio_too = pytest.param("trio", marks=pytest.mark.soak)
        metafunc.parametrize("anyio_backend", ["asyncio", trio_too])
    elif "virtual" in metafunc.fixturenames:
        clock = trio.testing.MockClock(autojump_threshold=0)
        metafunc.parametrize("anyio_backend", [("trio", {"clock": clock})], ids=["virtual"])


@pytest.fixture(scope="session")
def empty_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with empty databases. Making one costs a dozen flushes, a copy none."""
    path = tmp_path_factory.mktemp("empty") / "data"

    async def make() -> None:
        async with SqliteWorld(path).open():
            pass

    anyio.run(make)
    return path


@pytest.fixture
def sqlite(empty_directory: Path, tmp_path: Path) -> SqliteWorld:
    shutil.copytree(empty_directory, tmp_path / "data")
    return SqliteWorld(tmp_path / "data")


@pytest.fixture
def world(request: pytest.FixtureRequest) -> AnyWorld:
    if request.param == "memory":
        return World()
    sqlite: SqliteWorld = request.getfixturevalue("sqlite")
    return sqlite


@pytest.fixture
def memory() -> World:
    return World()


class VirtualClock(FakeClock):
    """Storage's clock, driven by the event loop's."""

    def now(self) -> float:
        return super().now() + trio.current_time()


@pytest.fixture
def virtual() -> World:
    return World(clock=VirtualClock())
