"""Generates plans from a seed: random acts, and scenarios for situations that random acts seldom reach."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, get_args

from tests.sim import plan as p
from tests.sim import plan_parts
from tests.sim.plan_parts import Dice


def generate(seed: int) -> p.Plan:
    return _Maker(Dice(seed)).plan(seed)


class _Maker:
    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._serial = 0
        self._keyed: list[p.Submit] = []
        self._overrides: dict[str, Any] = {}
        """Settings that a tale needs."""
        self._calm = dice.likely(0.15)
        self._cluster = dice.likely(0.4)
        self._nodes = dice.one(2, 2, 2, 3) if self._cluster else 1
        self._sessions = dice.one(1, 1, 1, 2, 3)
        self._scripts = [plan_parts.script(dice) for _ in range(dice.one(1, 2))]

    def plan(self, seed: int) -> p.Plan:
        dice = self._dice
        steps = [p.Step(p.After(), dice.below(3), self._create()) for _ in range(self._sessions)]
        steps.append(p.Step(p.After(ticks=20), dice.below(3), self._submit()))
        if dice.likely(0.55):
            for step in dice.one(*(CLUSTER_TALES if self._cluster else TALES))(self):
                steps += self._random(dice.one(0, 0, 0, 1))
                steps.append(step)
            steps += self._random(dice.one(0, 0, 1, 2))
        else:
            steps += self._random(dice.one(2, 3, 4, 5, 8))
        faulty = not self._calm and dice.likely(0.6)
        return p.Plan(
            seed=seed,
            mode="cluster" if self._cluster else "embedded",
            nodes=self._nodes,
            sessions=self._sessions,
            scripts=self._scripts,
            settings=replace(plan_parts.settings(dice), **self._overrides),
            incarnations=[
                plan_parts.node_plan(dice, faulty=faulty and dice.likely(0.7)) for _ in range(self._nodes + 1)
            ],
            wakes=plan_parts.wake_plan(dice) if not self._calm and dice.likely(0.25) else {},
            steps=steps,
            leave_waiting=dice.likely(0.2),
            troubled=not self._calm,
            memory=plan_parts.memory_plan(seed),
            budget=plan_parts.budget_plan(seed),
        )

    def _next(self) -> int:
        self._serial += 1
        return self._serial

    def _random(self, count: int) -> list[p.Step]:
        return [p.Step(self._pause(), self._dice.below(3), self._act()) for _ in range(count)]

    def _act(self) -> p.Act:
        at = self._dice.random.random() * _TOTAL
        for weight, make in ACTS:
            at -= weight
            if at < 0:
                return make(self)
        return self._submit()

    def _pause(self) -> p.After:
        """Mostly the next thing happens while the last is being done; no time passes then, only turns."""
        dice = self._dice
        match dice.below(10):
            case 0 | 1 | 2 | 3:
                return p.After(ticks=dice.below(dice.one(6, 16, 32)))
            case 4 | 5:
                return p.After(ticks=dice.below(12), seconds=dice.one(0.1, 0.5, 1.0))
            case 6:
                return p.After(ticks=dice.below(6), seconds=dice.one(2.0, 4.0))
            case 7:
                return p.After(seconds=dice.one(6.0, 12.0))
            case _:
                return self._at(*MOMENTS)

    def _at(self, *moments: p.Moment) -> p.After:
        return p.After(ticks=self._dice.below(self._dice.one(2, 5, 12)), seconds=3.0, moment=self._dice.one(*moments))

    def _step(self, after: p.After, act: p.Act, node: int | None = None) -> p.Step:
        return p.Step(after, self._dice.below(3) if node is None else node, act)

    # ---- acts of clients ----

    def _create(self) -> p.Create:
        return p.Create(self._dice.likely(0.2), self._dice.one("able", "able", "resuming", "unable"))

    def _watch(self) -> p.Watch:
        dice = self._dice
        leaves = tuple(dice.one(1, 1, 2, 4) for _ in range(dice.one(0, 0, 1, 3)))
        return p.Watch(leaves, dice.one(p.After(), p.After(ticks=4), p.After(seconds=2.0)), dice.one(0, 0, 0, 3))

    def _key(self, share: float) -> str | None:
        return f"key{self._next()}" if self._dice.likely(share) else None

    def _submit(self, script: int | None = None, agent: p.AgentName | None = None) -> p.Submit:
        dice = self._dice
        if script is None and self._keyed and dice.likely(0.2):
            return dice.one(*self._keyed)  # the same request again
        attached = dice.likely(0.2) and agent is None
        who: p.AgentName = dice.one(*AGENTS) if agent is None else agent
        key = None if attached else self._key(0.5)
        act = p.Submit(
            session=dice.below(self._sessions),
            script=dice.below(len(self._scripts)) if script is None else script,
            agent=who,
            on_busy=dice.one("queue", "queue", "queue", "interrupt", "interrupt", "reject"),
            lifetime="attached" if attached else "detached",
            key=key,
            serial=self._next(),
            twice=key is not None and dice.likely(0.3),
            insists=key is not None and dice.likely(0.5),
            watch=self._watch() if dice.likely(0.5) else None,
            leaves=self._pause() if dice.likely(0.7) else None,
        )
        if act.key is not None:
            self._keyed.append(act)
            if dice.likely(0.1):  # the same key for something else
                self._keyed.append(p.Submit(act.session, act.script, key=act.key, serial=self._next()))
        return act

    def _again(self, kind: p.TurnKind | None = None) -> p.Act:
        dice, key = self._dice, self._key(0.4)
        which: p.TurnKind = dice.one(*AGAIN) if kind is None else kind
        return p.Again(
            which,
            dice.below(3),
            dice.below(8) if kind is None else 0,
            dice.below(len(self._scripts)),
            self._next(),
            key,
            twice=key is not None and dice.likely(0.4),
            insists=key is not None and dice.likely(0.4),
            watch=self._watch() if dice.likely(0.3) else None,
        )

    def _cancel(self) -> p.Act:
        return p.Cancel(self._dice.below(3), self._dice.likely(0.3))

    def _steer(self) -> p.Act:
        dice, key = self._dice, self._key(0.5)
        known = key is not None
        script = dice.below(len(self._scripts))
        return p.Steer(dice.below(3), script, self._next(), key, known and dice.likely(0.3), known and dice.likely(0.5))

    def _decide(self) -> p.Act:
        dice = self._dice
        return p.Decide(dice.below(3), dice.one("once", "once", "session", "always", "deny"), dice.likely(0.3))

    def _on_run(self) -> p.Act:
        verbs: tuple[p.RunVerb, ...] = ("recover", "read", "watch", "watch", "edit_queued")
        return p.OnRun(self._dice.one(*verbs), self._dice.below(4), self._next(), self._watch())

    def _on_session(self) -> p.Act:
        dice = self._dice
        verbs: tuple[p.SessionVerb, ...]
        verbs = ("undo", "undo", "redo", "truncate", "switch", "fork", "compact", "amend", "title", "list")
        return p.OnSession(dice.one(*verbs), dice.below(3), dice.below(8), dice.likely(0.1), dice.one(0.0, 0.0, 1.0))

    def _read(self) -> p.Act:
        verbs: tuple[p.SessionVerb, ...] = ("read", "messages")
        return p.OnSession(self._dice.one(*verbs), self._dice.below(3), 0)

    def _erase(self) -> p.Act:
        verbs: tuple[p.SessionVerb, ...] = ("clear", "delete")
        return p.OnSession(self._dice.one(*verbs), self._dice.below(3), 0)

    def _changes(self) -> p.Act:
        dice = self._dice
        return p.FollowChanges(tuple(dice.one(1, 3) for _ in range(dice.below(3))), dice.one(1.0, 1.0, 20.0))

    def _tick(self) -> p.Act:
        return p.Tick()

    # ---- trouble ----

    def _down(self) -> p.After | None:
        dice = self._dice
        if dice.likely(0.3):
            return None
        return p.After(ticks=dice.below(6), seconds=dice.one(0.0, 0.0, 1.0, 10.0))

    def _kill(self) -> p.Act:
        return p.Kill(self._down())

    def _break(self, port: p.Port, where: p.Where) -> p.Act:
        hows: tuple[p.How, ...] = ("cut", "cut", "stalled")
        return p.Break(port, where, self._dice.one(*hows), self._dice.one(0.5, 3.0, 10.0, 25.0))

    def _trouble(self) -> p.Act:
        """Something happens to a node or to storage."""
        dice = self._dice
        if self._calm:
            return p.Tick()
        match dice.below(10):
            case 0 | 1 | 2 | 3:
                return p.Kill(self._down())
            case 4 | 5:
                return p.Stop(self._down(), abrupt=dice.likely(0.4))
            case 6:
                return p.Start() if self._cluster else p.Jump(dice.one(-3600.0, -30.0, 30.0, 3600.0))
            case _:
                ports: tuple[p.Port, ...] = ("store", "journal", "journal", "wakeups")
                wheres: tuple[p.Where, ...] = ("all", "all", "one", "owner")
                return self._break(dice.one(*ports), dice.one(*wheres))

    # ---- tales ----

    def _works(self, *, asks: bool, takes: float | None = None) -> p.Submit:
        """A turn with a tool in it, by an agent that can take it up again (mostly)."""
        takes = self._dice.one(0.0, 1.0, 4.0, 12.0) if takes is None else takes
        self._scripts.append(plan_parts.working_script(self._dice, asks=asks, takes=takes))
        return self._submit(len(self._scripts) - 1, self._dice.one("able", "able", "resuming", "unable"))

    def crash_in_tool(self) -> list[p.Step]:
        """The process goes around a tool's effect; then the run is taken up again."""
        dice = self._dice
        end = p.Kill(p.After(ticks=dice.below(6))) if dice.likely(0.7) else p.Stop(self._down())
        over = dice.one(12.0, 22.0) if self._cluster else dice.one(1.0, 3.0)
        return [
            self._step(self._pause(), self._works(asks=dice.likely(0.3), takes=dice.one(0.0, 1.0, 4.0, 4.0))),
            self._step(self._at("tool.started", "tool.started", "tool.finished", "claimed"), self._calmly(end)),
            self._step(p.After(seconds=over), self._again("continue")),
            self._step(p.After(seconds=1.0), p.Decide(0, "once")),
        ]

    def crash_in_question(self) -> list[p.Step]:
        """Something happens between asking, waiting, deciding and going on."""
        dice = self._dice
        what = dice.one(self._trouble, self._kill, self._kill, self._kill, self._cancel, self._decide, self._erase)
        soon = p.After(ticks=dice.below(4), seconds=3.0, moment="approval.requested")
        return [
            self._step(self._pause(), self._works(asks=True)),
            self._step(dice.one(soon, self._at("parked", "claimed")), self._calmly(what())),
            self._step(p.After(seconds=dice.one(0.0, 2.0, 14.0)), self._decide()),
            self._step(self._at("decided", "approval.resolved", "tool.started"), self._trouble()),
        ]

    def journal_away(self) -> list[p.Step]:
        """A run dies while its journal cannot be read; somebody reads the session before and after it is back."""
        dice = self._dice
        away = p.Break("journal", "all", dice.one("cut", "cut", "stalled"), dice.one(8.0, 20.0, 40.0))
        return [
            self._step(self._pause(), self._works(asks=dice.likely(0.3))),
            self._step(self._at("text.delta", "tool.started", "claimed", "run.started"), self._calmly(away)),
            self._step(p.After(ticks=dice.below(8)), dice.one(self._trouble, self._cancel)()),
            self._step(p.After(seconds=dice.one(1.0, 8.0)), self._read()),
            self._step(p.After(seconds=dice.one(8.0, 14.0)), self._read()),
            self._step(p.After(seconds=dice.one(1.0, 20.0)), p.OnRun("recover", 0)),
        ]

    def steered(self) -> list[p.Step]:
        """Text is added to a run with a tool, and something happens around the moment when the run takes it."""
        dice = self._dice
        what = dice.one(
            self._trouble, self._kill, self._kill, self._cancel, self._on_run, self._erase, self._on_session
        )
        steps = [
            self._step(self._pause(), self._works(asks=dice.likely(0.4), takes=dice.one(0.0, 1.0, 4.0))),
            self._step(self._at("tool.started", "parked", "claimed", "text.delta"), self._steer()),
        ]
        if dice.likely(0.3):
            steps.append(self._step(p.After(ticks=dice.below(4)), self._steer()))
        if dice.likely(0.25):
            away = p.Break("journal", "all", dice.one("cut", "stalled"), dice.one(3.0, 20.0, 40.0))
            steps.append(self._step(self._at("tool.finished", "asked to end"), self._calmly(away)))
        soon = p.After(ticks=dice.below(4), seconds=3.0, moment=dice.one("asked to end", "message.steered"))
        steps.append(self._step(dice.one(soon, self._at("tool.finished", "decided")), self._calmly(what())))
        steps.append(self._step(p.After(seconds=dice.one(0.0, 2.0, 14.0)), self._decide()))
        return steps

    def split(self) -> list[p.Step]:
        """The owner loses the store or the journal, the others perhaps the other one: all think they know."""
        dice = self._dice
        port: p.Port = dice.one("store", "store", "journal")
        other: p.Port = dice.one("journal", "journal", "store")
        how: p.How = dice.one("cut", "stalled")
        lost = p.Break(port, "owner", how, dice.one(12.0, 20.0, 30.0))
        return [
            self._step(self._pause(), self._works(asks=False)),
            self._step(self._at("claimed", "text.delta", "tool.started"), self._calmly(lost)),
            self._step(p.After(ticks=dice.below(8)), self._calmly(self._break(other, "others"))),
            self._step(p.After(seconds=dice.one(10.0, 18.0)), self._read()),
            self._step(p.After(seconds=dice.one(1.0, 9.0)), self._read()),
        ]

    def late(self) -> list[p.Step]:
        """The owner seals and cannot settle until another node has shown the run as pending."""
        dice = self._dice
        self._overrides = {"lease_time": 9.0, "final_save": 15.0, "fence_wait": 1.0}
        away = dice.one(11.0, 12.0, 13.0)
        return [
            self._step(self._pause(), self._works(asks=False, takes=dice.one(0.0, 1.0))),
            self._step(
                p.After(ticks=dice.below(3), seconds=3.0, moment="sealed"),
                self._calmly(p.Break("store", "owner", "stalled", away)),
            ),
            self._step(p.After(), self._calmly(p.Break("journal", "others", "cut", away + 2.0))),
            self._step(p.After(seconds=dice.one(9.5, 10.0)), p.OnSession("read", 0, 0), 0),
            self._step(p.After(), p.OnSession("read", 0, 0), 1),
        ]

    def queue(self) -> list[p.Step]:
        """Several turns at once for one session, and what people then do to them."""
        dice = self._dice
        self._sessions = 1
        acts = [self._works(asks=dice.likely(0.5)), self._submit(0), self._submit(0), self._submit(0)]
        steps = [self._step(p.After(ticks=dice.below(8)), act) for act in acts]
        steps.append(self._step(p.After(ticks=dice.below(12)), p.OnRun("edit_queued", dice.below(3), self._next())))
        steps.append(self._step(self._pause(), self._cancel()))
        steps.append(self._step(self._pause(), dice.one(self._trouble, self._decide, self._erase)()))
        return steps

    def follow(self) -> list[p.Step]:
        """Somebody follows the change feed, stays away too long, and comes back."""
        self._overrides = {"keep_changes": 4}
        return [
            self._step(self._pause(), p.FollowChanges((1, 1), 12.0)),
            self._step(p.After(seconds=1.0), self._submit()),
            self._step(p.After(seconds=3.0), self._submit()),
            self._step(p.After(seconds=1.0), p.Tick()),
            self._step(p.After(seconds=10.0), self._read()),
        ]

    def _calmly(self, act: p.Act) -> p.Act:
        """Nothing fails in a calm history."""
        calm = self._calm and isinstance(act, p.Kill | p.Stop | p.Start | p.Break | p.Jump)
        return self._cancel() if calm else act


