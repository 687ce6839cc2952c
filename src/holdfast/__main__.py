"""The `holdfast` command: the command line, and behind it whatever must come from the composition root. That is
imported when it is needed: `holdfast --help` need not wait for a web server."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from holdfast.config import Config
from holdfast.faces.cli import app
from holdfast.faces.cli.desk import Desk, Finding
from holdfast.faces.cli.place import Place
from holdfast.ports import Agent, Keys
from holdfast.system import SystemClock

GetAgents = Callable[[Config], Mapping[str, Agent]]


def main(agents: GetAgents | None = None) -> None:
    chosen = agents or demonstration
    desk = Desk(partial(_serve, chosen), partial(_own, chosen), _keys, _examine, SystemClock())
    app.build(desk)(prog_name="holdfast")


async def _serve(agents: GetAgents, config: Config, ready: Callable[[str], None]) -> None:
    from holdfast import wiring

    await wiring.serve(config, agents(config), ready)


async def _own(agents: GetAgents, config: Config, stop: anyio.Event, *, task_status: TaskStatus[Place]) -> None:
    from holdfast import wiring

    await wiring.serve_own(config, agents(config), stop, task_status=task_status)


def _keys(directory: Path) -> Keys:
    from holdfast import wiring

    return wiring.key_file(directory)


def _examine(config: Config) -> Sequence[Finding]:
    from holdfast import wiring

    return wiring.examine(config)


def demonstration(_: Config) -> Mapping[str, Agent]:
    """Until models are connected: words back, slowly."""
    from holdfast.agents.scripted import Action, Say, ScriptedAgent
    from holdfast.core.parts import plain_text
    from holdfast.ports import Turn

    def script(turn: Turn) -> Sequence[Action]:
        said = plain_text(turn.input.messages[-1].parts) if turn.input.messages else ""
        answer = (
            f"No model is connected yet, so this is a script that says your words back, slowly: {said} Every word was "
            "in the journal before you saw it. Kill this process now and start it again: nothing is lost."
        )
        return [Say(word + " ", after=0.08) for word in answer.split(" ")]

    return {"chat": ScriptedAgent(script)}


if __name__ == "__main__":
    main()
