"""The state machine of a run, and live leases."""

from dataclasses import replace
from itertools import product
from typing import Final, get_args

import pytest

from holdfast.core.errors import IllegalTransitionError
from holdfast.core.events import Ending
from holdfast.core.ids import NodeId
from holdfast.core.lease import Lease, is_live
from holdfast.core.run import ENDING_VERB, Intent, Recovery, RecoveryState, RunStatus, Verb, step
from tests.core.values import a_run

STATUSES: Final[tuple[RunStatus, ...]] = get_args(RunStatus)
VERBS: Final[tuple[Verb, ...]] = get_args(Verb)

# Written from DESIGN, not from run.TRANSITIONS. A run that automatic continue or a decision put back into the queue may
# turn out to have a sealed journal (the crash came between seal and settle), and then that decides (DESIGN §3.4, §3.5):
# so a queued run can end in every way.
LEGAL: Final[dict[tuple[RunStatus, Verb], RunStatus]] = {
    ("queued", "claim"): "running",
    ("queued", "complete"): "complete",
    ("queued", "cancel"): "cancelled",
    ("queued", "fail"): "failed",
    ("queued", "interrupt"): "interrupted",
    ("running", "park"): "waiting",
    ("running", "requeue"): "queued",
    ("running", "complete"): "complete",
    ("running", "cancel"): "cancelled",
    ("running", "fail"): "failed",
    ("running", "interrupt"): "interrupted",
    ("waiting", "decide"): "queued",
    ("waiting", "answer"): "running",
    ("waiting", "complete"): "complete",
    ("waiting", "cancel"): "cancelled",
    ("waiting", "fail"): "failed",
    ("waiting", "interrupt"): "interrupted",
}

LEGAL_WHILE_PENDING: Final[dict[Verb, RunStatus]] = {
    "complete": "complete",
    "cancel": "cancelled",
    "fail": "failed",
    "interrupt": "interrupted",
}


@pytest.mark.parametrize(("status", "verb"), list(product(STATUSES, VERBS)))
def test_a_verb_moves_the_run_as_the_table_says_or_raises(status: RunStatus, verb: Verb) -> None:
    """J1, J2, X3: every transition of DESIGN §2 leads where it says and touches the status alone; what the table does
    not list is refused with both names. An interrupted run moves only while its recovery is pending, and only to what
    the journal's terminal event says."""
    for recovery in (None, Recovery("recovered"), Recovery("none"), Recovery("pending", 5.0, 1)):
        run = a_run(status=status, recovery=recovery, epoch=3, last_seq=7)
        target = LEGAL.get((status, verb))
        if status == "interrupted" and run.is_pending:
            target = LEGAL_WHILE_PENDING.get(verb)
        if target is not None:
            assert step(run, verb) == replace(run, status=target)
            continue
        with pytest.raises(IllegalTransitionError) as refused:
            step(run, verb)
        assert (refused.value.status, refused.value.verb) == (status, verb)


@pytest.mark.parametrize("ending", get_args(Ending))
def test_each_ending_has_a_verb_that_leads_to_it(ending: Ending) -> None:
    """Settling a running run by the verb of its terminal event gives the status of that event."""
    assert step(a_run(status="running"), ENDING_VERB[ending]).status == ending


@pytest.mark.parametrize("status", STATUSES)
def test_a_run_is_open_until_it_has_ended(status: RunStatus) -> None:
    """Queued, running and waiting runs are open; the others are not."""
    assert a_run(status=status).is_open is (status in ("queued", "running", "waiting"))


@pytest.mark.parametrize(
    ("intent", "requested"), [(None, False), (Intent("cancelled", "user"), True), (Intent("failed"), False)]
)
def test_only_the_wish_to_cancel_counts_as_a_requested_cancel(intent: Intent | None, requested: bool) -> None:
    """A run that storage gave way under is to end too, but nobody asked for its cancel."""
    assert a_run(intent=intent).cancel_requested is requested


@pytest.mark.parametrize(("state", "pending"), [("pending", True), ("recovered", False), ("none", False)])
def test_a_run_is_pending_only_in_that_state(state: RecoveryState, pending: bool) -> None:
    """J1: a run that was recovered or given up is no longer pending."""
    assert a_run(recovery=Recovery(state)).is_pending is pending
    assert not a_run(recovery=None).is_pending


ME, OTHER = NodeId("node_2"), NodeId("node_1")


@pytest.mark.parametrize(
    ("lease", "incarnation", "now", "live"),
    [
        # the data directory's lock: the holder's own life is the lease, and no clock is looked at
        (Lease(ME), ME, 0.0, True),
        (Lease(ME), ME, 1e12, True),
        (Lease(OTHER), ME, 0.0, False),
        (Lease(OTHER), ME, -1e12, False),
        (Lease(OTHER), None, 0.0, False),
        # the store's clock: it ends at the instant it names, and who holds it does not matter
        (Lease(ME, 10.0), None, 9.999, True),
        (Lease(ME, 10.0), None, 10.0, False),
        (Lease(OTHER, 10.0), None, 9.999, True),
        (Lease(OTHER, 10.0), None, 10.001, False),
        (Lease(OTHER, 10.0), ME, 9.0, True),
        (Lease(ME, 10.0), ME, 11.0, False),
        (Lease(ME, 0.0), None, 0.0, False),
        # nobody holds it
        (None, ME, 0.0, False),
        (None, None, 0.0, False),
    ],
)
def test_a_lease_is_live_by_its_holder_or_by_the_clock(
    lease: Lease | None, incarnation: NodeId | None, now: float, live: bool
) -> None:
    """X2: one's own lease never lapses under the directory's lock; elsewhere the store's clock judges."""
    assert is_live(lease, incarnation, now) is live
