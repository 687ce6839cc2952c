"""Histories that once found a bug, each played under many schedules and with its decisive instant moved.

Unlike seeds of the generator, they stay valid when the generator changes."""

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.agents.scripted_agent import CallTool, Hang, Say
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.engine.settings import EngineSettings
from holdfast.testing import Fault
from tests.sim import plan as p

SAY: p.Script = (Say("hello"),)
WORK: p.Script = (Say("hello "), CallTool("c1", takes=4.0), Say("there"))
ASK: p.Script = (Say("hello "), CallTool("c1", asks=True, takes=1.0), Say("there"))
FIRST = p.After(ticks=20)
SUBMIT = p.Step(FIRST, 0, p.Submit(0, 0))
CREATE = p.Step(p.After(), 0, p.Create(False, "able"))


def _plan(
    n: int,
    *steps: p.Step,
    first: p.Step = SUBMIT,
    script: p.Script = SAY,
    nodes: int = 0,
    plans: tuple[p.NodePlan, ...] = (),
    calm: bool = False,
    **settings: Any,
) -> p.Plan:
    """`n`: the schedule. `nodes`: of a cluster; 0: embedded. `calm`: nothing fails."""
    quick = {
        "poll_interval": 4.0,
        "sweep_interval": 10.0,
        "lease_time": 9.0,
        "drain_time": 0.0,
        "final_save": 5.0,
        "fence_wait": 1.0,
    }
    return p.Plan(
        seed=n,
        mode="cluster" if nodes else "embedded",
        nodes=nodes or 1,
        sessions=1,
        scripts=[script],
        settings=EngineSettings(**{**quick, **settings}),
        incarnations=plans,
        wakes={},
        steps=[CREATE, first, *steps],
        leave_waiting=False,
        troubled=not calm,
    )


def _at(after: p.After, act: Any, node: int = 0) -> p.Step:
    return p.Step(after, node, act)


def _ticks(count: int) -> p.After:
    return p.After(ticks=count)


def _later(seconds: float) -> p.After:
    return p.After(seconds=seconds)


