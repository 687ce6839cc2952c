"""Storage, nodes and clock of one history. Nodes start, stop, are killed or cut off; storage outlives them."""

import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

import anyio
import trio.lowlevel
from anyio.abc import TaskGroup
from trio.testing import MockClock

from holdfast.core.budgets import BUDGETS, Budget, budgets_to_json
from holdfast.core.ids import LOCAL, NodeId, RunId
from holdfast.core.memory_ledger import LedgerPolicy
from holdfast.engine.engine import Engine
from holdfast.ports.journal import Journal
from holdfast.ports.store import PushSubscription, Store, Tx
from holdfast.storage.file_store import FileStore
from holdfast.storage.in_memory import InMemoryStore, InMemoryWakeups
from holdfast.testing import CountingIds, Fault, FaultyJournal, FaultyStore, FaultyWakeups
from holdfast.testing.faults import Operation
from tests.memory_providers import ProviderTable
from tests.sim.actors import SimAgent
from tests.sim.invariants import DEVICE
from tests.sim.killable_ports import KillableJournal, KillableStore, KillableWakeups, Line
from tests.sim.ledger import Ledger, Trace
from tests.sim.memory import SimMemory
from tests.sim.observed_storage import ObservedJournal
from tests.sim.plan import After, AgentName, How, NodePlan, Plan, Port, Where

T = TypeVar("T")
EPOCH = 1_700_000_000.0
_LONGEST_STALL = 41.0
"""Seconds after which a fault is over for certain."""
PORTS: tuple[Port, ...] = ("store", "journal", "wakeups")


class GoneError(Exception):
    """The connection broke; the request may or may not have been carried out."""


class Clock:
    """Wall-clock time, which passes with the loop's; `skew` may differ by node, `jumped` is the world's."""

    def __init__(self, loop: MockClock, skew: float = 0.0) -> None:
        self._loop = loop
        self.skew = skew

    def now(self) -> float:
        return EPOCH + self._loop.current_time() + self.skew


class Fired(dict[Any, Any]):
    """A fault plan that tells when one of its faults happens."""

    def __init__(self, plan: Mapping[Any, Any], tell: Callable[[Any, Any], None]) -> None:
        super().__init__(plan)
        self._tell = tell
        self._told: set[Any] = set()

    def get(self, key: Any, default: Any = None) -> Any:
        found = super().get(key, default)
        if found is not None and key not in self._told:
            self._told.add(key)
            self._tell(key, found)
        return found


class Node:
    """One process. It is `ready` from the end of its recovery until it is killed or stops."""

    def __init__(
        self, name: str, engine: Engine, faulty: Sequence[FaultyStore | FaultyJournal], lines: dict[Port, Line]
    ) -> None:
        self.name = name
        self.engine = engine
        self.faulty = faulty
        self.lines = lines
        self.scope = anyio.CancelScope()
        self.calls: set[anyio.CancelScope] = set()
        self.ready = False
        self.stopping = False
        self.up = anyio.Event()
        self.gone = anyio.Event()

    def started(self, value: None = None) -> None:
        """`anyio.abc.TaskStatus`."""
        self.ready = not self.lines["store"].dead
        self.up.set()

    def hang_up(self) -> None:
        self.ready = False
        for line in self.lines.values():
            line.kill()
        for call in self.calls:
            call.cancel()

    def kill(self) -> None:
        self.hang_up()
        self.scope.cancel()

    def left(self, known: Collection[RunId], waiting: Collection[RunId] = ()) -> list[str]:
        """What must be empty when nothing is going on but runs that wait for a person."""
        local, feed = self.engine.local_runs, self.engine.feed
        others = set(known) - set(waiting)
        found = {
            "executing": others & set(local.executing),
            "connected": others & local.connected,
            "tails": {rid for rid in others if feed.tail(rid) is not None},
            "ending": {rid for rid in known if local.is_ending(rid)},
            "abandoned": local.abandoned(),
            "subscribers": feed.subscribers,
        }
        return [f"{what}: {some}" for what, some in found.items() if some]


