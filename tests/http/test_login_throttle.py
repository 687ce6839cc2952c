"""The order in which passwords are checked, with the time as an input."""

import resource
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.server.login_throttle import (
    FORGET_AFTER,
    FREE_ATTEMPTS,
    MAX_PAUSE,
    MIN_PAUSE,
    WAITING_TIME,
    LoginThrottle,
)


class Checker:
    """Makes every check as soon as the throttle allows it, in no time. Only "owner" has the right password."""

    def __init__(self, seed: int = 1) -> None:
        self.throttle: LoginThrottle[str] = LoginThrottle(Random(seed).random)
        self.now = 1000.0
        self.checks = 0

    def step(self) -> str | None:
        """The next attempt that is checked, after the pause that there is before it."""
        attempt = self.throttle.draw(self.now)
        while attempt is None:
            if self.throttle.next_time is None:
                return None
            self.now = self.throttle.next_time
            attempt = self.throttle.draw(self.now)
        self.checks += 1
        self.throttle.finish(attempt, self.now, right=attempt == "owner")
        return attempt

    def fail(self, client: str, count: int) -> list[float]:
        """The times of this many wrong passwords that come one after the other, from now."""
        began, times = self.now, []
        for n in range(count):
            self.throttle.add(client, f"{client} {self.checks} {n}", self.now)
            self.step()
            times.append(self.now - began)
        return times


def test_a_few_attempts_are_free_then_each_doubles_the_pause() -> None:
    """The pause grows to its maximum; an hour without an attempt, or the right password, ends it."""
    checker = Checker()
    assert checker.fail("a", 11) == [0.0] * FREE_ATTEMPTS + [1.0, 3.0, 7.0, 15.0, 30.0, 45.0]
    assert checker.fail("b", FREE_ATTEMPTS) == [0.0] * FREE_ATTEMPTS
    checker.now += MAX_PAUSE
    assert checker.throttle.draw(checker.now) is None
    checker.now += FORGET_AFTER
    assert checker.fail("a", FREE_ATTEMPTS + 1)[-1] == 1.0
    checker.throttle.add("a", "owner", checker.now)
    assert checker.step() == "owner"
    assert checker.fail("a", FREE_ATTEMPTS) == [0.0] * FREE_ATTEMPTS


@pytest.mark.parametrize("crowd", [1, 10, 30, 300, 2048])
def test_the_owner_at_the_address_of_a_crowd_gets_in(crowd: int) -> None:
    """The attacker always has as many attempts waiting. The longest wait and the mean are those that are documented."""
    waits = []
    for seed in range(30 if crowd < 1000 else 5):
        checker = Checker(seed)
        checker.fail("a", 20)
        for n in range(crowd):
            checker.throttle.add("a", f"guess {n}", checker.now)
        checker.throttle.add("a", "owner", checker.now)
        began, n = checker.now, crowd
        while (found := checker.step()) != "owner":
            assert found is not None
            n += 1
            checker.throttle.add("a", f"guess {n}", checker.now)
        waits.append(checker.now - began)
    longest = MAX_PAUSE + 2 * max(WAITING_TIME, MIN_PAUSE * crowd)
    assert max(waits) <= longest
    assert sum(waits) / len(waits) <= 0.8 * longest


@pytest.mark.parametrize("seed", range(5))
def test_an_attempt_that_a_proxy_gives_up_gets_in_too(seed: int) -> None:
    """It is repeated every minute and is always the youngest of a hundred; the random checks do not depend on age."""
    checker = Checker(seed)
    checker.fail("a", 20)
    for n in range(100):
        checker.throttle.add("a", f"guess {n}", checker.now)
    checker.throttle.add("a", "owner", checker.now)
    began = sent = checker.now
    while (found := checker.step()) != "owner":
        checker.throttle.add("a", f"{found} again", checker.now)
        if checker.now - sent >= 60.0:
            checker.throttle.remove("owner", checker.now)
            checker.throttle.add("a", "owner", checker.now)
            sent = checker.now
        assert checker.now - began < 3600.0


def test_guesses_from_one_address_are_limited() -> None:
    """However many attempts wait, an address gets one check a second, and one in 15 seconds if only one waits."""
    for crowd, seconds in ((1, MAX_PAUSE), (10, WAITING_TIME / 10), (5000, MIN_PAUSE)):
        checker = Checker()
        checker.fail("a", 20)
        for n in range(crowd):
            checker.throttle.add("a", f"guess {n}", checker.now)
        checker.step()
        for n in range(500):
            before = checker.now
            checker.throttle.add("a", f"more {n}", checker.now)
            checker.step()
            assert n == 0 or checker.now - before == pytest.approx(seconds)


