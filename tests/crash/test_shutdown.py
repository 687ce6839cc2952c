"""SIGTERM: an orderly stop of a real process."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.crash.client import Server
from tests.crash.random_restarts import World, last
from tests.fork_server import Fresh, ServerForker


def busy(world: World, server: Server, runs: int = 5) -> None:
    for _ in range(runs):
        turn = server.submit(server.create(), f"tokens {world.label()} 100000 200")
        server.until(turn, "text.delta")


def look_again(world: World, status: str) -> Any:
    with world.next_life() as (_, dump):
        assert {run["status"] for run in dump["runs"].values()} == {status}
    return dump


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sigterm_seals_runs_as_interrupted_and_shows_it(
    tmp_path: Path, forker: ServerForker, number: signal.Signals
) -> None:
    """L2, X1, X3: runs under way end as interrupted with the reason `shutdown`, clients are still told, the exit code
    is 0, and the next life finds nothing to do. For SIGTERM each life is a new interpreter."""
    world = World(tmp_path / "data", Fresh("tests.crash.server") if number == signal.SIGTERM else forker)
    with world.life() as server:
        busy(world, server)
        os.kill(server.pid, number)
        assert server.buried() == 0, server.complaints()
        assert server.said_bye
    assert [last(turn) for turn in world.turns] == ["run.interrupted"] * 5
    dump = look_again(world, "interrupted")
    assert {run["reason"] for run in dump["runs"].values()} == {"shutdown"}
    assert {run["epoch"] for run in dump["runs"].values()} == {1}  # nobody had to take them over


def test_queued_turns_wait_for_the_next_life(world: World) -> None:
    """A3: a turn in the queue is not touched by a shutdown."""
    with world.life() as server:
        first = server.submit(server.create(), f"hang {world.label()}")
        server.until(first, "text.delta")
        server.submit(first.session, f"tool {world.label()}")
        server.terminate()
        assert server.buried() == 0, server.complaints()
    with world.next_life() as (server, _):
        world.repeat_all(server)
        world.finish_all(server)
    assert [last(turn) for turn in world.turns] == ["run.interrupted", "run.complete"]


def test_kill_in_the_middle_of_a_shutdown_is_a_crash_like_any_other(world: World) -> None:
    """X1, X3: SIGTERM and then, before it is done, SIGKILL."""
    with world.life(die="terminal.after-commit:2") as server:
        busy(world, server)
        server.terminate()
        assert server.buried() in (-signal.SIGKILL, 0)
    look_again(world, "interrupted")


def test_second_sigterm_changes_nothing(world: World) -> None:
    """L2: an impatient supervisor does not cost the final save."""
    with world.life() as server:
        busy(world, server)
        server.terminate()
        server.terminate()
        assert server.buried() == 0, server.complaints()
    look_again(world, "interrupted")
