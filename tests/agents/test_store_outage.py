"""The store fails while a run with tools is executed: the run waits for it as it waits for its journal."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holdfast.app.engine_proxy import EngineProxy
from holdfast.core.errors import AlreadyDecidedError, StorageError, StorageUnavailableError
from holdfast.core.ids import RunId
from holdfast.core.parts import SteeredPart
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.core.run import Run
from holdfast.ports.agent import Turn
from holdfast.ports.tool import ToolTraits
from holdfast.testing.faults import Fault
from holdfast.tools.approval_policy import ApprovalPolicy
from tests.agents.models import Asks, Trace, by_calls, chat
from tests.engine.conftest import VirtualClock
from tests.harness import Running, World, running
from tests.storage_interceptors import Tap, When

pytestmark = pytest.mark.anyio


async def allowed_to_end(it: Running, rid: RunId, every: float = 0.5) -> Run:
    """The run when it has ended; whatever it asks is allowed. Looks past the faults, in virtual time, every few
    seconds."""
    with anyio.fail_after(300.0):
        while (run := await it.row(rid)).is_open:
            for question in await it.store.inner.read(lambda tx: tx.open_approvals(rid)):
                with suppress(StorageError, AlreadyDecidedError):
                    await it.engine.runs.decide(rid, question.id, "session")
            await it.tick()
            await anyio.sleep(every)
    return run


@pytest.mark.parametrize(("operation", "kind"), [("read", "refuse"), ("transact", "refuse"), ("transact", "doubt")])
async def test_a_store_that_fails_once_fails_no_run(
    virtual: World, operation: Literal["read", "transact"], kind: Literal["refuse", "doubt"]
) -> None:
    """X5: at the first, second, … call after the run was claimed; the run completes, each tool has run once, and text
    that was added meanwhile is read. Only a claim that was made and reported as failed interrupts it."""
    for n in range(1, 1000):
        world, engine, effects = World(clock=VirtualClock()), EngineProxy(), list[str]()

        async def find_policy(turn: Turn, engine: EngineProxy = engine) -> ApprovalPolicy:
            await engine.settings(turn.run.owner)
            return ApprovalPolicy()

        model = by_calls([Asks("c1", "asks")], [Asks("c2", "free")], ["Done."])
        tools = Trace("free", effects), Trace("asks", effects, ToolTraits())
        agent = chat(model, *tools, grants=engine, history=engine, find_policy=find_policy)
        async with running(agents={"chat": agent}, world=world, storage_retry_time=30.0, final_save=60.0) as it:
            engine.engine = it.engine
            run = await it.send()
            while (await it.row(run.id)).status == "queued":
                await checkpoint()
            await it.engine.runs.steer(run.id, "Be brief.")
            it.store.plan = {(operation, it.store.calls[operation] + n): Fault(kind)}
            ended = await allowed_to_end(it, run.id)
            assert ended.error is None, f"call {n}"
            if kind == "doubt" and ended.reason == "process-gone":  # nobody knew of the claim
                assert effects == ["asks", "free"][: len(effects)], f"call {n}"
            else:
                assert (ended.status, effects) == ("complete", ["asks", "free"]), f"call {n}"
                assert SteeredPart in map(type, (await it.stored(run.message_id)).parts), f"call {n}"
            if not any(number <= it.store.calls[operation] for _, number in it.store.plan):
                assert n > 5
                return


class Away(Tap):
    """The store answers nothing for half a minute, from a call after the run was claimed on."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self.calls = 0
        self.back_at: float | None = None
        self._first = first
        self.armed = False

    async def at(self, when: When, call: str, args: Sequence[Any]) -> None:
        if when != "before" or not self.armed or not call.startswith("store."):
            return
        self.calls += 1
        if self.calls == self._first:
            self.back_at = anyio.current_time() + 30.0
        if self.back_at is not None and anyio.current_time() < self.back_at:
            raise StorageUnavailableError("The store does not answer.")


async def test_a_store_that_is_away_for_long_lets_runs_go_on_afterwards(virtual: World) -> None:
    """X5: with automatic continue, whatever the run was about to do when its patience ended: it completes once the
    store is back, and each tool has run once."""
    gave_up = 0
    for n in range(1, 1000):
        world, engine, effects = World(clock=VirtualClock()), EngineProxy(), list[str]()
        model = by_calls([Asks("c1", "asks")], [Asks("c2", "free")], ["Done."])
        tools = Trace("free", effects), Trace("asks", effects, ToolTraits())
        agent = chat(model, *tools, grants=engine, history=engine)
        async with running(
            agents={"chat": agent},
            world=world,
            tap=(away := Away(n)),
            storage_retry_time=5.0,
            final_save=2.0,
            poll_interval=5.0,
            recovery=RecoveryPolicy(auto_continue=True),
        ) as it:
            engine.engine = it.engine
            run = await it.send()
            away.armed = True
            ended = await allowed_to_end(it, run.id, every=10.0)
            assert (ended.status, ended.error, effects) == ("complete", None, ["asks", "free"]), f"call {n}"
            gave_up += ended.resumes
            if away.back_at is None:
                assert gave_up > 5
                return