class World:
    def __init__(self, plan: Plan, loop: MockClock, note: Trace) -> None:
        self.plan = plan
        self.loop = loop
        self.clock = Clock(loop)
        self.ledger = Ledger(plan, note)
        self.note = note
        self.base = InMemoryStore(self.clock, incarnation=None, generation="g1")
        self.journal = ObservedJournal(self.ledger)
        self.wakeups = FaultyWakeups(InMemoryWakeups(), Fired(plan.wakes, self._wake_failed))
        self.ids = CountingIds()
        agents = {
            name: SimAgent(name == "able", name != "unable", plan.scripts, self.ledger, can_steer=name != "unable")
            for name in get_args(AgentName)
        }
        self.agents = agents
        self.memory, self._settings = None, plan.settings
        if plan.memory is not None:
            self.memory = self.ledger.memory = SimMemory(plan.memory, self.ledger.blame, self.ledger.situations)
            policy = LedgerPolicy(idle=plan.memory.idle, pause=1.0)
            self._settings = replace(plan.settings, memory=policy, commit_limit=8.0, flush_time=4.0, warm_sessions=2)
        self.nodes: list[Node] = []
        """All that have not been killed or stopped, also while they are starting or stopping."""
        self.started = 0
        self.blocked: Counter[tuple[Port, How]] = Counter()
        self.healed = False

    # ---- time ----

    async def pause(self, after: After) -> None:
        if after.moment is not None:
            with anyio.move_on_after(after.seconds):
                await self.ledger.moment(after.moment).wait()
        elif after.seconds:
            await anyio.sleep(after.seconds)
        idle = 0
        for _ in range(after.ticks):
            await anyio.lowlevel.checkpoint()
            idle = 0 if trio.lowlevel.current_statistics().tasks_runnable else idle + 1
            if idle > 3:
                return  # nobody else has anything to do: more turns would show nothing

    # ---- nodes ----

    def start(self, tg: TaskGroup) -> Node:
        plans = self.plan.incarnations
        plan = plans[self.started] if self.started < len(plans) and not self.healed else NodePlan()
        self.started += 1
        name = f"node_{self.started}"
        alone = self.plan.mode == "embedded"
        lines = {port: Line(port) for port in PORTS}
        for (port, how), count in self.blocked.items():
            lines[port].block(how, count)
        inner = self.base.as_incarnation(NodeId(name) if alone else None)
        store: Store = KillableStore(inner, lines["store"], name, self.ledger)
        journal = cast(Journal, KillableJournal(self.journal, lines["journal"]))
        if plan.store:
            store = FaultyStore(store, Fired(plan.store, self._failed))
        if plan.journal:
            journal = FaultyJournal(journal, Fired(plan.journal, self._failed))
        engine = Engine(
            store=store,
            journal=journal,
            wakeups=KillableWakeups(self.wakeups, lines["wakeups"]),
            agents=self.agents,
            clock=self.clock if alone else Clock(self.loop, plan.skew),
            ids=self.ids,
            files=FileStore(Path("no files")),
            settings=self._settings,
            memory=None if self.memory is None else ProviderTable({"sim": self.memory}, "sim"),
        )
        faulty = [port for port in (store, journal) if isinstance(port, FaultyStore | FaultyJournal)]
        node = Node(name, engine, faulty, lines)
        self.nodes.append(node)
        self.ledger.situations["node started"] += 1
        self.ledger.trouble(fault=False)  # before it, perhaps, there was none
        self.note(f"{name} starts")
        tg.start_soon(self._live, node)
        return node

    async def _live(self, node: Node) -> None:
        try:
            with node.scope:
                await node.engine.run(task_status=node)
        except Exception:  # noqa: BLE001 - whatever comes out of an engine is what is looked for
            self.ledger.blame(f"the engine of {node.name} fell over:\n{traceback.format_exc()}")
        finally:
            node.hang_up()
            if node in self.nodes:
                self.nodes.remove(node)
            node.gone.set()
            self.note(f"{node.name} is gone")

    def live(self, pick: int) -> Node | None:
        ready = [node for node in self.nodes if node.ready]
        return ready[pick % len(ready)] if ready else None

    def kill(self, node: Node) -> None:
        self.ledger.situations["node killed"] += 1
        self.ledger.trouble()
        self.note(f"{node.name} is killed")
        self.nodes.remove(node)
        node.kill()

    async def stop(self, node: Node, *, abrupt: bool = False) -> None:
        """Ask the engine to end, or cancel it: it saves what its runs have said either way."""
        self.ledger.situations["node cancelled" if abrupt else "node stopped"] += 1
        node.stopping = True
        began, executed = self.loop.current_time(), set(node.engine.local_runs.executing)
        if abrupt:
            node.scope.cancel()
        else:
            node.engine.stop()
        settings = self.plan.settings
        enough = settings.drain_time + 2 * settings.final_save + settings.storage_retry_time + 120.0
        with anyio.move_on_after(enough):
            await node.gone.wait()
        if not node.gone.is_set():
            self.ledger.blame(
                f"{node.name} was told to stop and did not within {enough} s: {node.left(self.ledger.runs)}"
            )
            node.kill()
        if began - self.ledger.fault_at > _LONGEST_STALL:
            for rid in executed:
                run = self.ledger.runs[rid]
                if run.is_open and run.lease is not None and run.lease.holder == node.engine.node:
                    self.ledger.blame(f"{node.name} has stopped and left {run.id} as {run.status}")

    async def call(
        self, node: Node, use: Callable[[Engine], Awaitable[T]], scope: anyio.CancelScope | None = None
    ) -> T:
        """A request over a connection that breaks when the node dies. `scope`: the client may leave."""
        scope = scope or anyio.CancelScope()
        node.calls.add(scope)
        try:
            with scope:
                return await use(node.engine)
        finally:
            node.calls.discard(scope)
        raise GoneError

    # ---- storage ----

    def those(self, where: Where, pick: int) -> list[Node]:
        one = self.live(pick)
        if where == "one":
            return [one] if one is not None else []
        leases = [run.lease for run in reversed(self.ledger.runs.values()) if run.lease is not None]
        owners = [node for node in self.nodes if leases and node.engine.node == leases[0].holder]
        return owners if where == "owner" else [node for node in self.nodes if node not in owners]

    def block(self, port: Port, how: How, by: int, nodes: Sequence[Node] | None) -> None:
        """`nodes`: only there; None: everywhere, also for those that start meanwhile."""
        if self.healed:
            return
        self.ledger.trouble(port)
        if nodes is None:
            self.blocked[port, how] += by
        for node in self.nodes if nodes is None else nodes:
            node.lines[port].block(how, by)

    def heal(self) -> None:
        """Faults stop here."""
        self.healed = True
        self.blocked.clear()
        self.wakeups.plan = {}
        self.ledger.trouble()
        for node in self.nodes:
            for port in node.faulty:
                port.plan = {}
            for line in node.lines.values():
                line.mend()

    def _failed(self, where: tuple[Operation, int], fault: Fault) -> None:
        self.ledger.trouble("store" if where[0] in ("transact", "read") else "journal")
        count = self.ledger.situations
        count[f"fault: {fault.kind}"] += 1
        if where[0] == "append" and fault.kind == "doubt":
            count["commit failed and had happened"] += 1
        if where[0] == "append" and fault.kind == "refuse":
            count["commit failed and was repeated"] += 1
        self.note(f"    fault: {where[0]} {where[1]}: {fault.kind} {fault.seconds or ''}")

    def _wake_failed(self, _: int, fate: str) -> None:
        self.ledger.situations[f"wake {fate}"] += 1

    async def set_budget(self, tokens: int) -> None:
        """Before the first node starts."""
        budgets = budgets_to_json("UTC", [Budget("month", "tokens", tokens, "refuse")])
        await self.base.transact(lambda tx: tx.put_setting(LOCAL, BUDGETS, budgets))

    async def add_device(self) -> None:
        """One that wants all notifications, before the first node starts."""
        keys, wants = ("key", "secret"), (True, True, True, True)
        device = PushSubscription(
            DEVICE, LOCAL, "https://push.example", *keys, "Phone", None, *wants, created_at=self.clock.now()
        )
        await self.base.transact(lambda tx: tx.put_push_subscription(device))

    async def peek(self, work: Callable[[Tx], T]) -> T:
        """Read the store directly, without faults."""
        return await self.base.read(work)
