"""How many programs run, for how long, and with which variables."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskStatus

from holdfast.agents.acp.connection import AgentConnection
from holdfast.agents.acp.pool import AgentPool
from holdfast.agents.acp.program import AcpLimits, AgentProgram
from holdfast.core.ids import SessionId
from holdfast.ports.agent import AgentError
from holdfast.tools.shell_sandbox import CommandRules, ShellSandbox
from tests.acp.conftest import Program, open_session, play
from tests.acp.test_hostile import PROGRAM
from tests.acp.test_turns import turn
from tests.http.conftest import Start

WELL = AgentProgram("well", sys.executable, ("-I", "-S", str(PROGRAM), "well"))
FIRST, SECOND, THIRD = (SessionId(f"ses_{name}") for name in ("first", "second", "third"))


@asynccontextmanager
async def running(limits: AcpLimits) -> AsyncIterator[AgentPool]:
    pool = AgentPool({"PATH": os.environ["PATH"]}, CommandRules({}, ShellSandbox(mode="off")), limits)
    async with anyio.create_task_group() as tasks:
        await tasks.start(pool.run)
        try:
            with anyio.fail_after(60):
                yield pool
        finally:
            tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_an_unused_program_is_kept_for_ten_minutes(tmp_path: Path) -> None:
    """C7: the time begins with the end of its last turn; a program that works is never ended, and the next turn of a
    session whose program was ended starts another one."""
    async with running(AcpLimits()) as pool:
        idle, busy = await pool.acquire(FIRST, WELL, tmp_path), await pool.acquire(SECOND, WELL, tmp_path)
        pool.release(idle)
        pool.tick(idle.used_at + 599)
        assert pool.running(FIRST) is idle
        pool.tick(idle.used_at + 601)
        assert pool.running(FIRST) is None
        await idle.ended.wait()
        pool.tick(idle.used_at + 10_000)
        assert pool.running(SECOND) is busy
        assert await pool.acquire(FIRST, WELL, tmp_path) is not idle


@pytest.mark.anyio
@pytest.mark.parametrize("other", [False, True], ids=["cancelled", "another program"])
async def test_a_session_has_one_program_at_a_time(tmp_path: Path, other: bool) -> None:
    """C7: one that was ended, because its turn was cancelled or the session got another, is gone before the next one
    starts: they would work in one directory."""
    async with running(AcpLimits()) as pool:
        before = await pool.acquire(FIRST, WELL, tmp_path)
        pool.release(before)
        if not other:
            before.close()
        started: list[bool] = []
        start = AgentConnection.run

        async def run(connection: AgentConnection, *, task_status: TaskStatus[None]) -> None:
            started.append(before.ended.is_set())
            await start(connection, task_status=task_status)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(AgentConnection, "run", run)
            after = await pool.acquire(FIRST, replace(WELL, env={"OTHER": "1"}) if other else WELL, tmp_path)
        assert (started, pool.running(FIRST)) == ([True], after)


@pytest.mark.anyio
async def test_a_program_that_does_not_start_takes_no_place(tmp_path: Path) -> None:
    """E1: it is told why, and the next one starts."""
    async with running(AcpLimits(max_programs=1)) as pool:
        with pytest.raises(AgentError):
            await pool.acquire(FIRST, replace(WELL, args=("-c", "")), tmp_path)
        assert pool.running(FIRST) is None
        await pool.acquire(SECOND, WELL, tmp_path)


@pytest.mark.anyio
async def test_the_program_unused_for_longest_makes_room(tmp_path: Path) -> None:
    """C7: at the limit an idle program ends for a new one; if all work, the turn is refused, and none of them ends."""
    async with running(AcpLimits(max_programs=2)) as pool:
        first, second = await pool.acquire(FIRST, WELL, tmp_path), await pool.acquire(SECOND, WELL, tmp_path)
        refusal = None
        try:
            await pool.acquire(THIRD, WELL, tmp_path)
        except AgentError as error:
            refusal = error
        assert refusal is not None
        assert (refusal.code, "2 agents are working" in refusal.message) == ("too-many-agents", True)
        assert (pool.running(FIRST), pool.running(SECOND)) == (first, second)
        pool.release(second)
        pool.release(first)
        second.used_at = first.used_at - 1
        third = await pool.acquire(THIRD, WELL, tmp_path)
        await second.ended.wait()
        assert (pool.running(FIRST), pool.running(SECOND), pool.running(THIRD)) == (first, None, third)


def test_a_turn_over_the_limit_says_so(start: Start, program: Program) -> None:
    """E1: the run fails with the reason while another agent works, and its session's next turn is answered once that
    one has ended."""
    served = start(program_limits={"max_programs": 1})
    working, waiting = open_session(served), open_session(served)
    rid = served.begin(working, play({"say": "one "}, {"touch": "here"}, {"hang": 1}))
    program.reached("here")
    refused = served.ended(served.begin(waiting, play({"say": "two"})))
    assert (refused["status"], refused["error"]["code"]) == ("failed", "too-many-agents")
    assert served.cancel(rid)["status"] == "cancelled"
    assert turn(served, waiting, {"say": "two"})["parts"][0]["text"] == "two"
    assert served.answer(working)["parts"][0]["text"] == "one [late]"


def test_a_program_gets_only_the_variables_that_are_meant_for_it(start: Start) -> None:
    """A key in the server's environment does not reach a program that it is not named for."""
    section = {
        "command": sys.executable,
        "args": ["-I", "-S", str(PROGRAM), "names its variables"],
        "env": {"MY_KEY": "mine"},
    }
    secrets = {"OPENAI_API_KEY": "sk-secret", "HOLDFAST_TOKEN": "secret", "DATABASE_URL": "postgresql://"}
    served = start(section=section, environment={**secrets, "LANG": "C.UTF-8"})
    sid = open_session(served)
    served.ended(served.begin(sid, "go"))
    names = set(served.answer(sid)["parts"][0]["text"].replace(".", " ").split())
    assert {"PATH", "LANG", "MY_KEY"} <= names
    assert not names & set(secrets)
