"""The loop with the tools that come with it: real files, real processes, a real engine."""

import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.parts import Json, TextPart
from holdfast.ports.tool import ToolTraits
from holdfast.tools.approval_policy import ApprovalPolicy
from holdfast.tools.shell import ShellTool
from holdfast.tools.tool_selection import ToolSelection, builtin_tools
from tests.agents.models import ScriptedModel, Trace, answers, chat
from tests.harness import World, running

pytestmark = pytest.mark.anyio

ENVIRONMENT = {"PATH": os.environ["PATH"]}
FREE = ApprovalPolicy({"shell": "allow", "write_file": "allow", "edit_file": "allow"})
STUBBORN = "trap '' TERM; echo $$; while :; do sleep 100; done"


def agent(model: ScriptedModel, root: Path, **options: Any) -> Any:
    return chat(model, *builtin_tools(ShellTool(ENVIRONMENT)), workspaces=root, **options)


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

    async def more(turn: Any) -> list[Trace]:
        return [other, Trace("b", [])]

    own = Trace("a", [])
    selection = ToolSelection((own,), more)
    found: list[Any] = []

    async def find(turn: Any) -> Any:
        found.extend(await selection(turn))
        return found

    async with running(agents={"chat": chat(model, find_tools=find)}, world=memory) as it:
        sid = (await it.engine.sessions.create(settings=session)).id
        sent = (await it.engine.runs.submit(sid, [TextPart("q")], settings=run)).run
        assert (await it.ended(sent.id)).status == "complete"
        assert sorted(spec.name for spec in model.requests[0].tools) == names
        assert other not in found
