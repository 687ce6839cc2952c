"""A turn with words, tools and a question, whose process dies at each call to its storage in turn, and goes on."""

from collections import Counter

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holdfast.core.errors import HoldfastError
from holdfast.core.parts import ToolPart
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.core.run import Run
from holdfast.ports.tool import ToolTraits
from tests.agents.models import Asks, ScriptedModel, Thinks, Trace, answers, chat
from tests.engine.checks import check_idle, check_one_end
from tests.harness import GUARD, Running, World, running, texts
from tests.storage_interceptors import Fuse

pytestmark = pytest.mark.anyio

SCRIPT = answers(
    [Thinks("hm"), "I look ", "at both. ", Asks("c1", "pay", {"x": 1}), Asks("c2", "read", {"x": 2})],
    ["Then I ask. ", Asks("c3", "send", {"x": 3})],
    ["All ", "is done."],
)
SAID = "I look at both. Then I ask. All is done."


def tools(effects: list[str]) -> list[Trace]:
    return [
        Trace("pay", effects, ToolTraits(rule="allow")),
        Trace("read", effects, ToolTraits(repeatable=True, read_only=True, rule="allow")),
        Trace("send", effects, ToolTraits(rule="ask")),
    ]


async def drive(it: Running, run: Run, asked: Counter[str], fuse: Fuse | None = None) -> Run | None:
    """Answer every question with *once*, until the run ends or its process is gone."""
    with anyio.fail_after(GUARD):
        while (row := await it.row(run.id)).is_open:
            if fuse is not None and fuse.blown.is_set():
                return None
            if row.status == "waiting":
                question = (await it.folded(run.id)).approval
                assert question is not None
                asked[question.name] += 1
                await it.engine.runs.decide(run.id, question.approval_id, "once")
            await checkpoint()
    return row


async def first_life(world: World, fuse: Fuse, effects: list[str], asked: Counter[str]) -> Run | None:
    run: Run | None = None
    agent = chat(ScriptedModel(SCRIPT), *tools(effects))
    async with running(agents={"chat": agent}, world=world, tap=fuse) as it:
        try:
            run = await it.send(await it.new_session(), key="k")
            await drive(it, run, asked, fuse)
        except HoldfastError:
            assert fuse.blown.is_set()
        await it.crash()
    return run


@pytest.mark.parametrize("done", [False, True], ids=["not-done", "done"])
@pytest.mark.parametrize("how", ["continue", "automatic"])
async def test_a_turn_survives_a_crash_at_any_call(done: bool, how: str) -> None:
    """X5: wherever it died, the turn completes with every word once; a tool with effects runs again only if asked."""
    lives: Counter[str] = Counter()
    for at in range(1, 1000):
        world, fuse = World(), Fuse(at, done)
        effects: list[str] = []
        asked: Counter[str] = Counter()
        run = await first_life(world, fuse, effects, asked)
        if run is not None:
            auto = RecoveryPolicy(auto_continue=how == "automatic")
            agent = chat(ScriptedModel(SCRIPT), *tools(effects))
            async with running(agents={"chat": agent}, world=world, recovery=auto) as it:
                ended = await drive(it, run, asked)
                assert ended is not None
                if ended.status == "interrupted":
                    ended = await drive(it, (await it.engine.runs.continue_run(run.id)).run, asked)
                    assert ended is not None
                    lives["continued"] += 1
                assert ended.status == "complete", f"call {at}: {ended.error}"
                answer = await it.answer(run.session_id)
                assert texts(answer.parts) == SAID, f"call {at}"
                # Asked about means started: the process may have died before the effect or after it.
                assert max(1, asked["pay"]) <= effects.count("pay 1") <= 1 + asked["pay"], f"call {at}"
                assert 1 <= effects.count("send 3") <= asked["send"], f"call {at}"
                assert 1 <= effects.count("read 2") <= 2, f"call {at}"
                finished = [part.name for part in answer.parts if isinstance(part, ToolPart) and part.state == "done"]
                assert finished == ["pay", "read", "send"], f"call {at}"
                await check_one_end(it, ended, "complete")
                await check_idle(it, run.session_id)
                lives["asked about paying"] += asked["pay"]
        if not fuse.blown.is_set():
            break
    assert at > 20
    assert lives["asked about paying"] > 0
    assert (lives["continued"] > 0) == (how == "continue")
