"""Histories that once went wrong, written out: each is played under many schedules, because one is not enough, and with
the decisive instant moved about.

A seed of the generator would show the same until the generator is changed; these stay."""

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.agents.scripted import Call, Hang, Say
from holdfast.core.recovery import Policy
from holdfast.engine.settings import Settings
from holdfast.testing import Fault
from tests.sim.plan import (
    After,
    Break,
    Cancel,
    Create,
    Decide,
    FollowChanges,
    Kill,
    NodePlan,
    OnRun,
    OnSession,
    Plan,
    Script,
    Step,
    Submit,
    Tick,
    Watch,
)

SAY: Script = (Say("hello"),)
WORK: Script = (Say("hello "), Call("c1", takes=4.0), Say("there"))
ASK: Script = (Say("hello "), Call("c1", asks=True, takes=1.0), Say("there"))
CREATE = Step(After(), 0, Create(False, "able"))


def _plan(
    n: int,
    *steps: Step,
    script: Script = SAY,
    nodes: int = 0,
    plans: tuple[NodePlan, ...] = (),
    calm: bool = False,
    **settings: Any,
) -> Plan:
    """`n`: the schedule. `nodes`: of a cluster; 0: embedded. `calm`: nothing fails."""
    quick = {"poll": 4.0, "sweep": 10.0, "lease_time": 9.0, "drain": 0.0, "final_save": 5.0, "fence_wait": 1.0}
    return Plan(
        seed=n,
        mode="cluster" if nodes else "embedded",
        nodes=nodes or 1,
        sessions=1,
        scripts=[script],
        settings=Settings(**{**quick, **settings}),
        incarnations=plans,
        wakes={},
        steps=[CREATE, *steps],
        leave_waiting=False,
        troubled=not calm,
    )


def _at(after: After, act: Any, node: int = 0) -> Step:
    return Step(after, node, act)


FIRST = After(ticks=20)


def _ticks(count: int) -> After:
    return After(ticks=count)


def _later(seconds: float) -> After:
    return After(seconds=seconds)


PAST: Mapping[str, Callable[[int], Plan]] = {
    "a resumed run's unanswered tool is asked about, not run again": lambda n: _plan(
        n,
        _at(FIRST, Submit(0, 0)),
        _at(After(ticks=6, seconds=3.0, moment="tool.started"), Kill(_ticks(2))),
        _at(_later(2.0), Decide(0, "once")),
        script=WORK,
        recovery=Policy(auto_continue=True),
    ),
    "a question under way is not hidden by a compaction": lambda n: _plan(
        n,
        _at(FIRST, Submit(0, 0)),
        _at(_later(1.0), OnSession("compact", 0, 0)),
        _at(_later(1.0), Decide(0, "once")),
        script=ASK,
    ),
    "a run that is decided while it is being parked is executed once": lambda n: _plan(
        n,
        _at(FIRST, Submit(0, 0)),
        _at(After(seconds=3.0, moment="approval.requested"), Decide(0, "once")),
        _at(_later(8.0), Cancel(0)),
        script=ASK,
    ),
    "a watcher of an erased run is let go": lambda n: _plan(
        n,
        _at(FIRST, Submit(0, 0)),
        _at(After(ticks=3, seconds=3.0, moment="tool.started"), OnSession("clear", 0, 0)),
        _at(_later(1.0), OnRun("watch", 0)),
        _at(_later(1.0), Tick()),
        _at(_later(1.0), OnRun("watch", 0)),
        script=WORK,
    ),
    "a cursor that the journal gave is not ahead": lambda n: _plan(
        n,
        _at(FIRST, Submit(0, 0)),
        _at(After(ticks=1, seconds=3.0, moment="run.started"), OnRun("watch", 0, 0, Watch(after=3))),
        script=WORK,
        plans=(NodePlan(journal={("append", n): Fault("stall_after", 2.0) for n in (1, 2, 3)}),),
    ),
    "a question is put once, also if parking failed": lambda n: _plan(
        n,
        _at(FIRST, Submit(0, 0)),
        _at(After(seconds=3.0, moment="approval.requested"), Break("store", "all", "cut", 8.0)),
        _at(_later(20.0), Decide(0, "once")),
        script=ASK,
        recovery=Policy(auto_continue=True),
    ),
    "an erased journal stays erased": lambda n: _plan(
        n,
        _at(FIRST, Submit(0, 0)),
        _at(_later(0.1), OnSession("clear", 0, 0)),
        _at(_later(1.0), Break("store", "owner", "cut", 20.0)),
        _at(_later(11.0), Tick(), 1),
        _at(_later(1.0), Tick(), 0),
        nodes=2,
        script=WORK,
        plans=tuple(NodePlan(journal={("append", 1): Fault("stall", 14.0)}) for _ in range(2)),
    ),
    "an attached run does not depend on its node's clock": lambda n: _plan(
        n,
        _at(FIRST, Submit(0, 0, lifetime="attached")),
        _at(_later(2.0), Tick(), 1),
        nodes=2,
        script=WORK,
        calm=True,
        plans=(NodePlan(skew=-40.0), NodePlan(skew=-40.0)),
    ),
    "what was settled with nothing is not recovered again": lambda n: _plan(
        n,
        _at(FIRST, Submit(0, 0)),
        _at(After(seconds=3.0, moment="claimed"), Break("journal", "all", "cut", 6.0)),
        _at(_ticks(1), Cancel(0)),
        _at(_ticks(6), Kill(_ticks(2))),
        _at(_later(12.0), OnRun("recover", 0)),
        _at(_later(1.0), OnSession("read", 0, 0)),
        script=(Hang(),),
        recovery=Policy(max_attempts=1),
    ),
    "a stop that was stored is obeyed, whatever fails after it": lambda n: _plan(
        n,
        _at(FIRST, Submit(0, 0, serial=1)),
        _at(After(seconds=3.0, moment="tool.started"), Submit(0, 0, serial=2, on_busy="interrupt")),
        _at(After(seconds=1.0, moment="asked to end"), Break("store", "all", "cut", 1.0)),
        script=(Say("hello "), Call("c1", takes=500.0)),
    ),
    "a feed that is trimmed under its reader says so": lambda n: _plan(
        n,
        _at(FIRST, FollowChanges((1, 50), 6.0), 1),
        _at(_later(1.0), Submit(0, 0, serial=1)),
        _at(_later(1.0), Submit(0, 0, serial=2)),
        _at(After(seconds=5.0, ticks=n % 8), Break("store", "one", "stalled", 2.0), 0),  # the reader is back, there
        _at(_later(0.5), Tick(), 1),
        nodes=2,
        keep_changes=3,
    ),
    "a watcher gets the terminal event before it is told the end": lambda n: _plan(
        n,
        _at(FIRST, Submit(0, 0, serial=1)),
        _at(_later(0.5), Submit(0, 0, serial=2)),
        _at(_later(0.5), OnRun("watch", 0), 0),
        _at(_ticks(n % 16), Break("store", "one", "stalled", 2.0), 0),
        _at(_later(0.5), Cancel(0), 1),
        nodes=2,
        script=WORK,
    ),
}
