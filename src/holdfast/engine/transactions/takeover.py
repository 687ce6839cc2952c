"""Taking over runs whose node is gone: the leases of orphaned runs move to this node, or the runs are requeued to
continue automatically. `core.recovery_rules.decide_orphan` decides which. Each function is one transaction."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Final

from holdfast.core.ids import RunId
from holdfast.core.lease import NodeIdentity
from holdfast.core.recovery_rules import AgentAbilities, RecoveryPolicy, decide_orphan, resumes_after
from holdfast.core.run import Recovery, Run, step
from holdfast.engine.transactions import notifications, steering
from holdfast.engine.transactions.approvals import RESTARTED, deny_open
from holdfast.engine.transactions.cancel_requests import DISCONNECTED
from holdfast.engine.transactions.row_access import put_run
from holdfast.ports.store import Change, Tx

UNREADABLE: Final = "journal-unavailable"  # The reason of a run whose recovery is pending


def take_over(
    tx: Tx,
    me: NodeIdentity,
    seen: Iterable[Run],
    abilities: Callable[[Run], AgentAbilities],
    policy: RecoveryPolicy,
    sealed: Collection[RunId] | None = (),
) -> list[Run]:
    """Take over orphaned runs whose epoch and lease are still as the caller saw them. Requeues those that continue
    automatically, unless their journal is `sealed` (None: the journal does not answer); returns the others, now leased,
    to be ended."""
    ours: list[Run] = []
    for before in seen:
        run = tx.run(before.id)
        if run is None or run.epoch != before.epoch or run.lease != before.lease:
            continue
        run, agent = replace(run, intent=run.intent or before.intent, started_at=before.started_at), abilities(run)
        decision = decide_orphan(
            run, incarnation=me.incarnation, now=tx.now, agent=agent, policy=policy, holder_gone=True
        )
        if decision == "leave":
            continue
        if decision == "continue" and run.id not in (sealed or ()):
            if not agent.park:
                deny_open(tx, run, RESTARTED)  # asked right before the crash: nothing waits for the answer
            resumes = resumes_after(run, tx.now, policy, readable=sealed is not None)
            put_run(tx, replace(step(run, "requeue"), lease=None, intent=None, resumes=resumes))
            continue
        if run.status == "queued" and run.intent is None:  # one that never started only ends if its client left
            run = replace(run, intent=DISCONNECTED)
        run = replace(run, epoch=run.epoch + 1, lease=me.lease(tx.now))
        tx.put_run(run)
        ours.append(run)
    return ours


def mark_pending(tx: Tx, runs: Iterable[Run]) -> None:
    """The journal cannot be fenced now: show the runs as interrupted and free their sessions until it can."""
    for held in runs:
        run = tx.run(held.id)
        if run is None or run.epoch != held.epoch or run.lease != held.lease or not run.is_open:
            continue  # taken over by another node, or parked after all
        error = None if run.intent is None else run.intent.error
        run = replace(step(run, "interrupt"), lease=None, recovery=Recovery("pending", tx.now), ended_at=tx.now)
        put_run(tx, replace(run, reason=UNREADABLE, error=error))
        session = tx.session(run.session_id)
        if session is not None:
            notifications.note_end(tx, run, session)
        message = tx.message(run.message_id)
        if message is not None:
            message = replace(message, status="interrupted", recovery="pending", reason=UNREADABLE, error=error)
            tx.put_message(message)
        deny_open(tx, run)
        steering.release_offered(tx, run)
        tx.add_change(Change("session.changed", run.owner, run.session_id))
