"""Generated histories, the same each time, and histories that once went wrong. `-m soak` runs the long version."""

import pytest

from tests.sim.chunk import run_chunk
from tests.sim.history import run_history, run_plan
from tests.sim.regressions import REGRESSIONS
from tests.sim.situations import EXPECTED

PER_SHARD = 50
QUICK = range(3)
LONG = range(3, 40)
SCHEDULES = 20
RICH = (671, 1818, 981, 1184, 106, 803, 565, 11, 12, 153, 279, 403, 541)
"""Seeds that together reached every situation when they were chosen, to be tried first."""


def _says(seed: int, finding: str) -> str:
    return f"seed {seed}: {finding}\nSee its trace: python -m tests.sim --only {seed}"


@pytest.mark.parametrize("shard", [*QUICK, *(pytest.param(n, marks=pytest.mark.soak) for n in LONG)])
def test_histories_hold(shard: int) -> None:
    """A2 A3 C6 C8 E2 L1 L3 L4 L5 L7 O1 O2 P4 P5 P6 P8 X1 X2 X3 X5 J1 J2 J5 M1 M2 M4 M5 M7 M11: in every
    history, whatever fails."""
    chunk = run_chunk(range(shard * PER_SHARD, (shard + 1) * PER_SHARD))
    assert not chunk.failures, "\n".join(_says(seed, finding) for seed, finding in chunk.failures)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_regressions_hold(name: str) -> None:
    """A2 C6 L3 L5 X1 X5 J5 J6: histories that found something, under schedules among which it showed."""
    for number in range(SCHEDULES):
        outcome = run_plan(REGRESSIONS[name](number))
        assert not outcome.findings, f"schedule {number}: {outcome.findings[0]}"


def test_a_seed_is_a_history() -> None:
    """The same seed gives the same trace, to the last commit."""
    for seed in range(5):
        assert run_history(seed, trace=True).trace == run_history(seed, trace=True).trace


def test_every_situation_is_reached() -> None:
    """Each situation comes up within a few hundred histories; a simulation that never reaches one proves nothing."""
    missing = set(EXPECTED)
    for seeds in (RICH, *(range(first, first + 50) for first in range(2000, 2600, 50))):
        missing -= set(+run_chunk(seeds).situations)
        if not missing:
            break
    assert missing == set()
