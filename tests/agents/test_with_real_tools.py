"""The loop with the tools that come with it: real files, real processes, a real engine."""

import os
import select
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.core.parts import Json, TextPart, ToolPart
from holdfast.core.transcript import EMPTY, fold
from holdfast.ports.model import ToolMessage
from holdfast.ports.tool import ToolTraits
from holdfast.tools.approval_policy import ApprovalPolicy
from holdfast.tools.toolbox import Toolbox, builtin_tools
from tests.agents.models import Asks, ScriptedModel, Trace, answers, chat
from tests.engine.checks import check_one_end
from tests.harness import GUARD, AnyWorld, Running, World, running

pytestmark = pytest.mark.anyio

ENVIRONMENT = {"PATH": os.environ["PATH"]}
FREE = ApprovalPolicy({"shell": "allow", "write_file": "allow", "edit_file": "allow"})
STUBBORN = "trap '' TERM; echo $$; while :; do sleep 100; done"


def agent(model: ScriptedModel, root: Path, **options: Any) -> Any:
    return chat(model, *builtin_tools(ENVIRONMENT), workspaces=root, **options)


async def test_reading_is_free_and_writing_asks(world: AnyWorld, tmp_path: Path) -> None:
    """X5: by default a file is written only after a person said so, and read without asking; each session has its own
    directory."""
    model = ScriptedModel(
        answers(
            [Asks("c1", "list_files"), Asks("c2", "write_file", {"path": "a.txt", "content": "hello"})],
            [Asks("c3", "read_file", {"path": "a.txt"})],
            ["Done."],
        )
    )
    async with running(agents={"chat": agent(model, tmp_path / "ws")}, world=world) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        await it.until(run.id, "waiting")
        question = await it.question(run.id)
        assert (question.call_id, question.name) == ("c2", "write_file")
        await it.engine.runs.decide(run.id, question.id, "once")
        assert (await it.ended(run.id)).status == "complete"
        assert model.requests[-1].messages[-1] == ToolMessage("c3", "read_file", "hello")
        assert await anyio.Path(tmp_path / "ws" / sid / "a.txt").read_text() == "hello"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="waits on a process handle of Linux")
@pytest.mark.parametrize("end", ["cancel", "crash"])
async def test_a_stopped_run_keeps_the_output_and_leaves_no_process(world: AnyWorld, tmp_path: Path, end: str) -> None:
    """C3 C7 C8: what the command had printed is in the message, its outcome is unknown, and its processes are gone."""
    model = ScriptedModel(answers(["I run. ", Asks("c1", "shell", {"command": STUBBORN})], ["never"]))
    async with running(agents={"chat": agent(model, tmp_path, policy=FREE)}, world=world) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        printed = await first_output(it, run.id)
        handle = os.pidfd_open(int(printed))
        try:
            if end == "cancel":
                assert (await it.engine.runs.cancel(run.id)).status == "cancelled"
            else:
                await it.crash()
            assert select.select([handle], [], [], GUARD)[0]
        finally:
            os.close(handle)
        if end == "cancel":
            assert (await it.answer(sid)).parts == (
                TextPart("I run. "),
                ToolPart("c1", "shell", {"command": STUBBORN}, "unknown", output=printed),
            )
            await check_one_end(it, run, "cancelled")


async def first_output(it: Running, rid: Any) -> str:
    """What the tool printed, as a client is shown it."""
    with anyio.fail_after(GUARD):
        async with it.engine.subscriptions.watch(rid) as subscription:
            seen = EMPTY
            while not (tools := [part for part in seen.parts if isinstance(part, ToolPart) and part.output]):
                entries = await subscription.next()
                assert entries is not None, "the run ended before it printed anything"
                seen = fold(entries, seen)
    return tools[0].output


@pytest.mark.parametrize(
    ("session", "run", "names"),
    [
        (None, None, ["a", "b"]),
        ({"tools": False}, None, []),
        ({"tools": ["b"]}, None, ["b"]),
        ({"tools": False}, {"tools": ["a"]}, ["a"]),
        ({"tools": ["b"]}, {"tools": True}, ["a", "b"]),
    ],
)
async def test_a_session_chooses_its_tools(memory: World, session: Json, run: Json, names: list[str]) -> None:
    """X5: a run's choice goes before its session's; our own tool of a name goes before a server's."""
    model = ScriptedModel(answers(["Done."]))
    other = Trace("a", [], ToolTraits(rule="deny"))

    async def more() -> list[Trace]:
        return [other, Trace("b", [])]

    own = Trace("a", [])
    toolbox = Toolbox((own,), more)
    found: list[Any] = []

    async def find(turn: Any) -> Any:
        found.extend(await toolbox(turn))
        return found

    async with running(agents={"chat": chat(model, find_tools=find)}, world=memory) as it:
        sid = (await it.engine.sessions.create(settings=session)).id
        sent = (await it.engine.runs.submit(sid, [TextPart("q")], settings=run)).run
        assert (await it.ended(sent.id)).status == "complete"
        assert sorted(spec.name for spec in model.requests[0].tools) == names
        assert other not in found
