"""Parts of plans: random choices, settings, scripts and faults."""

from collections.abc import Sequence
from random import Random
from typing import Literal, TypeVar

from holdfast.agents.scripted_agent import Action, CallTool, Crash, Fail, Hang, Say, SayTokens, Think
from holdfast.core.events import StepStarted, Usage
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.engine.settings import EngineSettings
from holdfast.testing import Fault
from holdfast.testing.faults import Operation
from tests.sim.plan import Brittle, MemoryPlan, NodePlan, Once, Script

T = TypeVar("T")


class Dice:
    """Plain `random`: a plan must cost less than the history it describes."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def likely(self, share: float) -> bool:
        return self.random.random() < share

    def one(self, *choices: T) -> T:
        return self.random.choice(choices)

    def below(self, most: int) -> int:
        return self.random.randrange(most)


# ---- settings ----


def settings(dice: Dice) -> EngineSettings:
    """Small, so that limits are reached; some of them out of reach, so that nothing rests on limits."""
    one = dice.one
    return EngineSettings(
        max_runs=one(1, 2, 2000, 2000),
        wall_limit=one(30.0, 60.0, 600.0),
        idle_limit=one(18.0, 40.0, 600.0),
        max_output=one(600, 32_000_000, 32_000_000, 32_000_000),
        max_uncommitted=one(16, 64_000),
        live_tail_bytes=one(1, 200, 256_000),
        storage_retry_time=one(0.5, 3.0, 20.0),
        final_save=one(1.0, 5.0, 15.0),
        drain_time=one(0.0, 0.0, 2.0),
        cancel_wait=one(0.5, 2.0),
        fence_wait=one(1.0, 5.0),
        poll_interval=one(4.0, 10.0),
        sweep_interval=one(10.0, 25.0),
        lease_time=one(9.0, 15.0),
        retention=one(0.0, 6.0, 1_000_000.0, 1_000_000.0),
        touch_every=one(0.5, 10.0),
        recovery=RecoveryPolicy(
            max_attempts=one(1, 2, 3),
            give_up_after=one(10.0, 60.0, 600.0),
            auto_continue=dice.likely(0.4),
            max_resumes=one(1, 2),
        ),
    )


# ---- scripts ----

WORDS = ("so ", "then ", "héllo ", "one\ntwo ", "🜂 ", "a" * 40)


def script(dice: Dice) -> Script:
    """Something to say, with something in its way now and then."""
    actions: list[Action | Once | Brittle] = [_action(dice, n) for n in range(dice.one(1, 2, 2, 3, 4, 5))]
    if dice.likely(0.35):
        actions.insert(dice.below(len(actions) + 1), _obstacle(dice))
    if dice.likely(0.05):
        actions = [action for action in actions if isinstance(action, Usage | StepStarted | Once)]
    if dice.likely(0.1):
        actions.append(Brittle())
    return tuple(actions)


def working_script(dice: Dice, *, asks: bool, takes: float) -> Script:
    """One with a tool in the middle, which takes its time or asks first."""
    tool = CallTool(
        "c9",
        args={"path": "x"},
        takes=takes,
        output=dice.one((), ("out ", "put")),
        writes_args=dice.one((), ('{"pa', 'th": "x"}')),
        asks=asks,
        repeatable=dice.likely(0.35),
    )
    before: list[Action | Once] = [_speech(dice)] if dice.likely(0.6) else []
    after: list[Action | Once] = [_speech(dice)] if dice.likely(0.6) else []
    if dice.likely(0.4):
        after.insert(0, _action(dice, 1))
    if dice.likely(0.2):
        after.append(dice.one(Once(Fail()), Once(Hang())))
    return (*before, tool, *after)


def _speech(dice: Dice) -> Action:
    words = "".join(dice.one(*WORDS) for _ in range(dice.one(1, 2, 3)))
    match dice.below(5):
        case 0 | 1 | 2:
            return Say(words, after=dice.one(0.0, 0.0, 0.3, 2.0, 8.0))
        case 3:
            return Think(words, after=dice.one(0.0, 0.0, 1.0))
        case _:
            return SayTokens(dice.one(2, 4, 8), rate=dice.one(None, 2.0, 10.0))


def _action(dice: Dice, n: int) -> Action:
    match dice.below(10):
        case 0 | 1 | 2 | 3 | 4:
            return _speech(dice)
        case 5:
            return Usage(3, 5) if dice.likely(0.5) else StepStarted(n)
        case _:
            return CallTool(
                f"c{n}",
                args=dice.one(None, {"path": "x"}),
                takes=dice.one(0.0, 0.5, 1.0, 4.0),
                output=dice.one((), (), ("out ", "put")),
                writes_args=dice.one((), (), ('{"pa', 'th": "x"}')),
                asks=dice.likely(0.4),
                repeatable=dice.likely(0.35),
                is_error=dice.likely(0.1),
            )


def _obstacle(dice: Dice) -> Action | Once:
    obstacles: tuple[Action, ...] = (Hang(), Fail(), Fail(), Crash())
    obstacle = dice.one(*obstacles)
    return Once(obstacle) if dice.likely(0.6) else obstacle


# ---- faults ----

READ_FAULTS = (Fault("refuse"), Fault("refuse"), Fault("stall", 1.0), Fault("stall", 7.0))
WRITE_FAULTS = (
    *(Fault("refuse"), Fault("refuse"), Fault("doubt"), Fault("doubt")),
    *(Fault("stall", 2.0), Fault("stall", 12.0), Fault("stall_after", 2.0), Fault("stall_after", 12.0)),
)
STORE_FAULTS = (*WRITE_FAULTS, Fault("conflict"), Fault("conflict"))

_STORE: Sequence[tuple[Operation, int, Sequence[Fault]]] = (
    ("transact", 10, STORE_FAULTS),
    ("transact", 25, STORE_FAULTS),
    ("read", 25, READ_FAULTS),
)
_JOURNAL: Sequence[tuple[Operation, int, Sequence[Fault]]] = (
    ("append", 4, WRITE_FAULTS),
    ("append", 6, WRITE_FAULTS),
    ("append", 10, WRITE_FAULTS),
    ("fence", 2, WRITE_FAULTS),
    ("heads", 4, READ_FAULTS),
    ("read", 8, READ_FAULTS),
    ("settled", 3, WRITE_FAULTS),
    ("purge", 1, WRITE_FAULTS),
    ("reopen", 2, READ_FAULTS),
)


def node_plan(dice: Dice, *, faulty: bool) -> NodePlan:
    skew = dice.one(0.0, 0.0, 0.0, -40.0, 40.0)
    if not faulty:
        return NodePlan(skew=skew)
    return NodePlan(_some(dice, _STORE, dice.one(0, 1, 2)), _some(dice, _JOURNAL, dice.one(0, 1, 2, 3)), skew)


def _some(
    dice: Dice, kinds: Sequence[tuple[Operation, int, Sequence[Fault]]], count: int
) -> dict[tuple[Operation, int], Fault]:
    """`count` of them; each strikes one call, or a few in a row."""
    plan: dict[tuple[Operation, int], Fault] = {}
    for operation, within, faults in dice.random.sample(kinds, count):
        first = dice.below(within) + 1
        for n in range(first, first + dice.one(1, 1, 1, 2, 6)):
            plan[operation, n] = dice.one(*faults)
    return plan


def memory_plan(seed: int) -> MemoryPlan | None:
    """From dice of its own, so that the rest of a history does not depend on it."""
    dice = Dice(seed ^ 0x6D656D6F)
    if dice.likely(0.5):
        return None
    calls = range(1, 13)
    return MemoryPlan(
        frozenset(dice.random.sample(calls, dice.one(0, 0, 1, 2))),
        frozenset(dice.random.sample(calls, dice.one(0, 0, 1, 2))),
        takes=dice.one(0.0, 0.0, 0.5, 3.0),
        idle=dice.one(2.0, 10.0, 40.0),
        incognito=dice.one(None, None, 0, 1),
    )


def budget_plan(seed: int) -> int | None:
    """From dice of its own, as well. A step of a script reports 8 tokens, if any."""
    dice = Dice(seed ^ 0x62756467)
    return dice.one(0, 8, 16, 32) if dice.likely(0.2) else None


def wake_plan(dice: Dice) -> dict[int, Literal["lost", "doubled"]]:
    fates: tuple[Literal["lost", "doubled"], ...] = ("lost", "lost", "doubled")
    return {dice.below(60) + 1: dice.one(*fates) for _ in range(dice.one(1, 4, 30))}
