"""`kill -9` at random instants while twenty runs stream. `python -m tests.crash` does the same for hours."""

from pathlib import Path

import pytest

from tests.crash.random_restarts import RandomLives
from tests.fork_server import ServerForker


@pytest.mark.parametrize(("seed", "kills"), [(1, 3), pytest.param(2, 8, marks=pytest.mark.soak)])
def test_nothing_shown_is_lost_over_many_deaths(tmp_path: Path, forker: ServerForker, seed: int, kills: int) -> None:
    """A1, A2, A3, E2, L5, X1, X2, X3, X4, X5: kills of one directory, each at another instant; after every start all
    that any client was ever shown is there once, in order, byte for byte, and in the end every turn has ended."""
    lives = RandomLives(tmp_path / "data", forker, seed)
    for _ in range(kills):
        lives.live_and_die()
        assert not lives.world.violations, lives.world.violations
    lives.finish()
    assert not lives.world.violations, lives.world.violations
    assert lives.world.ledger.events > 0
