"""The lifetime of a login, and the rate limit for password attempts."""

from pathlib import Path

import pytest

from holdfast.server.authenticator import COOKIE, COOKIE_DAYS, Authenticator
from holdfast.server.login_limiter import FORGET_AFTER, FREE_ATTEMPTS, MAX_WAIT, LoginRateLimiter
from holdfast.storage.key_file import KeyFile
from holdfast.testing import FakeClock

DAY = 24 * 3600.0


def test_a_login_at_a_node_whose_clock_is_ahead_is_valid_everywhere(tmp_path: Path) -> None:
    """L7: the clocks of nodes differ by seconds; every node accepts the cookies of the others."""
    clock, late = FakeClock(), FakeClock()
    late.advance(-20.0)
    one, other = (Authenticator(KeyFile(tmp_path), each, password="correct horse") for each in (clock, late))
    for issuer, reader in ((one, other), (other, one)):
        assert reader.check({"cookie": f"{COOKIE}={issuer.cookie()}"}).cookie


@pytest.mark.parametrize(("seconds", "counts"), [(DAY, True), (COOKIE_DAYS * DAY + 1, False), (-DAY, False)])
def test_a_login_lasts_for_its_days(tmp_path: Path, seconds: float, counts: bool) -> None:
    """A cookie expires, and one from a clock that was far ahead is not accepted."""
    clock = FakeClock()
    authenticator = Authenticator(KeyFile(tmp_path), clock, password="correct horse")
    cookie = authenticator.cookie()
    clock.advance(seconds)
    assert authenticator.check({"cookie": f"{COOKIE}={cookie}"}).cookie == counts


def test_a_few_attempts_are_free_then_each_doubles_the_wait() -> None:
    """Up to five minutes per attempt."""
    limiter, waits = LoginRateLimiter(), []
    for _ in range(FREE_ATTEMPTS + 20):
        waits.append(limiter.wait("10.0.0.1", 0.0))
        limiter.record_attempt("10.0.0.1", 0.0)
    assert waits[:FREE_ATTEMPTS] == [0.0] * FREE_ATTEMPTS
    assert waits[FREE_ATTEMPTS : FREE_ATTEMPTS + 4] == [1.0, 2.0, 4.0, 8.0]
    assert waits[-1] == MAX_WAIT


def test_each_client_has_its_own_count() -> None:
    """A count is reset after an hour, or by the right password."""
    limiter = LoginRateLimiter()
    for _ in range(FREE_ATTEMPTS):
        limiter.record_attempt("a", 0.0)
    assert limiter.wait("a", 0.0) > 0
    assert limiter.wait("b", 0.0) == 0
    assert limiter.wait("a", FORGET_AFTER) == 0
    limiter.reset("a")
    assert limiter.wait("a", 0.0) == 0


def test_many_addresses_have_a_common_limit() -> None:
    """The memory for clients is limited too."""
    limiter = LoginRateLimiter(free_in_total=100)
    for n in range(50_000):
        limiter.record_attempt(f"address {n}", 0.0)
    assert limiter.wait("one more", 0.0) == MAX_WAIT
    assert len(limiter._by_client) <= 10_000


def test_a_correct_password_clears_the_attempts_of_its_own_client_only() -> None:
    """A successful login at one address does not lift the common limit that attempts from others have reached."""
    limiter = LoginRateLimiter(free_in_total=10)
    for n in range(12):
        limiter.record_attempt(f"address {n}", 0.0)
    limiter.record_attempt("own", 0.0)
    limiter.reset("own")
    assert limiter.wait("own", 0.0) == limiter.wait("another", 0.0) == 4.0
