"""A server process of a test's own, as the HTTP tests have it, and the directory it serves."""

from pathlib import Path

import pytest

from tests.http.conftest import Start, http_nursery, server, start

__all__ = ["Start", "http_nursery", "server", "start"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"
