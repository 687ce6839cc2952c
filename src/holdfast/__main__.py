"""The `holdfast` command: the command line, and behind it whatever must come from the composition root. That is
imported when it is needed: `holdfast --help` need not wait for a web server."""

import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskStatus

from holdfast.config import Config
from holdfast.core.values import replace
from holdfast.engine.seeding import Plan, Report
from holdfast.faces.cli import app
from holdfast.faces.cli.desk import Desk, Finding
from holdfast.faces.cli.place import Place
from holdfast.faces.cli.reach import Needs
from holdfast.ports import Agent, Keys
from holdfast.system import SystemClock, keep_private

if TYPE_CHECKING:
    from holdfast.wiring.crew import Hire

GetAgents = Callable[[Config], Mapping[str, Agent]]
"""Agents in place of the real ones, as tests have them."""


def main(agents: GetAgents | None = None) -> None:
    desk = Desk(
        partial(_serve, agents),
        partial(_own, agents),
        _keys,
        partial(_examine, agents),
        _pull,
        _move,
        _seed,
        SystemClock(),
    )
    app.build(desk, asked="".join(sys.argv[1:2]))(prog_name="holdfast")


def _hire(agents: GetAgents | None) -> "Hire":
    from holdfast.wiring.crew import Fixed, Office
    from holdfast.wiring.memories import Memories

    if agents is not None:
        return lambda config, keys, bridge: Fixed(agents(config), Memories(config, {}, bridge))
    return partial(Office, environment=os.environ, home=Path.home())


async def _serve(agents: GetAgents | None, config: Config, ready: Callable[[str], None]) -> None:
    gc.disable()  # what is imported stays: looking for cycles in it would be a tenth of the start
    from holdfast import wiring

    hire = _hire(agents)
    keep_private()
    wiring.tune_gc()
    await wiring.serve(config, hire, ready)


async def _own(
    agents: GetAgents | None, config: Config, needs: Needs, stop: anyio.Event, *, task_status: TaskStatus[Place]
) -> None:
    from holdfast import wiring
    from holdfast.wiring.crew import Resting

    hire = Resting if needs is Needs.DATA else _hire(agents)
    config = config if needs is Needs.RUNS else replace(config, max_runs=0)
    await wiring.serve_own(config, hire, stop, task_status=task_status)


def _keys(config: Config) -> Keys:
    from holdfast import wiring

    return wiring.keys_of(config)


def _pull(report: Callable[[int, int], None]) -> Path:
    from holdfast.agents.models import weights

    return weights.pull(weights.default_directory(os.environ, Path.home()), report)


async def _move(config: Config, report: Callable[[str, int, int], None]) -> Mapping[str, int]:
    from holdfast.wiring import moving

    return await moving.move(config, report)


async def _seed(directory: Path, plan: Plan, report: Report) -> None:
    from holdfast import wiring

    await wiring.seed_directory(directory, plan, report)


def _examine(agents: GetAgents | None, config: Config) -> Sequence[Finding]:
    from holdfast import wiring
    from holdfast.wiring.crew import look_at_models

    found = wiring.examine(config)
    return found if agents is not None else [*found, anyio.run(look_at_models, config, os.environ, Path.home())]


if __name__ == "__main__":
    main()
