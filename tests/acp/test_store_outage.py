"""An answer of an agent program does not depend on what is stored beside it."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.agents.acp.program import AcpLimits
from holdfast.agents.gateway.client import GatewayLimits
from holdfast.app.agent_programs import AppAgentPrograms
from holdfast.app.engine_proxy import EngineProxy
from holdfast.config import Config
from holdfast.core.errors import StorageUnavailableError
from holdfast.storage.key_file import KeyFile
from holdfast.tools.shell_sandbox import CommandRules, ShellSandbox
from tests.acp.test_hostile import PROGRAM
from tests.harness import World, running
from tests.storage_interceptors import Tap, When, calls

pytestmark = pytest.mark.anyio


class NoTitles(Tap):
    """The store does not answer when a title is to be stored, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    async def at(self, when: When, call: str, args: Sequence[Any]) -> None:
        if when == "before" and self.times and calls("store.read", "Titles._load")(call, args):
            self.times -= 1
            raise StorageUnavailableError("The store does not answer.")


@pytest.mark.parametrize(("times", "title"), [(1, "Boats"), (1000, "hello")], ids=["once", "for longer"])
async def test_a_title_that_cannot_be_stored_fails_no_run(tmp_path: Path, times: int, title: str) -> None:
    """E1: the answer is complete when the program's own title for the chat comes: it is stored once the store answers,
    or not at all."""
    engine, here = EngineProxy(), {"PATH": os.environ["PATH"]}
    command: Any = {"command": sys.executable, "args": ["-I", "-S", str(PROGRAM), "gives a title"]}
    config = Config(data_dir=tmp_path, agents={"titled": command})
    commands = CommandRules(here, ShellSandbox(mode="off"))
    limits = AcpLimits(), GatewayLimits()
    programs = AppAgentPrograms.build(config, KeyFile(tmp_path), engine, here, tmp_path, commands, *limits)
    agent = programs.agent("titled", {})
    assert agent is not None
    retry_time = 20.0 if times == 1 else 0.0
    async with anyio.create_task_group() as tasks:
        await tasks.start(programs.pool.run)
        async with running(
            agents={"titled": agent}, world=World(), tap=NoTitles(times), storage_retry_time=retry_time
        ) as it:
            engine.engine = it.engine
            run = await it.turn(agent="titled")
            assert (run.status, run.error) == ("complete", None)
            assert (await it.session_row(run.session_id)).title == title
        tasks.cancel_scope.cancel()
