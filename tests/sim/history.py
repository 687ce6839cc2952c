"""Runs one history: play the plan, stop the faults, let time pass, check the final state."""

import logging
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import anyio
import trio._core._run
from anyio.abc import TaskGroup
from trio.testing import MockClock

from holdfast.core.memory_ledger import RESTS
from holdfast.core.run import Run
from tests.sim import invariants
from tests.sim.actors import script_of
from tests.sim.clients import Clients
from tests.sim.generate import generate
from tests.sim.ledger import Trace
from tests.sim.plan import Jump, Plan, Watch
from tests.sim.world import World

_LONG = 3000.0
"""Seconds within which everything has ended once faults have stopped: limits, leases and give-up ages are shorter."""


@dataclass(slots=True)
class Outcome:
    seed: int
    findings: list[str]
    situations: "Counter[str]"
    seconds: float
    """Of virtual time."""
    trace: list[str] = field(default_factory=list)


def run_history(seed: int, *, trace: bool = False) -> Outcome:
    return run_plan(generate(seed), trace=trace)


def run_plan(plan: Plan, *, trace: bool = False) -> Outcome:
    """The same plan gives the same history: the scheduler is seeded, and time is virtual."""
    loop = MockClock(autojump_threshold=0.0)
    note = Trace(loop.current_time, on=trace)
    with _schedule(plan.seed), _silence():
        return anyio.run(_History(plan, loop, note).run, backend="trio", backend_options={"clock": loop})


@contextmanager
def _schedule(seed: int) -> Iterator[None]:
    """Seed the chance with which trio orders its tasks, as its Hypothesis plugin does."""
    scheduler: Any = trio._core._run  # there is no public way
    before = scheduler._ALLOW_DETERMINISTIC_SCHEDULING, scheduler._r.getstate()
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True
    scheduler._r.seed(seed)
    try:
        yield
    finally:
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = before[0]
        scheduler._r.setstate(before[1])


@contextmanager
def _silence() -> Iterator[None]:
    """What the engine logs about failures is expected here, by the thousand."""
    log = logging.getLogger("holdfast.engine")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


