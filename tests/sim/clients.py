"""Clients that carry out the acts of a plan through any live node."""

import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar, assert_never

import anyio
from anyio.abc import TaskGroup

from holdfast.core.errors import (
    AlreadyDecidedError,
    BudgetReachedError,
    DrainingError,
    HoldfastError,
    KeyReusedError,
    NotAllowedError,
    NotFoundError,
    SessionBusyError,
    StorageError,
    VersionMismatchError,
)
from holdfast.core.events import Decision
from holdfast.core.ids import ApprovalId, MessageId, RunId, SessionId
from holdfast.core.parts import TextPart
from holdfast.core.run import Run
from holdfast.engine.engine import Engine
from holdfast.engine.transactions.accept import Accepted
from tests.sim import plan as p
from tests.sim.actors import SlowWriter, asking
from tests.sim.readers import Readers
from tests.sim.watchers import Watchers
from tests.sim.world import GoneError, Node, World

T = TypeVar("T")
Make = Callable[[Engine], Awaitable[Accepted]]

REFUSALS = (
    NotFoundError | SessionBusyError | KeyReusedError | VersionMismatchError | NotAllowedError | AlreadyDecidedError
)
_HANGS = 600.0
"""Seconds after which a call that was answered by nobody is a finding."""
_OTHER: dict[Decision, Decision] = {"once": "deny", "session": "deny", "always": "deny", "deny": "once"}


