"""Guessing a password: the more often, the slower."""

from holdfast.faces.http.attempts import FORGET_AFTER, FREE, LONGEST, Attempts


def test_a_few_attempts_are_free_then_each_doubles_the_wait() -> None:
    """A person who mistypes is not held up; a program is, up to five minutes an attempt."""
    attempts, waits = Attempts(), []
    for _ in range(FREE + 20):
        waits.append(attempts.wait("10.0.0.1", 0.0))
        attempts.note("10.0.0.1", 0.0)
    assert waits[:FREE] == [0.0] * FREE
    assert waits[FREE : FREE + 4] == [1.0, 2.0, 4.0, 8.0]
    assert waits[-1] == LONGEST


def test_others_are_not_held_up_and_time_heals() -> None:
    """Each caller has a count of its own; it is forgotten after an hour, or with the right password."""
    attempts = Attempts()
    for _ in range(FREE):
        attempts.note("a", 0.0)
    assert attempts.wait("a", 0.0) > 0
    assert attempts.wait("b", 0.0) == 0
    assert attempts.wait("a", FORGET_AFTER) == 0
    attempts.forget("a")
    assert attempts.wait("a", 0.0) == 0


def test_many_addresses_are_no_way_around_it() -> None:
    """All callers together have a limit, and what is remembered of them has one too."""
    attempts = Attempts(everybody=100)
    for n in range(50_000):
        attempts.note(f"address {n}", 0.0)
    assert attempts.wait("one more", 0.0) == LONGEST
    assert len(attempts._tried) <= 10_001
