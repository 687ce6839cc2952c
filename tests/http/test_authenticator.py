"""The lifetime of a login, and the rate limit for password attempts."""

from pathlib import Path

import pytest

from holdfast.server.authenticator import COOKIE, IDLE_DAYS, LOGIN_DAYS, Authenticator
from holdfast.server.login_limiter import FORGET_AFTER, FREE_ATTEMPTS, MAX_WAIT, LoginRateLimiter
from holdfast.storage.key_file import KeyFile
from holdfast.testing import FakeClock

DAY = 24 * 3600.0


pytestmark = pytest.mark.anyio


async def logged_in(authenticator: Authenticator, cookie: str) -> bool:
    _, credentials = await authenticator.authenticate({"cookie": f"{COOKIE}={cookie}"}, secure=False)
    return credentials.login is not None


async def test_a_login_at_a_node_whose_clock_is_ahead_is_valid_everywhere(tmp_path: Path) -> None:
    """L7: the clocks of nodes differ by seconds; every node accepts the logins of the others."""
    clock, late = FakeClock(), FakeClock()
    late.advance(-20.0)
    one, other = (Authenticator(KeyFile(tmp_path), each, password="correct horse") for each in (clock, late))
    for issuer, reader in ((one, other), (other, one)):
        assert await logged_in(reader, await issuer.log_in("Firefox", "::1"))


@pytest.mark.parametrize(("seconds", "counts"), [(DAY, True), (IDLE_DAYS * DAY + 1, False), (-DAY, False)])
async def test_a_login_ends_when_it_is_not_used(tmp_path: Path, seconds: float, counts: bool) -> None:
    """An idle login expires, and one from a clock that was far ahead is not accepted."""
    clock = FakeClock()
    authenticator = Authenticator(KeyFile(tmp_path), clock, password="correct horse")
    cookie = await authenticator.log_in("Firefox", "::1")
    clock.advance(seconds)
    assert await logged_in(authenticator, cookie) == counts


async def test_a_login_that_is_used_lasts_for_its_days(tmp_path: Path) -> None:
    """Its use is saved for other processes and the next start, in few writes; after a month it ends all the same."""
    clock, keys = FakeClock(), KeyFile(tmp_path)
    authenticator = Authenticator(keys, clock, password="correct horse")
    cookie = await authenticator.log_in("Firefox", "::1")
    before = (tmp_path / "keys.json").stat().st_ino
    for _ in range(3):
        clock.advance(60.0)
        assert await logged_in(authenticator, cookie)
        await authenticator.save_uses()
    assert (tmp_path / "keys.json").stat().st_ino == before
    for _ in range(LOGIN_DAYS - 1):
        clock.advance(DAY)
        assert await logged_in(authenticator, cookie)
        await authenticator.save_uses()
        assert [login.used_at for login in keys.read().logins] == [clock.now()]
    assert await logged_in(Authenticator(keys, clock, password="correct horse"), cookie)
    clock.advance(DAY)
    assert not await logged_in(authenticator, cookie)


async def test_the_number_of_logins_is_limited(tmp_path: Path) -> None:
    """The one that was not used for the longest time makes room for another."""
    clock, keys = FakeClock(), KeyFile(tmp_path)
    authenticator = Authenticator(keys, clock, password="correct horse")
    cookies = []
    for _ in range(101):
        clock.advance(1.0)
        cookies.append(await authenticator.log_in("Firefox", "::1"))
    assert len(keys.read().logins) == 100
    assert [await logged_in(authenticator, cookie) for cookie in cookies[:2]] == [False, True]


async def test_a_few_attempts_are_free_then_each_doubles_the_wait() -> None:
    """Up to five minutes per attempt."""
    limiter, waits = LoginRateLimiter(), []
    for _ in range(FREE_ATTEMPTS + 20):
        waits.append(limiter.wait("10.0.0.1", 0.0))
        limiter.record_attempt("10.0.0.1", 0.0)
    assert waits[:FREE_ATTEMPTS] == [0.0] * FREE_ATTEMPTS
    assert waits[FREE_ATTEMPTS : FREE_ATTEMPTS + 4] == [1.0, 2.0, 4.0, 8.0]
    assert waits[-1] == MAX_WAIT


async def test_each_client_has_its_own_count() -> None:
    """A count is reset after an hour, or by the right password."""
    limiter = LoginRateLimiter()
    for _ in range(FREE_ATTEMPTS):
        limiter.record_attempt("a", 0.0)
    assert limiter.wait("a", 0.0) > 0
    assert limiter.wait("b", 0.0) == 0
    assert limiter.wait("a", FORGET_AFTER) == 0
    limiter.reset("a")
    assert limiter.wait("a", 0.0) == 0


async def test_many_addresses_have_a_common_limit() -> None:
    """The memory for clients is limited too."""
    limiter = LoginRateLimiter(free_in_total=100)
    for n in range(50_000):
        limiter.record_attempt(f"address {n}", 0.0)
    assert limiter.wait("one more", 0.0) == MAX_WAIT
    assert len(limiter._by_client) <= 10_000


async def test_a_correct_password_clears_the_attempts_of_its_own_client_only() -> None:
    """A successful login at one address does not lift the common limit that attempts from others have reached."""
    limiter = LoginRateLimiter(free_in_total=10)
    for n in range(12):
        limiter.record_attempt(f"address {n}", 0.0)
    limiter.record_attempt("own", 0.0)
    limiter.reset("own")
    assert limiter.wait("own", 0.0) == limiter.wait("another", 0.0) == 4.0
