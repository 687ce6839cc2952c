"""The `holdfast` command. For now one thing: a durable conversation in the terminal with a demonstration agent.

Stop it in mid-answer with `kill -9`, start it again, and what it had shown is there.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from holdfast.agents.scripted import Action, AgentTable, Say, ScriptedAgent
from holdfast.core.errors import StorageError
from holdfast.core.parts import plain_text
from holdfast.engine.settings import Settings
from holdfast.faces.terminal import converse
from holdfast.ports import Turn
from holdfast.wiring import open_node, tune_gc


def default_data_dir() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(os.environ.get("HOLDFAST_DATA_DIR") or Path(base) / "holdfast")


def demonstration(turn: Turn) -> Sequence[Action]:
    said = plain_text(turn.input.messages[-1].parts) if turn.input.messages else ""
    answer = (
        f"No model is connected yet, so this is a script that says your words back, slowly: {said} "
        "Every word was in the journal before you saw it. Kill this process now and start it again: nothing is lost."
    )
    return [Say(word + " ", after=0.08) for word in answer.split(" ")]


async def run(path: Path) -> None:
    agents = AgentTable({"chat": ScriptedAgent(demonstration)})
    tune_gc()
    node = await open_node(path, agents, Settings(drain=0.0))
    try:
        async with anyio.create_task_group() as tg:
            await tg.start(node.engine.run)
            await converse(node.engine.service, _show, _ask)
            node.engine.stop()
    finally:
        await node.close()


def _show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


async def _ask(prompt: str) -> str | None:
    _show(prompt)
    line = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    return line.rstrip("\n") if line else None


def main() -> None:
    parser = argparse.ArgumentParser(prog="holdfast", description=__doc__)
    parser.add_argument(
        "--data-dir", type=Path, default=None, help="default: HOLDFAST_DATA_DIR, else ~/.local/share/holdfast"
    )
    arguments = parser.parse_args()
    try:
        anyio.run(run, arguments.data_dir or default_data_dir(), backend_options={"use_uvloop": True})
    except StorageError as error:
        sys.exit(f"holdfast: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
