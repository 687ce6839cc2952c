"""Plans from a seed. Plain `random`, because a plan must cost less than the history it describes."""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from holdfast.agents.scripted import Call, Crash, Fail, Hang, Say, Spend, Think, Tokens
from holdfast.agents.scripted import Step as ModelStep
from holdfast.core.recovery import Policy
from holdfast.engine.settings import Settings
from holdfast.testing import Fault
from holdfast.testing.faults import Operation
from tests.sim import plan as p

T = TypeVar("T")

WORDS = ("so ", "then ", "héllo ", "one\ntwo ", "🜂 ", "a" * 40)


def generate(seed: int) -> p.Plan:
    return _Maker(Random(seed)).plan(seed)


class _Maker:
    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._serial = 0
        self._keys: list[p.Submit] = []

    def _likely(self, share: float) -> bool:
        return self._chance.random() < share

    def _one(self, *choices: T) -> T:
        return self._chance.choice(choices)

    def _n(self, most: int) -> int:
        return self._chance.randrange(most)

    def _next(self) -> int:
        self._serial += 1
        return self._serial

    def plan(self, seed: int) -> p.Plan:
        cluster = self._likely(0.45)
        nodes = self._one(2, 2, 2, 3) if cluster else 1
        sessions = self._one(1, 1, 1, 2, 3)
        calm = self._likely(0.2)
        scripts = [self._script() for _ in range(self._one(1, 2, 3))]
        self._scripts = len(scripts)
        self._sessions = sessions
        self._faulty = not calm
        self._cluster = cluster
        steps = [p.Step(p.After(), self._n(nodes), self._create()) for _ in range(sessions)]
        steps += [self._step(n) for n in range(self._one(4, 5, 6, 7, 8, 10, 14))]
        faulty = not calm and self._likely(0.75)
        incarnations = [self._node(faulty and self._likely(0.7)) for _ in range(nodes + 1)]
        wakes = {}
        if not calm and self._likely(0.3):
            wakes = {self._n(60) + 1: self._one("lost", "lost", "doubled") for _ in range(self._one(1, 4, 30))}
        return p.Plan(
            seed=seed,
            mode="cluster" if cluster else "embedded",
            nodes=nodes,
            sessions=sessions,
            scripts=scripts,
            settings=self._settings(),
            incarnations=incarnations,
            wakes=wakes,
            steps=steps,
            leave_waiting=self._likely(0.2),
            troubled=not calm,
        )

    def _create(self) -> p.Create:
        return p.Create(self._likely(0.2), self._one("able", "able", "unable"))

    # ---- settings ----

    def _settings(self) -> Settings:
        one = self._one
        return Settings(
            max_runs=one(1, 2, 2000, 2000),
            wall_limit=one(20.0, 60.0, 600.0),
            idle_limit=one(8.0, 30.0, 600.0),
            max_output=one(600, 32_000_000, 32_000_000, 32_000_000),
            room=one(16, 64_000),
            tail=one(1, 200, 256_000),
            storage_patience=one(0.5, 3.0, 20.0),
            final_save=one(1.0, 5.0),
            drain=one(0.0, 0.0, 2.0),
            cancel_wait=one(0.5, 2.0),
            fence_wait=one(1.0, 5.0),
            poll=one(3.0, 8.0),
            sweep=one(8.0, 20.0),
            lease_time=one(6.0, 12.0),
            retention=one(0.0, 6.0, 1_000_000.0, 1_000_000.0),
            keep_changes=one(10, 100_000, 100_000),
            touch_every=one(0.5, 10.0),
            recovery=Policy(
                max_attempts=one(1, 2, 3),
                give_up_after=one(10.0, 60.0, 600.0),
                auto_continue=self._likely(0.4),
                max_resumes=one(1, 2),
            ),
        )

    # ---- scripts ----

    def _script(self) -> p.Script:
        """Something to say, with something in its way now and then."""
        actions = [self._action(n) for n in range(self._one(1, 2, 2, 3, 4, 5))]
        if self._likely(0.35):
            actions.insert(self._n(len(actions) + 1), self._obstacle())
        if self._likely(0.05):
            actions = [action for action in actions if isinstance(action, Spend | ModelStep | p.Once)]
        return tuple(actions)

    def _action(self, n: int) -> p.Action:
        match self._n(10):
            case 0 | 1 | 2:
                return Say(self._words(), after=self._one(0.0, 0.0, 0.3, 2.0))
            case 3:
                return Think(self._words(), after=self._one(0.0, 0.0, 1.0))
            case 4:
                return Tokens(self._one(2, 4, 8), rate=self._one(None, 2.0, 10.0))
            case 5:
                return self._one(Spend(3, 5), ModelStep(n))
            case _:
                return Call(
                    f"c{n}",
                    args=self._one(None, {"path": "x"}),
                    takes=self._one(0.0, 0.5, 1.0, 4.0),
                    output=self._one((), (), ("out ", "put")),
                    writes_args=self._one((), (), ('{"pa', 'th": "x"}')),
                    asks=self._likely(0.4),
                    repeatable=self._likely(0.35),
                    is_error=self._likely(0.1),
                )

    def _words(self) -> str:
        return "".join(self._chance.choice(WORDS) for _ in range(self._one(1, 2, 3)))

    def _obstacle(self) -> p.Action | p.Once:
        return self._one(Hang(), p.Once(Hang()), p.Once(Fail()), p.Once(Fail()), Fail(), p.Once(Crash()), Crash())

    # ---- steps ----

    def _step(self, n: int) -> p.Step:
        after = self._pause()
        if n == 0:
            return p.Step(p.After(ticks=3), self._n(3), self._submit())
        total = sum(weight for weight, _ in ACTS)
        at = self._chance.random() * total
        for weight, make in ACTS:
            at -= weight
            if at < 0:
                act = make(self)
                break
        else:
            act = self._submit()
        return p.Step(after, self._n(3), act)

    def _pause(self) -> p.After:
        """Mostly the next thing happens while the last is being done; no time passes then, only turns."""
        match self._n(8):
            case 0 | 1 | 2 | 3:
                return p.After(ticks=self._n(self._one(6, 16, 32)))
            case 4 | 5:
                return p.After(ticks=self._n(12), seconds=self._one(0.1, 0.5, 1.0))
            case 6:
                return p.After(ticks=self._n(6), seconds=self._one(2.0, 4.0))
            case _:
                return p.After(seconds=self._one(6.0, 12.0))

    def _watch(self) -> p.Watch:
        leaves = tuple(self._one(1, 1, 2, 4) for _ in range(self._one(0, 0, 1, 3)))
        return p.Watch(leaves, self._one(p.After(), p.After(ticks=4), p.After(seconds=2.0)), self._one(0, 0, 0, 3))

    def _submit(self) -> p.Act:
        if self._keys and self._likely(0.2):
            return self._chance.choice(self._keys)  # the same request again
        key = None if self._likely(0.5) else f"key{self._next()}"
        attached = self._likely(0.2)
        act = p.Submit(
            session=self._n(self._sessions),
            script=self._n(self._scripts),
            agent=self._one("able", "able", "unable"),
            on_busy=self._one("queue", "queue", "queue", "interrupt", "interrupt", "reject"),
            lifetime="attached" if attached else "detached",
            key=key if not attached else None,
            serial=self._next(),
            twice=key is not None and self._likely(0.3),
            insists=key is not None and self._likely(0.5),
            watch=self._watch() if self._likely(0.5) else None,
            leaves=self._pause() if self._likely(0.7) else None,
        )
        if act.key is not None:
            self._keys.append(act)
            if self._likely(0.1):  # the same key for something else
                self._keys.append(p.Submit(act.session, act.script, key=act.key, serial=self._next()))
        return act

    def _again(self) -> p.Act:
        key = None if self._likely(0.6) else f"key{self._next()}"
        return p.Again(
            self._one("retry", "edit", "continue", "continue"),
            self._n(3),
            self._n(8),
            self._n(self._scripts),
            self._next(),
            key,
            twice=key is not None and self._likely(0.4),
            insists=key is not None and self._likely(0.4),
            watch=self._watch() if self._likely(0.3) else None,
        )

    def _cancel(self) -> p.Act:
        return p.Cancel(self._n(3), self._likely(0.3))

    def _decide(self) -> p.Act:
        return p.Decide(self._n(3), self._one("once", "once", "session", "always", "deny"), self._likely(0.3))

    def _on_run(self) -> p.Act:
        verb = self._one("recover", "read", "watch", "watch", "edit_queued")
        return p.OnRun(verb, self._n(4), self._next(), self._watch())

    def _on_session(self) -> p.Act:
        verb = self._one("undo", "redo", "truncate", "switch", "fork", "compact", "amend", "title", "list")
        return p.OnSession(verb, self._n(3), self._n(8), self._likely(0.1), self._one(0.0, 0.0, 1.0))

    def _read(self) -> p.Act:
        return p.OnSession(self._one("read", "messages"), self._n(3), 0)

    def _erase(self) -> p.Act:
        return p.OnSession(self._one("clear", "delete"), self._n(3), 0)

    def _changes(self) -> p.Act:
        return p.FollowChanges(tuple(self._one(1, 3) for _ in range(self._n(3))))

    def _tick(self) -> p.Act:
        return p.Tick()

    def _trouble(self) -> p.Act:
        """Something happens to a node or to storage."""
        if not self._faulty:
            return p.Tick()
        down = p.After(ticks=self._n(6), seconds=self._one(0.0, 0.0, 1.0, 10.0))
        match self._n(10):
            case 0 | 1 | 2 | 3:
                return p.Kill(down if self._likely(0.7) else None)
            case 4 | 5:
                return p.Stop(down if self._likely(0.7) else None)
            case 6:
                return p.Start() if self._cluster else p.Jump(self._one(-3600.0, -30.0, 30.0, 3600.0))
            case _:
                port: p.Port = self._one("store", "journal", "journal", "wakeups")
                how = self._one("cut", "cut", "stalled")
                return p.Break(port, self._likely(0.5), how, self._one(0.5, 3.0, 8.0, 20.0))

    # ---- faults ----

    def _node(self, faulty: bool) -> p.NodePlan:
        skew = self._one(0.0, 0.0, 0.0, -40.0, 40.0)
        if not faulty:
            return p.NodePlan(skew=skew)
        store = [self._fault("transact", 40, STORE_FAULTS), self._fault("read", 60, READ_FAULTS)]
        journal = [
            self._fault("append", 14, WRITE_FAULTS),
            self._fault("append", 14, WRITE_FAULTS),
            self._fault("fence", 3, WRITE_FAULTS),
            self._fault("heads", 6, READ_FAULTS),
            self._fault("read", 12, READ_FAULTS),
            self._fault("settled", 5, WRITE_FAULTS),
            self._fault("purge", 2, WRITE_FAULTS),
            self._fault("reopen", 2, READ_FAULTS),
        ]
        self._chance.shuffle(store)
        self._chance.shuffle(journal)
        return p.NodePlan(
            {place: fault for many in store[: self._one(0, 1, 2)] for place, fault in many},
            {place: fault for many in journal[: self._one(0, 1, 2, 3)] for place, fault in many},
            skew,
        )

    def _fault(
        self, operation: Operation, within: int, kinds: Sequence[Fault]
    ) -> list[tuple[tuple[Operation, int], Fault]]:
        """One call or a few in a row."""
        first, count = self._n(within) + 1, self._one(1, 1, 1, 2, 5)
        return [((operation, n), self._chance.choice(kinds)) for n in range(first, first + count)]


READ_FAULTS = (Fault("refuse"), Fault("stall", 1.0), Fault("stall", 7.0))
WRITE_FAULTS = (
    Fault("refuse"),
    Fault("refuse"),
    Fault("doubt"),
    Fault("doubt"),
    Fault("stall", 2.0),
    Fault("stall", 12.0),
    Fault("stall_after", 2.0),
    Fault("stall_after", 12.0),
)
STORE_FAULTS = (*WRITE_FAULTS, Fault("conflict"), Fault("conflict"))

ACTS: Sequence[tuple[float, Callable[[_Maker], p.Act]]] = (
    (30, _Maker._submit),
    (9, _Maker._again),
    (9, _Maker._cancel),
    (12, _Maker._decide),
    (7, _Maker._on_run),
    (9, _Maker._on_session),
    (7, _Maker._read),
    (2, _Maker._erase),
    (3, _Maker._changes),
    (3, _Maker._tick),
    (16, _Maker._trouble),
)