def test_the_owner_elsewhere_goes_before_a_crowd_that_has_failed() -> None:
    """Of a thousand addresses that guess, at most one is checked before a first attempt."""
    checker = Checker()
    for n in range(1000):
        checker.throttle.add(f"address {n}", f"first {n}", checker.now)
    for _ in range(1000):
        checker.step()
    for n in range(1000):
        checker.throttle.add(f"address {n}", f"second {n}", checker.now)
    checker.throttle.add("home", "owner", checker.now)
    assert "owner" in [checker.step() for _ in range(2)]


def test_who_has_failed_is_not_starved_by_new_addresses() -> None:
    """A stream of addresses that have never failed always goes first by that rule, so half of the checks go by age."""
    checker = Checker()
    checker.fail("home", 2)
    for n in range(50):
        checker.throttle.add(f"address {n}", f"guess {n}", checker.now)
    checker.throttle.add("home", "owner", checker.now)
    found = []
    for n in range(50, 50 + 2 * 51):
        found.append(checker.step())
        checker.throttle.add(f"address {n}", f"guess {n}", checker.now)
    assert "owner" in found


def test_an_attempt_that_leaves_keeps_nothing() -> None:
    """It frees its place, is not checked and does not count as failed, also if it leaves while it is drawn."""
    checker = Checker()
    for n in range(10_000):
        checker.throttle.add("a", f"dropped {n}", checker.now)
    for n in range(10_000):
        checker.throttle.remove(f"dropped {n}", checker.now)
    assert (len(checker.throttle._attempts), checker.throttle.next_time) == (0, None)
    assert checker.fail("a", FREE_ATTEMPTS) == [0.0] * FREE_ATTEMPTS
    assert checker.throttle.draw(checker.now + MAX_PAUSE) is None
    checker.throttle.add("b", "drawn", checker.now)
    assert checker.throttle.draw(checker.now) == "drawn"
    checker.throttle.remove("drawn", checker.now)
    checker.throttle.finish("drawn", checker.now, right=False)
    assert checker.step() is None
    assert len(checker.throttle._attempts) == 0


def test_the_memory_for_clients_is_limited() -> None:
    """The client that did not come for the longest time is forgotten first; one with attempts is never forgotten."""
    checker = Checker()
    checker.fail("waits", FREE_ATTEMPTS + 1)
    checker.throttle.add("waits", "another", checker.now)
    for n in range(20_000):
        checker.throttle.add(f"address {n}", f"guess {n}", checker.now)
        drawn = checker.throttle.draw(checker.now)
        assert drawn is not None
        checker.throttle.finish(drawn, checker.now, right=False)
    assert len(checker.throttle._remembered) == 10_000
    assert "address 19999" in checker.throttle._remembered
    assert list(checker.throttle._clients) == ["waits"]


@pytest.mark.parametrize("clients", [1, 8, 16_000])
def test_a_full_server_is_not_slow(clients: int) -> None:
    """With all connections waiting, each of 16,000 comes, is drawn or leaves in some microseconds of processor time."""

    def used(count: int) -> float:
        checker = Checker()
        began = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        for n in range(count):
            checker.throttle.add(f"address {n % clients}", f"guess {n}", checker.now)
        for _ in range(count // 2):
            checker.step()
        for n in range(count):
            checker.throttle.remove(f"guess {n}", checker.now)
        assert len(checker.throttle._attempts) == 0
        return resource.getrusage(resource.RUSAGE_SELF).ru_utime - began

    used(1000)
    assert used(16_000) < 5.0  # some 0.1 s; quadratic work would take minutes


MOVES = st.lists(
    st.tuples(st.sampled_from(["come", "come", "leave", "check"]), st.integers(0, 3), st.floats(0, 20)), max_size=60
)


@given(moves=MOVES, seed=st.integers(0, 99), ahead=st.integers(0, 12), addresses=st.integers(1, 4))
def test_every_waiting_attempt_is_drawn_within_a_bound(
    moves: list[tuple[str, int, float]], seed: int, ahead: int, addresses: int
) -> None:
    """Whatever happened before, and while others replace every attempt that was checked: the checks before it are at
    most two for each one ahead of it at its client, times two for each other client."""
    checker, waiting, number = Checker(seed), list[str](), 0

    def come(client: int) -> None:
        nonlocal number
        number += 1
        waiting.append(f"guess {number}")
        checker.throttle.add(f"address {client % addresses}", waiting[-1], checker.now)

    def check() -> str | None:
        found = checker.step()
        if found is not None and found != "owner":
            waiting.remove(found)
        return found

    for move, which, seconds in moves:
        checker.now += seconds
        if move == "come":
            come(which)
        elif move == "leave" and waiting:
            checker.throttle.remove(waiting.pop(which % len(waiting)), checker.now)
        elif move == "check":
            check()
        assert len(checker.throttle._attempts) == len(waiting)
    for _ in range(ahead):
        come(0)
    checker.throttle.add("address 0", "owner", checker.now)
    bound = 2 * (len(waiting) + 1) * 2 * addresses
    checked = 0
    while (found := check()) != "owner":
        assert found is not None
        checked += 1
        come(number)
        come(0)
        assert checked <= bound