class _History:
    def __init__(self, plan: Plan, loop: MockClock, note: Trace) -> None:
        self._plan = plan
        self._loop = loop
        self._note = note

    async def run(self) -> Outcome:
        world = World(self._plan, self._loop, self._note)
        ledger = world.ledger
        try:
            async with anyio.create_task_group() as tg:
                await self._play(world, tg)
                tg.cancel_scope.cancel()
        except Exception:  # noqa: BLE001 - a bug of the simulation, or an engine's that nobody caught
            ledger.blame(f"an exception:\n{traceback.format_exc()}")
        return Outcome(self._plan.seed, ledger.findings, ledger.situations, self._loop.current_time(), self._note.lines)

    async def _play(self, world: World, tg: TaskGroup) -> None:
        clients = Clients(world, tg)
        await world.add_device()
        if self._plan.budget is not None:
            await world.set_budget(self._plan.budget)
        for _ in range(self._plan.nodes):
            world.start(tg)
        with anyio.move_on_after(60.0):
            for node in world.nodes:
                await node.up.wait()
        async with anyio.create_task_group() as acts:
            for step in self._plan.steps:
                await world.pause(step.after)
                acts.start_soon(clients.perform, step)
            await anyio.sleep(1.0)
            world.heal()  # before the acts end: one that waits for an answer gets it
            await self._until_quiet(world, clients, tg)
            clients.watchers.close()
            await anyio.sleep(0.5)
            await self._until_quiet(world, clients, tg)  # whoever was attached has left
        await self._look_back(world, clients)
        for node in list(world.nodes):
            await world.stop(node)
            for what in node.left(world.ledger.runs):
                world.ledger.blame(f"{node.name} has stopped and has {what}")

    # ---- the end ----

    async def _until_quiet(self, world: World, clients: Clients, tg: TaskGroup) -> None:
        """Once faults have stopped, every accepted turn ends or waits for a person."""
        back = sum(max(0.0, -step.act.seconds) for step in self._plan.steps if isinstance(step.act, Jump))
        pause, ends_at = 1.0, self._loop.current_time() + _LONG + back  # what is due by the clock is that much later
        while True:
            if not world.nodes and not clients.restarting:
                world.start(tg)
            left = await self._left(world, clients)
            if not left:
                return
            if self._loop.current_time() >= ends_at:
                world.ledger.blame(f"{_LONG + back} s after the last fault: {left}")
                return
            await anyio.sleep(pause)
            pause = min(pause * 1.5, 60.0)
            if not self._plan.leave_waiting:
                await clients.answer_all()

    async def _left(self, world: World, clients: Clients) -> list[str]:
        """What is still going on."""
        open_runs, pending, purges = await world.peek(
            lambda tx: (
                tx.all_open_runs(1000),
                tx.pending_runs(1000),
                [*tx.queued_purges(1000), *tx.deleted_sessions(1000)],
            )
        )
        waiting = {run.id for run in open_runs if self._waits(world, run)}
        left = [f"{run.id} is {run.status}: {run}" for run in open_runs if run.id not in waiting]
        left += [f"{run.id} is pending: {run}" for run in pending]
        left += [f"{which} is to be purged" for which in purges]
        if world.memory is not None:
            dirty = await world.peek(lambda tx: [each for each in tx.due_ledgers(RESTS, 1000) if each.dirty])
            left += [f"{ledger.session_id} has turns that nobody remembers: {ledger}" for ledger in dirty]
        left += [f"{c.run} is watched at {c.at}" for c in clients.watchers.following if c.run not in waiting]
        if clients.acting or not any(node.ready for node in world.nodes):
            left.append(f"{clients.acting} acts are not through, or no node is up")
        for node in world.nodes:
            left += [
                f"{node.name}: {what}"
                for what in node.left(world.ledger.runs, waiting)
                if not what.startswith("subscribers")
            ]
        return left

    def _waits(self, world: World, run: Run) -> bool:
        """For a person, or behind a run that does: in its session, or for its place in the node."""
        ledger = world.ledger
        if run.status == "queued":
            others = [r for r in ledger.runs.values() if r.session_id == run.session_id]
            if all(len(node.engine.local_runs.executing) >= self._plan.settings.max_runs for node in world.nodes):
                others += [ledger.runs[rid] for node in world.nodes for rid in node.engine.local_runs.executing]
            waiting = (other for other in others if other.status == "waiting")
            return run.intent is None and any(self._waits(world, other) for other in waiting)
        if run.lease is not None and not any(run.id in node.engine.local_runs.executing for node in world.nodes):
            return False  # it kept its task, and that is gone
        if run.lifetime == "attached" and not any(run.id in node.engine.local_runs.connected for node in world.nodes):
            return False  # its client left while the store was away: the sweeper ends it
        asked = any(a.run_id == run.id and a.decision is None for a in ledger.approvals.values())
        return self._plan.leave_waiting and run.status == "waiting" and run.intent is None and asked

    async def _look_back(self, world: World, clients: Clients) -> None:
        """After everything has settled: check the whole store, what a late client receives, and what must be empty."""
        if world.memory is not None:
            world.memory.look_back()
        ledger, chance = world.ledger, Random(self._plan.seed)
        for rid, story in ledger.stories.items():
            for problem in invariants.fold_problems(story, chance):
                ledger.blame(f"{rid}: {problem}")
        await self._read_everything(world, clients, chance)
        await anyio.sleep(0.01)
        waiting = {run.id for run in ledger.runs.values() if run.is_open and self._waits(world, run)}
        for node in world.nodes:
            for what in node.left(world.ledger.runs, waiting):
                ledger.blame(f"{node.name} is at rest and has {what}")

    async def _read_everything(self, world: World, clients: Clients, chance: Random) -> None:
        ledger = world.ledger
        pick = chance.randrange(3)
        for sid in chance.sample(clients.sessions, min(1, len(clients.sessions))):
            session = ledger.sessions[sid]
            if session.deleted_at is None and await world.peek(lambda tx, sid=sid: tx.session(sid)) is not None:  # type: ignore[misc]
                await clients.readers.session(sid, pick, clients.ask)
                await clients.readers.messages(sid, pick, clients.ask)
        known = ledger.runs.values()
        runs = await world.peek(lambda tx: [(tx.run(run.id), tx.message(run.message_id)) for run in known])
        for run, message in runs:
            if run is not None and message is not None:
                script = script_of(ledger.asked[run.user_message_id], self._plan.scripts)
                for problem in invariants.said_problems(run, message.parts, script):
                    ledger.blame(problem)
        late = [run for run, _ in runs if run is not None and not run.is_open and run.recovery is None]
        for run in chance.sample(late, min(1, len(late))):
            story = ledger.stories[run.id]
            clients.watchers.follow(run.id, Watch((), after=chance.randint(0, len(story.entries))), pick, late=True)
