"""How long a login lasts, by the clocks of the nodes that give it and see it."""

from pathlib import Path

import pytest

from holdfast.faces.http.gate import COOKIE, COOKIE_DAYS, Gate
from holdfast.storage.keys import KeyFile
from holdfast.testing import FakeClock

DAY = 24 * 3600.0


def test_a_login_at_a_node_that_is_ahead_counts_at_one_that_is_behind(tmp_path: Path) -> None:
    """L7: clocks of nodes differ by seconds; the cookie of one is not from the future to the other."""
    clock, late = FakeClock(), FakeClock()
    late.advance(-20.0)
    one, other = (Gate(KeyFile(tmp_path), each, password="correct horse") for each in (clock, late))
    for gives, sees in ((one, other), (other, one)):
        assert sees.check({"cookie": f"{COOKIE}={gives.cookie()}"}).cookie


@pytest.mark.parametrize(("seconds", "counts"), [(DAY, True), (COOKIE_DAYS * DAY + 1, False), (-DAY, False)])
def test_a_login_lasts_for_its_days(tmp_path: Path, seconds: float, counts: bool) -> None:
    """By the server's clock, which is an argument; one that was far off when it gave the cookie makes it no good."""
    clock = FakeClock()
    gate = Gate(KeyFile(tmp_path), clock, password="correct horse")
    cookie = gate.cookie()
    clock.advance(seconds)
    assert gate.check({"cookie": f"{COOKIE}={cookie}"}).cookie == counts
