"""The store fails while a run with tools is executed: the run waits for it as it waits for its journal."""

from contextlib import suppress
from typing import Literal

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holdfast.app.engine_proxy import EngineProxy
from holdfast.core.errors import AlreadyDecidedError, StorageError
from holdfast.core.ids import RunId
from holdfast.core.run import Run
from holdfast.ports.agent import Turn
from holdfast.ports.tool import ToolTraits
from holdfast.testing.faults import Fault
from holdfast.tools.approval_policy import ApprovalPolicy
from tests.agents.models import Asks, ScriptedModel, Trace, answers, chat
from tests.engine.conftest import VirtualClock
from tests.harness import Running, World, running

pytestmark = pytest.mark.anyio


async def allowed_to_end(it: Running, rid: RunId) -> Run:
    """The run when it has ended; whatever it asks is allowed. Looks past the faults, in virtual time."""
    with anyio.fail_after(300.0):
        while (run := await it.row(rid)).is_open:
            for question in await it.store.inner.read(lambda tx: tx.open_approvals(rid)):
                with suppress(StorageError, AlreadyDecidedError):
                    await it.engine.runs.decide(rid, question.id, "session")
            await it.tick()
            await anyio.sleep(0.5)
    return run


@pytest.mark.parametrize(("operation", "kind"), [("read", "refuse"), ("transact", "refuse"), ("transact", "doubt")])
async def test_a_store_that_fails_once_fails_no_run(
    virtual: World, operation: Literal["read", "transact"], kind: Literal["refuse", "doubt"]
) -> None:
    """X5: at the first, second, … call after the run was claimed; the run completes, and each tool has run once. Only a
    claim that was made and reported as failed interrupts it."""
    for n in range(1, 1000):
        world, engine, effects = World(clock=VirtualClock()), EngineProxy(), list[str]()

        async def find_policy(turn: Turn, engine: EngineProxy = engine) -> ApprovalPolicy:
            await engine.settings(turn.run.owner)
            return ApprovalPolicy()

        model = ScriptedModel(answers([Asks("c1", "asks")], [Asks("c2", "free")], ["Done."]))
        tools = Trace("free", effects), Trace("asks", effects, ToolTraits())
        agent = chat(model, *tools, grants=engine, history=engine, find_policy=find_policy)
        async with running(agents={"chat": agent}, world=world, storage_retry_time=30.0, final_save=60.0) as it:
            engine.engine = it.engine
            run = await it.send()
            while (await it.row(run.id)).status == "queued":
                await checkpoint()
            it.store.plan = {(operation, it.store.calls[operation] + n): Fault(kind)}
            ended = await allowed_to_end(it, run.id)
            assert ended.error is None, f"call {n}"
            if kind == "doubt" and ended.reason == "process-gone":  # nobody knew of the claim
                assert effects == ["asks", "free"][: len(effects)], f"call {n}"
            else:
                assert (ended.status, effects) == ("complete", ["asks", "free"]), f"call {n}"
            if not any(number <= it.store.calls[operation] for _, number in it.store.plan):
                assert n > 5
                return
