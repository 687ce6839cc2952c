"""Fixtures every test can rely on."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.fork_server import ForkServer, hash_passwords_quickly

pytest.register_assert_rewrite("holdfast.testing.contracts")  # suites that live in the package

_MEMORY: Final = Path("/dev/shm")
_ENOUGH: Final = 4 << 30


def pytest_configure(config: pytest.Config) -> None:
    """Put temporary files in memory if there is room: thousands of small databases wait for the disk otherwise."""
    if config.getoption("--hypothesis-profile"):  # imported only then: it takes long
        from hypothesis import settings

        settings.register_profile("long", max_examples=1000, deadline=None)
    if "TMPDIR" in os.environ or not _MEMORY.is_dir():
        return
    if shutil.disk_usage(_MEMORY).free > _ENOUGH and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Give properties fewer examples, and no deadline, which a busy machine misses; without importing Hypothesis."""
    if "hypothesis" in sys.modules and not session.config.getoption("--hypothesis-profile"):
        from hypothesis import settings

        settings.register_profile("short", max_examples=40, deadline=None)
        settings.load_profile("short")


@pytest.fixture(scope="session", autouse=True)
def _quick_passwords() -> None:
    hash_passwords_quickly()


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """Forks all servers of this worker."""
    with ForkServer() as forks:
        yield forks


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The event loop of `@pytest.mark.anyio` tests; parametrize a test over this name to choose another."""
    return "asyncio"