AGENTS: tuple[p.AgentName, ...] = ("able", "able", "resuming", "unable")
AGAIN: tuple[p.TurnKind, ...] = ("retry", "edit", "continue", "continue")
MOMENTS: tuple[p.Moment, ...] = get_args(p.Moment)

TALES: Sequence[Callable[[_Maker], list[p.Step]]] = (
    _Maker.crash_in_tool,
    _Maker.crash_in_tool,
    _Maker.crash_in_question,
    _Maker.crash_in_question,
    _Maker.journal_away,
    _Maker.queue,
    _Maker.follow,
    _Maker.steered,
    _Maker.steered,
)
CLUSTER_TALES = (*TALES, _Maker.split, _Maker.split, _Maker.late)

ACTS: Sequence[tuple[float, Callable[[_Maker], p.Act]]] = (
    (30, _Maker._submit),
    (10, _Maker._again),
    (9, _Maker._cancel),
    (5, _Maker._steer),
    (12, _Maker._decide),
    (7, _Maker._on_run),
    (10, _Maker._on_session),
    (7, _Maker._read),
    (2, _Maker._erase),
    (3, _Maker._changes),
    (3, _Maker._tick),
    (16, _Maker._trouble),
)
_TOTAL = sum(weight for weight, _ in ACTS)