REGRESSIONS: Mapping[str, Callable[[int], p.Plan]] = {
    "a resumed run's unanswered tool is asked about, not run again": lambda n: _plan(
        n,
        _at(p.After(ticks=6, seconds=3.0, moment="tool.started"), p.Kill(_ticks(2))),
        _at(_later(2.0), p.Decide(0, "once")),
        script=WORK,
        recovery=RecoveryPolicy(auto_continue=True),
    ),
    "a question under way is not hidden by a compaction": lambda n: _plan(
        n, _at(_later(1.0), p.OnSession("compact", 0, 0)), _at(_later(1.0), p.Decide(0, "once")), script=ASK
    ),
    "a run that is decided while it is being parked is executed once": lambda n: _plan(
        n,
        _at(p.After(seconds=3.0, moment="approval.requested"), p.Decide(0, "once")),
        _at(_later(8.0), p.Cancel(0)),
        script=ASK,
    ),
    "a watcher of an erased run is let go": lambda n: _plan(
        n,
        _at(p.After(ticks=3, seconds=3.0, moment="tool.started"), p.OnSession("clear", 0, 0)),
        _at(_later(1.0), p.OnRun("watch", 0)),
        _at(_later(1.0), p.Tick()),
        _at(_later(1.0), p.OnRun("watch", 0)),
        script=WORK,
    ),
    "a cursor that the journal gave is not ahead": lambda n: _plan(
        n,
        _at(p.After(ticks=1, seconds=3.0, moment="run.started"), p.OnRun("watch", 0, 0, p.Watch(after=3))),
        script=WORK,
        plans=(p.NodePlan(journal={("append", n): Fault("stall_after", 2.0) for n in (1, 2, 3)}),),
    ),
    "a question is put once, also if parking failed": lambda n: _plan(
        n,
        _at(p.After(seconds=3.0, moment="approval.requested"), p.Break("store", "all", "cut", 8.0)),
        _at(_later(20.0), p.Decide(0, "once")),
        script=ASK,
        recovery=RecoveryPolicy(auto_continue=True),
    ),
    "an erased journal stays erased": lambda n: _plan(
        n,
        _at(_later(0.1), p.OnSession("clear", 0, 0)),
        _at(_later(1.0), p.Break("store", "owner", "cut", 20.0)),
        _at(_later(11.0), p.Tick(), 1),
        _at(_later(1.0), p.Tick(), 0),
        nodes=2,
        script=WORK,
        plans=tuple(p.NodePlan(journal={("append", 1): Fault("stall", 14.0)}) for _ in range(2)),
    ),
    "an attached run does not depend on its node's clock": lambda n: _plan(
        n,
        _at(_later(2.0), p.Tick(), 1),
        first=_at(FIRST, p.Submit(0, 0, lifetime="attached")),
        nodes=2,
        script=WORK,
        calm=True,
        plans=(p.NodePlan(skew=-40.0), p.NodePlan(skew=-40.0)),
    ),
    "what was settled with nothing is not recovered again": lambda n: _plan(
        n,
        _at(p.After(seconds=3.0, moment="claimed"), p.Break("journal", "all", "cut", 6.0)),
        _at(_ticks(1), p.Cancel(0)),
        _at(_ticks(6), p.Kill(_ticks(2))),
        _at(_later(12.0), p.OnRun("recover", 0)),
        _at(_later(1.0), p.OnSession("read", 0, 0)),
        script=(Hang(),),
        recovery=RecoveryPolicy(max_attempts=1),
    ),
    "a stop that was stored is obeyed, whatever fails after it": lambda n: _plan(
        n,
        _at(p.After(seconds=3.0, moment="tool.started"), p.Submit(0, 0, serial=2, on_busy="interrupt")),
        _at(p.After(seconds=1.0, moment="asked to end"), p.Break("store", "all", "cut", 1.0)),
        first=_at(FIRST, p.Submit(0, 0, serial=1)),
        script=(Say("hello "), CallTool("c1", takes=500.0)),
    ),
    "a feed that is trimmed under its reader says so": lambda n: _plan(
        n,
        _at(_later(1.0), p.Submit(0, 0, serial=1)),
        _at(_later(1.0), p.Submit(0, 0, serial=2)),
        _at(p.After(seconds=5.0, ticks=n % 8), p.Break("store", "one", "stalled", 2.0), 0),  # the reader is back, there
        _at(_later(0.5), p.Tick(), 1),
        first=_at(FIRST, p.FollowChanges((1, 50), 6.0), 1),
        nodes=2,
        keep_changes=3,
    ),
    "a watcher gets the terminal event before it is told the end": lambda n: _plan(
        n,
        _at(_later(0.5), p.Submit(0, 0, serial=2)),
        _at(_later(0.5), p.OnRun("watch", 0), 0),
        _at(_ticks(n % 16), p.Break("store", "one", "stalled", 2.0), 0),
        _at(_later(0.5), p.Cancel(0), 1),
        first=_at(FIRST, p.Submit(0, 0, serial=1)),
        nodes=2,
        script=WORK,
    ),
    "a run that was queued while its acceptance was unanswered is executed once": lambda n: _plan(
        n,
        _at(_later(1.0), p.Submit(0, 0, serial=2)),
        _at(_later(0.5 + n % 4), p.Cancel(1)),
        first=_at(FIRST, p.Submit(0, 0, serial=1)),
        script=(Say("hello "), Hang()),
        idle_limit=20.0,
        plans=(p.NodePlan(store={("transact", 4): Fault("stall_after", 12.0)}),),
    ),
    "a question that is journaled while its node stops is closed before it is put again": lambda n: _plan(
        n,
        _at(_later(0.5), p.Stop(p.After(seconds=10.0)), 0),
        _at(_later(1.0 + n % 4), p.Tick(), 1),
        first=_at(FIRST, p.Submit(0, 0, agent="resuming")),
        nodes=2,
        script=ASK,
        plans=tuple(p.NodePlan(journal={("append", 2 + n % 2): Fault("stall", 2.0)}) for _ in range(2)),
        recovery=RecoveryPolicy(auto_continue=True),
    ),
}
