"""Commits of the journal are spaced while many runs write, and only then."""

import anyio
import pytest

from holdfast.agents.scripted_agent import SayTokens
from holdfast.core.run import Run
from holdfast.engine.commit_pacing import BUSY, SPACING, CommitPacer
from tests.harness import World, running
from tests.storage_interceptors import Tap

TOKENS = 40
SECONDS = 2.0  # that these take at 20 a second


def commits_of(pacer: CommitPacer, every: float, appends: int = 1, seconds: float = 1.0) -> int:
    """Commits in `seconds` if an append arrives `every` so many seconds and each waits as it is told."""
    now, commits, waiting = 0.0, 0, 0
    for n in range(round(seconds / every)):
        arrived = n * every
        waiting += appends
        now = max(now, arrived)
        if pacer.wait(now) == 0.0:
            pacer.began(now, waiting)
            commits, waiting = commits + 1, 0
    return commits


@pytest.mark.parametrize("rate", [1, 20, 200, BUSY * 0.9])
def test_below_the_threshold_every_append_is_committed_at_once(rate: float) -> None:
    """Nobody waits for a timer as long as commits cost little in all."""
    assert commits_of(CommitPacer(), 1 / rate) == pytest.approx(rate, abs=1)


@pytest.mark.parametrize("rate", [BUSY * 2, 5_000, 50_000])
def test_above_the_threshold_commits_are_spaced(rate: float) -> None:
    """The number of commits does not grow with the number of appends."""
    assert commits_of(CommitPacer(), 1 / rate) <= 1 / SPACING + BUSY * 0.15


def test_a_burst_is_followed_by_quiet() -> None:
    """What comes a while after a burst is committed at once."""
    pacer = CommitPacer()
    pacer.began(10.0, 1_000)
    assert 0 < pacer.wait(10.001) <= SPACING
    assert pacer.wait(10.0 + SPACING) == 0.0
    pacer.began(12.0, 1)
    assert pacer.wait(12.001) == 0.0


async def appends_of(world: World, runs: int) -> int:
    """Calls of the journal while so many runs speak at 20 tokens a second, evenly spread over time."""
    async with running([SayTokens(TOKENS, rate=20.0)], world, tap=(tap := Tap())) as it:
        started: list[Run] = []
        for _ in range(runs):
            started.append(await it.send(await it.new_session()))
            await anyio.sleep(0.05 / runs)
        for run in started:
            await it.until(run.id, "complete")
        return tap.seen.count("journal.append")


@pytest.mark.anyio
async def test_a_run_alone_has_a_commit_for_each_token(virtual: World) -> None:
    """A single answer is as fluent as its model."""
    assert await appends_of(virtual, 1) >= TOKENS


@pytest.mark.anyio
async def test_a_hundred_runs_share_their_commits(virtual: World) -> None:
    """2,000 tokens a second that arrive one by one are some 125 commits, not 2,000."""
    assert await appends_of(virtual, 100) <= 2.5 * SECONDS / SPACING
