"""The decisions about orphaned runs, and the state of pending recoveries."""

from collections.abc import Iterator
from itertools import product
from typing import Final, Literal, get_args

import pytest

from holdfast.core.events import Failure, RunEnded
from holdfast.core.ids import NodeId
from holdfast.core.lease import Lease
from holdfast.core.recovery_rules import (
    AgentAbilities,
    JournalReading,
    OrphanDecision,
    RecoveryPolicy,
    after_read,
    decide_orphan,
    resumes_after,
    should_retry,
    terminal_event,
)
from holdfast.core.run import OUTAGE, Intent, Recovery, Run, RunStatus
from tests.core.values import a_run

# ---- orphaned runs ----

AXES: Final = {
    "status": get_args(RunStatus),
    "lease": ("live", "dead", "none"),
    "intent": ("no", "cancelled", "failed", "outage"),
    "client": ("detached", "here", "gone", "nobody"),  # the others are attached, by their connection's lease
    "parks": ("parks", "stays"),
    "resumes": ("resumes", "ends"),
    "auto": ("on", "off"),
    "budget": ("left", "spent"),
}
OUTAGE_INTENT: Final = Intent("failed", OUTAGE, Failure("storage-unavailable", "It did not answer."))
Case = tuple[str, ...]

# One row a rule: `a|b` is either, `*` is all. The rows cover every case exactly once (a test below says so).
TABLE: Final[tuple[tuple[str, OrphanDecision], ...]] = (
    # status                                 lease      intent            client         agent          auto budget
    (
        "complete|cancelled|failed|interrupted  *          *                 *              *      *       *    *",
        "leave",
    ),
    (
        "queued|running|waiting                 live       *                 *              *      *       *    *",
        "leave",
    ),
    ("queued|running|waiting                 dead|none  cancelled|failed  *              *      *       *    *", "end"),
    (
        "queued                                 dead|none  no|outage         detached|here  *      *       *    *",
        "leave",
    ),
    ("queued                                 dead|none  no|outage         gone|nobody    *      *       *    *", "end"),
    ("waiting                                dead|none  outage            *              *      *       *    *", "end"),
    (
        "waiting                                none       no                detached|here  parks  *       *    *",
        "leave",
    ),
    ("waiting                                dead       no                detached|here  parks  *       *    *", "end"),
    ("waiting                                dead|none  no                detached|here  stays  *       *    *", "end"),
    ("waiting                                dead|none  no                gone|nobody    *      *       *    *", "end"),
    ("running                                dead|none  no|outage         here           *      *       *    *", "end"),
    ("running                                dead|none  no|outage         gone|nobody    *      *       *    *", "end"),
    ("running                                dead|none  no|outage         detached       *      ends    *    *", "end"),
    ("running                                dead|none  no|outage         detached       *      resumes off  *", "end"),
    (
        "running                                dead|none  no|outage         detached       *      resumes on   spent",
        "end",
    ),
    (
        "running                                dead|none  no|outage         detached       *      resumes on   left",
        "continue",
    ),
)

ME, EARLIER, ELSEWHERE = NodeId("node_2"), NodeId("node_1"), NodeId("node_3")
NOW = 1000.0
INTENTS: Final = {"no": None, "cancelled": Intent("cancelled"), "failed": Intent("failed"), "outage": OUTAGE_INTENT}
Mode = Literal["lock", "clock"]


def cases(row: str) -> Iterator[Case]:
    columns = row.split()
    assert len(columns) == len(AXES)
    values = [
        everything if column == "*" else column.split("|")
        for column, everything in zip(columns, AXES.values(), strict=True)
    ]
    assert all(set(chosen) <= set(axis) for chosen, axis in zip(values, AXES.values(), strict=True))
    return product(*values)


def lease(mode: Mode, state: str) -> Lease | None:
    match mode, state:
        case "lock", "live" | "here":
            return Lease(ME)
        case "lock", "dead" | "gone":
            return Lease(EARLIER)
        case "clock", "live" | "here":
            return Lease(ELSEWHERE, NOW + 0.001)
        case "clock", "dead" | "gone":
            return Lease(ELSEWHERE, NOW)
        case _:
            return None


def judged(case: Case, mode: Mode) -> OrphanDecision:
    status, held, intent, client, parks, resumes, auto, budget = case
    policy = RecoveryPolicy(auto_continue=auto == "on", max_resumes=2)
    run = a_run(
        status=status,
        lease=lease(mode, held),
        intent=INTENTS[intent],
        lifetime="detached" if client == "detached" else "attached",
        connection=lease(mode, client),
        resumes=1 if budget == "left" else 2,
    )
    incarnation = ME if mode == "lock" else None
    agent = AgentAbilities(parks == "parks", resumes == "resumes")
    return decide_orphan(run, incarnation=incarnation, now=NOW, agent=agent, policy=policy)


@pytest.mark.parametrize("mode", ["lock", "clock"])
@pytest.mark.parametrize(("row", "expected"), TABLE, ids=lambda value: " ".join(value.split()))
def test_the_decision_is_that_of_the_table(row: str, expected: OrphanDecision, mode: Mode) -> None:
    """X2: every combination of status, lease, intent, lifetime, agent and setting has the decision of its row."""
    assert {case: judged(case, mode) for case in cases(row)} == dict.fromkeys(cases(row), expected)