class Clients:
    def __init__(self, world: World, tg: TaskGroup) -> None:
        self._world = world
        self._ledger = world.ledger
        self._tg = tg
        self.watchers = Watchers(world, tg)
        self.readers = Readers(world)
        self.sessions: list[SessionId] = []
        self._sent: dict[int, SessionId] = {}  # by the serial of a request
        self.acting = 0
        """Acts that are not through yet; those who only watch do not count."""
        self.restarting = 0
        """Nodes that are down and will be started again."""

    # ---- talking to nodes ----

    async def ask(self, pick: int, use: Callable[[Engine], Awaitable[T]]) -> T:
        """One request to one node."""
        node = self._world.live(pick)
        if node is None:
            raise GoneError
        with anyio.move_on_after(_HANGS):
            return await self._world.call(node, use)
        self._ledger.blame(f"a call to {node.name} was not answered within {_HANGS} s: {use}")
        raise GoneError

    async def _insist(self, pick: int, use: Callable[[Engine], Awaitable[T]], times: int) -> T:
        """Repeat the request while its outcome is unknown."""
        while True:
            try:
                return await self.ask(pick, use)
            except (StorageError, DrainingError, GoneError):
                if not times:
                    raise
                times, pick = times - 1, pick + 1
                self._ledger.situations["answer lost and asked again"] += 1
                await anyio.sleep(1.0)

    def _session(self, pick: int) -> SessionId:
        if not self.sessions:
            raise GoneError
        return self.sessions[pick % len(self.sessions)]

    def _run(self, pick: int, wanted: Callable[[Run], bool] = lambda _: True) -> Run:
        """One of the newest runs that fit, else any."""
        runs = list(self._ledger.runs.values())
        fitting = [run for run in runs if wanted(run)] or runs
        if not fitting:
            raise GoneError
        return fitting[-1 - pick % min(len(fitting), 4)]

    def _message(self, sid: SessionId, pick: int) -> MessageId:
        known = self._ledger.messages.get(sid)
        if not known:
            raise GoneError
        return known[-1 - pick % min(len(known), 8)]

    # ---- acts ----

    async def perform(self, step: p.Step) -> None:
        """Carry out an act and check its result."""
        self._world.note(f"> {step.act} at {step.node}")
        self.acting += not isinstance(step.act, p.FollowChanges)
        try:
            await self._do(step)
        except (HoldfastError, GoneError) as error:
            self.judge(error)
        except Exception:  # noqa: BLE001 - what is looked for
            self._ledger.blame(f"{step.act} raised\n{traceback.format_exc()}")
        finally:
            self.acting -= not isinstance(step.act, p.FollowChanges)

    def _memory(self) -> dict[str, Any]:
        """A session follows the one before it; one of them may be without memory."""
        plan = self._world.plan.memory
        if plan is None:
            return {}
        settings = {"memory": "none"} if plan.incognito == len(self.sessions) else None
        return {"settings": settings, "previous_session_id": self.sessions[-1] if self.sessions else None}

    async def _do(self, step: p.Step) -> None:
        act, pick = step.act, step.node
        match act:
            case p.Create(titled, agent):
                title = "mine" if titled else ""
                made = await self.ask(
                    pick, lambda engine: engine.sessions.create(agent=agent, title=title, **self._memory())
                )
                self.sessions.append(made.id)
            case p.Submit():
                await self._submit(act, pick)
            case p.Again():
                await self._again(act, pick)
            case p.Cancel(which, twice):
                run = self._run(which, lambda run: run.is_open)
                await self._both(twice, pick, lambda engine: self._cancel(engine, run.id))
            case p.Steer():
                await self._steer(act, pick)
            case p.Decide():
                await self._decide(act, pick)
            case p.OnRun():
                await self._on_run(act, pick)
            case p.OnSession():
                await self._on_session(act, pick)
            case p.FollowChanges(leaves, away):
                await self.readers.follow_changes(self.watchers, leaves, away, pick)
            case p.Tick():
                node = self._world.live(pick)
                if node is not None:
                    await self._world.call(node, lambda _: node.engine.sweeper.tick())
            case p.Kill() | p.Stop() | p.Start() | p.Break() | p.Jump():
                await self._to_nodes(act, pick)
            case _:
                assert_never(act)

    async def _both(self, twice: bool, pick: int, use: Callable[[Engine], Awaitable[T]]) -> list[T]:
        """Once, or twice at once through two nodes if there are two. An error counts only if nobody answered."""
        if not twice:
            return [await self.ask(pick, use)]
        answers: list[T] = []
        errors: list[HoldfastError | GoneError] = []

        async def one(at: int) -> None:
            try:
                answers.append(await self.ask(at, use))
            except (HoldfastError, GoneError) as error:
                errors.append(error)

        async with anyio.create_task_group() as tg:
            tg.start_soon(one, pick)
            tg.start_soon(one, pick + 1)
        for error in errors:
            if not answers:
                raise error
        return answers

    async def _submit(self, act: p.Submit, pick: int) -> None:
        sid = self._sent.setdefault(act.serial, self._session(act.session))  # who asks again asks the same session
        text = asking(act.serial, act.script)

        def make(engine: Engine) -> Awaitable[Accepted]:
            return engine.runs.submit(
                sid, [TextPart(text)], key=act.key, agent=act.agent, lifetime=act.lifetime, on_busy=act.on_busy
            )

        if act.lifetime == "attached":
            cursor = await self.watchers.attach(pick, make, act.leaves)
            self.acting -= 1
            try:
                await self.watchers.be_attached(cursor)
            finally:
                self.acting += 1
            return
        accepted = await self._turn(pick, make, act.key, act.twice, act.insists, act.watch)
        if act.on_busy == "interrupt" and not accepted.run.in_tree:
            self._ledger.situations["turn ahead of the queue"] += 1

    async def _again(self, act: p.Again, pick: int) -> None:
        sid = self._session(act.session)
        if act.kind == "continue":
            target: str = self._run(act.pick, lambda run: not run.is_open and run.status != "complete").id
        else:
            target = self._message(sid, act.pick)

        def make(engine: Engine) -> Awaitable[Accepted]:
            if act.kind == "continue":
                return engine.runs.continue_run(RunId(target), key=act.key)
            if act.kind == "retry":
                return engine.runs.retry(sid, MessageId(target), key=act.key)
            return engine.runs.edit(sid, MessageId(target), [TextPart(asking(act.serial, act.script))], key=act.key)

        await self._turn(pick, make, act.key, act.twice, act.insists, act.watch)
        if act.kind != "continue":
            self._ledger.situations["retried" if act.kind == "retry" else "edited"] += 1

    async def _steer(self, act: p.Steer, pick: int) -> None:
        target = self._run(act.pick, lambda run: run.is_open and run.in_tree)
        text = asking(act.serial, act.script)
        accepted = await self._turn(
            pick,
            lambda engine: engine.runs.steer(target.id, text, key=act.key),
            act.key,
            act.twice,
            act.insists,
            None,
        )
        if accepted.run.steers is not None:
            self._ledger.situations["text offered to a run"] += 1

    async def _turn(
        self, pick: int, make: Make, key: str | None, twice: bool, insists: bool, watch: p.Watch | None
    ) -> Accepted:
        """A turn that is accepted is stored; sent twice with one key it is one turn."""
        tries = 4 if insists else 0
        got = await self._both(twice, pick, make) if not tries else [await self._insist(pick, make, tries)]
        for accepted in got:
            if accepted.run.id not in self._ledger.runs or accepted.message.id not in self._ledger.asked:
                self._ledger.blame(f"{accepted.run.id} was accepted and is not stored")
            if not accepted.fresh:
                self._ledger.situations["key repeated"] += 1
        if len(got) > 1:
            self._ledger.situations["key doubled at once"] += 1
            if got[0].run.id != got[1].run.id and not {got[0].run.id, got[1].run.id} & self._ledger.erased:
                self._ledger.blame(f"key {key} was answered with {got[0].run.id} and {got[1].run.id}")
        if watch is not None:
            self.watchers.follow(got[0].run.id, watch, pick)
        return got[0]

    async def _cancel(self, engine: Engine, rid: RunId) -> None:
        run = await engine.runs.cancel(rid)
        if run.is_open and not run.cancel_requested and run.intent is None:
            self._ledger.blame(f"cancel of {rid} was answered and it is {run.status}, not asked to end")

    async def _decide(self, act: p.Decide, pick: int) -> None:
        open_ones = [a for a in self._ledger.approvals.values() if a.decision is None]
        known = open_ones or list(self._ledger.approvals.values())
        if not known:
            raise GoneError
        approval = known[act.pick % len(known)]
        first = partial(self._answer, approval.run_id, approval.id, act.decision)
        if not act.twice:
            await first(pick)
            return
        async with anyio.create_task_group() as tg:
            tg.start_soon(first, pick)
            tg.start_soon(self._answer, approval.run_id, approval.id, _OTHER[act.decision], pick + 1)

    async def _answer(self, rid: RunId, aid: ApprovalId, decision: Decision, pick: int) -> None:
        try:
            await self.ask(pick, lambda engine: engine.runs.decide(rid, aid, decision))
        except AlreadyDecidedError as error:
            self._ledger.situations["decision came second"] += 1
            if error.decision != self._ledger.approvals[aid].decision:
                self._ledger.blame(f"{aid} was said to be decided as {error.decision}")
        except (HoldfastError, GoneError) as error:
            self.judge(error)

    async def _on_run(self, act: p.OnRun, pick: int) -> None:
        match act.verb:
            case "recover":
                run = self._run(act.pick, lambda run: run.recovery is not None)
                await self.ask(pick, lambda engine: engine.runs.recover(run.id))
            case "read":
                await self.readers.run(self._run(act.pick), pick, self.ask)
            case "watch":
                self.watchers.follow(self._run(act.pick).id, act.watch, pick)
            case "edit_queued":
                queued = self._run(act.pick, lambda run: run.status == "queued" and not run.in_tree)
                script = self._ledger.asked[queued.user_message_id].rpartition("/")[2]
                parts = [TextPart(asking(act.serial, int(script)))]
                await self.ask(pick, lambda engine: engine.runs.edit_queued(queued.id, parts))
            case _:
                assert_never(act.verb)

    async def _on_session(self, act: p.OnSession, pick: int) -> None:
        sid = self._session(act.session)
        known = self._ledger.sessions[sid]
        version = known.version if act.if_version else None
        writer = SlowWriter(act.slow, f"words {act.pick}")
        match act.verb:
            case "undo" | "redo" | "clear":
                await self.ask(pick, lambda engine: getattr(engine.sessions, act.verb)(sid, if_version=version))
            case "truncate":
                mid = self._message(sid, act.pick)
                await self.ask(pick, lambda engine: engine.sessions.truncate(sid, mid, if_version=version))
            case "switch":
                mid = self._message(sid, act.pick)
                await self.ask(pick, lambda engine: engine.sessions.update(sid, {}, show=mid, if_version=version))
            case "delete":
                forget = self._world.memory is not None and pick == 0
                if forget and self._world.memory is not None:
                    self._world.memory.may_be_forgotten(sid)
                await self.ask(pick, lambda engine: engine.sessions.delete(sid, if_version=version, forget=forget))
            case "fork":
                mid = self._message(sid, act.pick)
                made = await self.ask(pick, lambda engine: engine.sessions.fork(sid, mid))
                self.sessions.append(made.id)
            case "compact":
                await self.ask(pick, lambda engine: engine.sessions.compact(sid, writer))
            case "amend":
                fields = {"title": f"renamed {act.pick}"} if act.pick % 2 else {"pinned": not known.pinned}
                await self.ask(pick, lambda engine: engine.sessions.update(sid, fields, if_version=version))
            case "title":
                await self.ask(pick, lambda engine: engine.titles.generate(sid, writer))
            case "read":
                await self.readers.session(sid, pick, self.ask)
            case "messages":
                await self.readers.messages(sid, pick, self.ask)
            case "list":
                await self.readers.sessions(pick, self.ask)
            case _:
                assert_never(act.verb)

    # ---- nodes ----

    async def _to_nodes(self, act: p.Kill | p.Stop | p.Start | p.Break | p.Jump, pick: int) -> None:
        world = self._world
        alone = world.plan.mode == "embedded"
        match act:
            case p.Start():
                if not alone and len(world.nodes) < 3:
                    world.start(self._tg)
            case p.Jump(seconds):
                if alone:
                    world.clock.skew += seconds
                    world.ledger.put_back.append((world.ledger.now(), max(0.0, -seconds)))
            case p.Break(port, where, how, seconds):
                nodes = None if where == "all" else world.those(where, pick)
                world.block(port, how, 1, nodes)
                await anyio.sleep(seconds)
                world.block(port, how, -1, nodes)
            case p.Kill(down) | p.Stop(down):
                node = world.live(pick)
                if node is not None and node.stopping and isinstance(act, p.Kill):
                    world.kill(node)  # in the middle of its orderly end; whoever stopped it starts the next one
                elif node is not None and not node.stopping:
                    self.restarting += 1
                    await self._end(node, act)
                    if alone or down is not None:
                        await world.pause(down or p.After(seconds=1.0))
                        world.start(self._tg)
                    self.restarting -= 1
            case _:
                assert_never(act)

    async def _end(self, node: Node, act: p.Kill | p.Stop) -> None:
        if isinstance(act, p.Stop):
            await self._world.stop(node, abrupt=act.abrupt)
        else:
            self._world.kill(node)
            await self._world.pause(p.After(ticks=3))  # what was on its way has arrived or not

    async def answer_all(self) -> None:
        """Answer every open question."""
        for approval in list(self._ledger.approvals.values()):
            if approval.decision is None and approval.run_id not in self._ledger.erased:
                decision: Decision = "once" if int(approval.id[-1]) % 2 else "deny"
                await self._answer(approval.run_id, approval.id, decision, 0)

    def judge(self, error: HoldfastError | GoneError) -> None:
        """Check that a client may receive this error."""
        name = type(error).__name__
        self._world.note(f"    answer: {name}: {error}")
        if isinstance(error, GoneError | DrainingError):
            return
        if isinstance(error, StorageError):
            if not self._world.plan.troubled:
                self._ledger.blame(f"storage failed though nothing failed: {error}")
        elif isinstance(error, BudgetReachedError) and self._world.plan.budget is not None:
            self._ledger.situations["refused by a budget"] += 1
        elif not isinstance(error, REFUSALS):
            self._ledger.blame(f"a client was answered with {name}: {error}")
