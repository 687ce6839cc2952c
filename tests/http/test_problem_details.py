"""Errors as problem details: which type and title a status has."""

import pytest
from starlette.exceptions import HTTPException

from holdfast.server.access_rules import loggable_path
from holdfast.server.problem_details import TITLES, from_exception


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 408, 413, 415, 416, 504])
def test_each_status_that_a_route_raises_is_named(status: int) -> None:
    """Only 400 is a bad request, and each has a title."""
    body = bytes(from_exception(HTTPException(status, "Why.")).body).decode()
    assert ('"bad-request"' in body) == (status == 400)
    assert f'"title":"{TITLES[status]}"' in body


@pytest.mark.parametrize("path", ["/share/secret", "//share/secret", "/x/share/secret", "/h/share/secret/more"])
def test_the_token_of_a_link_is_not_logged(path: str) -> None:
    """Wherever it is in a path."""
    assert "secret" not in loggable_path(path)
    assert loggable_path("/api/shares/share_1") == "/api/shares/share_1"