def test_the_table_of_decisions_has_each_case_once() -> None:
    """The rows above leave no combination out and none is in two of them."""
    listed = [case for row, _ in TABLE for case in cases(row)]
    assert sorted(listed) == sorted(product(*AXES.values()))


@pytest.mark.parametrize("policy", [RecoveryPolicy(), RecoveryPolicy(auto_continue=True, max_resumes=0)])
def test_a_dead_run_is_ended_unless_it_may_be_continued(policy: RecoveryPolicy) -> None:
    """X2: automatic continue is off by default, and does nothing with an empty budget."""
    agent = AgentAbilities(park=True, resume=True)
    assert decide_orphan(a_run(status="running"), incarnation=ME, now=NOW, agent=agent, policy=policy) == "end"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (a_run(), RunEnded("interrupted", reason="process-gone")),
        (a_run(intent=Intent("cancelled", "user")), RunEnded("cancelled", reason="user")),
        (a_run(intent=Intent("cancelled", "disconnected")), RunEnded("cancelled", reason="disconnected")),
        (
            a_run(intent=Intent("failed", error=Failure("storage-full", "Free some space."))),
            RunEnded("failed", error=Failure("storage-full", "Free some space.")),
        ),
        (
            a_run(intent=Intent("failed", "limit", Failure("limit", "Too long."))),
            RunEnded("failed", reason="limit", error=Failure("limit", "Too long.")),
        ),
    ],
)
def test_a_run_is_sealed_as_somebody_wanted_it_or_as_interrupted(run: Run, expected: RunEnded) -> None:
    """X3: a run whose process is gone ends as interrupted, unless a cancel or a failure was already decided."""
    assert terminal_event(run) == expected


@pytest.mark.parametrize(
    ("readable", "now", "expected"), [(True, NOW, 2), (False, NOW, 1), (False, NOW + 99.0, 1), (False, NOW + 100.0, 2)]
)
def test_waiting_for_a_journal_uses_up_no_resumes(readable: bool, now: float, expected: int) -> None:
    """J4: a run that automatic continue puts back while its journal does not answer has as many attempts left as
    before, until it is as old as a recovery that is given up."""
    policy = RecoveryPolicy(auto_continue=True, give_up_after=100.0)
    assert resumes_after(a_run(started_at=NOW, resumes=1), now, policy, readable=readable) == expected


# ---- pending recoveries ----

POLICY = RecoveryPolicy(max_attempts=3, give_up_after=100.0)


@pytest.mark.parametrize(
    ("recovery", "now", "expected"),
    [
        (Recovery("pending", since=1000.0), 1000.0, True),
        (Recovery("pending", since=1000.0), 1099.9, True),
        (Recovery("pending", since=1000.0), 1100.0, False),
        (Recovery("pending", since=1000.0), 9999.0, False),
        (Recovery("pending", since=1000.0), 900.0, True),  # the clock was set back
        (Recovery("pending", since=1000.0, attempts=2), 1050.0, True),
        (Recovery("recovered"), 10.0, False),
        (Recovery("none"), 10.0, False),
    ],
)
def test_a_pending_recovery_is_due_until_the_give_up_age(recovery: Recovery, now: float, expected: bool) -> None:
    """J6: past the give-up age there is no further look, and none at what is recovered or given up."""
    assert should_retry(recovery, now, POLICY) is expected


@pytest.mark.parametrize("attempts", [0, 1, 2])
@pytest.mark.parametrize("now", [1000.0, 1099.0, 1100.0, 9999.0])
def test_found_output_ends_the_recovery_without_a_trace(attempts: int, now: float) -> None:
    """J2: output makes it recovered, at whatever age and attempt, and no bookkeeping is left."""
    pending = Recovery("pending", since=1000.0, attempts=attempts)
    assert after_read(pending, "output", now, POLICY) == Recovery("recovered", since=0.0, attempts=0)


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        (["unavailable"] * 50, Recovery("pending", since=1000.0)),
        (["empty"], Recovery("pending", since=1000.0, attempts=1)),
        (["empty", "unavailable", "empty", "unavailable"], Recovery("pending", since=1000.0, attempts=2)),
        (["empty", "unavailable", "empty", "empty"], Recovery("none")),
    ],
)
def test_a_sealed_journal_without_output_uses_up_the_attempts(
    readings: list[JournalReading], expected: Recovery
) -> None:
    """J4, J5: each empty look counts one, and at the maximum the recovery is given up for good; a journal that is
    still arriving neither counts nor forgives."""
    recovery = Recovery("pending", since=1000.0)
    for reading in readings:
        recovery = after_read(recovery, reading, 1050.0, POLICY)
    assert recovery == expected


@pytest.mark.parametrize("reading", ["unavailable", "empty"])
@pytest.mark.parametrize(("now", "expected"), [(1099.9, "pending"), (1100.0, "none"), (9999.0, "none")])
def test_a_fruitless_look_at_the_give_up_age_is_the_last(reading: JournalReading, now: float, expected: str) -> None:
    """J6: time runs out for an arriving journal as for an empty one, and nothing of the bookkeeping stays."""
    after = after_read(Recovery("pending", since=1000.0), reading, now, POLICY)
    assert after.state == expected
    assert after.state == "pending" or after == Recovery("none")
