"""Times of a server, as a person reads them on another machine."""

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.faces.cli.screen import ago

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0 s"), (89, "89 s"), (90, "1 min"), (7200, "2 h"), (3 * 86400, "3 d"), (-5, "0 s"), (-86400, "2026-03-02")],
)
def test_a_time_is_said_as_an_age(seconds: float, shown: str) -> None:
    """A server whose clock is a few seconds ahead has done it just now, and not on a date."""
    assert ago((NOW - timedelta(seconds=seconds)).isoformat(), NOW) == shown
