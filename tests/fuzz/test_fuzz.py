"""The short one; `make fuzz` is the long one."""

import pytest

from tests.fuzz.fuzz import fuzz
from tests.http.client import Served
from tests.http.conftest import fresh as server
from tests.http.conftest import http_forker, start

__all__ = ["http_forker", "server", "start"]


@pytest.mark.timeout(400)
def test_no_request_yields_a_500_or_a_hang(server: Served) -> None:
    """Two requests to every call, made from the API's own description, one of them broken on purpose."""
    report = fuzz(server, 2, 1, lambda call, n: None)
    assert report.failures == []
    assert report.examples > 100
    assert server.get("/healthz") == {"status": "ok"}
