"""The `holdfast` command."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from holdfast import config as configuration
from holdfast import logs, wiring
from holdfast.agents.scripted import Action, Say, ScriptedAgent
from holdfast.core.errors import HoldfastError
from holdfast.core.parts import plain_text
from holdfast.ports import Turn


def demonstration(turn: Turn) -> Sequence[Action]:
    said = plain_text(turn.input.messages[-1].parts) if turn.input.messages else ""
    answer = (
        f"No model is connected yet, so this is a script that says your words back, slowly: {said} "
        "Every word was in the journal before you saw it. Kill this process now and start it again: nothing is lost."
    )
    return [Say(word + " ", after=0.08) for word in answer.split(" ")]


def main() -> None:
    parser = argparse.ArgumentParser(prog="holdfast", description=__doc__)
    parser.add_argument("command", choices=["serve"], nargs="?", default="serve")
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--data-dir", type=Path)
    arguments = vars(parser.parse_args())
    arguments.pop("command")
    try:
        config = configuration.load(arguments, os.environ, home=Path.home(), working=Path.cwd())
        logs.configure(config.log_level, config.log_format)
        anyio.run(_serve, config, backend_options={"use_uvloop": True})
    except HoldfastError as error:
        sys.exit(f"holdfast: {error}")


async def _serve(config: configuration.Config) -> None:
    await wiring.serve(config, {"chat": ScriptedAgent(demonstration)}, _ready)


def _ready(url: str) -> None:
    sys.stdout.write(f"Holdfast listens on {url}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
