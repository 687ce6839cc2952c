"""How a run ends in the store: settling, later recovery. Each function is one transaction. What a run that ends leaves
to the next queued one: `engine.transactions.run_queue`; requests to end one: `engine.transactions.cancel_requests`.

`settle` is the only one that fills a message. When cancel and finish race, the journal's terminal event has decided
before `settle` is called; a cancel that comes later changes nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from holdfast.core.errors import NotAllowedError
from holdfast.core.events import Event, RunResumed
from holdfast.core.ids import OwnerId, RunId
from holdfast.core.late_approvals import mark_allowed
from holdfast.core.lease import NodeIdentity
from holdfast.core.run import ENDING_VERB, Recovery, Run, after
from holdfast.core.seed_events import seed_events
from holdfast.core.session import Session, with_transcript
from holdfast.core.transcript import Transcript, steered_ids
from holdfast.engine.transactions import approvals, memory, notifications, steering
from holdfast.engine.transactions.memory import MemoryPolicy
from holdfast.engine.transactions.row_access import get_run, put_active_session, put_run
from holdfast.ports.store import Change, Tx


def seed(tx: Tx, run: Run, *, begun: bool) -> list[Event]:
    """The first events of an empty journal: `run.resumed` if output was lost, because the run had `begun` or continues
    one whose output was lost, then the parts of the run that it continues, whose place its message has taken."""
    earlier = None if run.continues is None else tx.run(run.continues)
    unknown = earlier is not None and earlier.recovery is not None and earlier.recovery.state == "none"
    events: list[Event] = [RunResumed(run.epoch)] if begun or unknown else []
    if run.continues is not None:
        message = None if earlier is None else tx.message(earlier.message_id)
        parts = () if message is None else message.parts
        events += seed_events(run.continues, mark_allowed(parts, approvals.granted_calls(tx, run)))
    return events


@dataclass(frozen=True, slots=True)
class Settled:
    """A run that has ended, its session as it was before, and whether the session has other open runs."""

    run: Run | None
    session: Session | None = None
    has_queue: bool = False
    is_new: bool = False  # False if the run had ended before
    added: Sequence[Run] = ()  # Turns whose text is part of the run, and that are to end


def settle(
    tx: Tx,
    rid: RunId,
    transcript: Transcript,
    recovery: Recovery | None = None,
    memory_policy: MemoryPolicy | None = None,
) -> Settled:
    """Fill the message from the transcript and end the run; a second call changes nothing. If the message was erased,
    only the run ends and its journal is purged. A temporary session is deleted with its run."""
    run = tx.run(rid)
    if run is None or not (run.is_open or run.is_pending):
        session = None if run is None else tx.session(run.session_id)
        return Settled(run, session, has_queue=run is not None and bool(tx.open_runs(run.session_id)))
    assert transcript.status != "streaming"
    if transcript.lost and recovery is None:
        recovery = Recovery("none")
    run = replace(
        run,
        status=after(run, ENDING_VERB[transcript.status]),
        lease=None,
        connection=None,
        recovery=recovery,
        reason=transcript.reason,
        finish_reason=transcript.finish_reason,
        model=run.model or transcript.model,
        error=transcript.error,
        usage=transcript.usage,
        last_seq=transcript.last_seq,
        ended_at=run.ended_at or tx.now,
    )
    session = tx.session(run.session_id)
    message = tx.message(run.message_id)
    if session is not None and session.deleted_at is None and not session.is_kept:
        tx.put_session(replace(session, deleted_at=tx.now, version=session.version + 1))
        tx.add_change(Change("session.deleted", session.owner, session.id))
    elif session is None or session.deleted_at is not None or message is None:
        tx.queue_purges([rid])
        run = replace(run, pruned=True)
    else:
        tx.put_message(with_transcript(message, transcript, None if recovery is None else recovery.state))
        put_active_session(tx, session)
        if memory_policy is not None and run.status == "complete":
            memory.complete(tx, session, run, memory_policy)
        notifications.note_end(tx, run, session)
    approvals.deny_open(tx, run)
    is_deleted = session is None or session.deleted_at is not None
    added = steering.resolve(tx, run, steered_ids(transcript.parts), is_deleted=is_deleted)
    put_run(tx, run)
    return Settled(run, session, has_queue=bool(tx.open_runs(run.session_id)), is_new=True, added=added)


def mark_pruned(tx: Tx, rids: Iterable[RunId]) -> None:
    for rid in rids:
        run = tx.run(rid)
        if run is not None:
            tx.put_run(replace(run, pruned=True))


# ---- pending recoveries: attempts to read a journal that could not be read, one at a time ----


def begin_attempt(tx: Tx, me: NodeIdentity, seen: Run) -> Run | None:
    """Take the lease of a pending run, so that one reader at a time looks for its output."""
    run = tx.run(seen.id)
    if run is None or not run.is_pending or run.epoch != seen.epoch or run.lease != seen.lease:
        return None
    run = replace(run, epoch=run.epoch + 1, lease=me.lease(tx.now))
    tx.put_run(run)
    return run


def end_attempt(tx: Tx, held: Run, recovery: Recovery) -> None:
    """Release the run, which stays pending or ends as it is shown, unless its recovery was restarted meanwhile."""
    run = tx.run(held.id)
    if run is None or run.epoch != held.epoch or not run.is_pending:
        return
    if run.recovery is not None and run.recovery != held.recovery:
        recovery = run.recovery
    run = replace(run, lease=None, recovery=recovery)
    if recovery.state == "pending":
        tx.put_run(run)
        return
    put_run(tx, run)
    steering.give_up(tx, run)
    message = tx.message(run.message_id)
    if message is not None:
        tx.put_message(replace(message, recovery=recovery.state))
    tx.add_change(Change("session.changed", run.owner, run.session_id))


def settle_empty(tx: Tx, held: Run, transcript: Transcript) -> bool:
    """Settle a run whose sealed journal has no output. False if its recovery was restarted meanwhile."""
    run = tx.run(held.id)
    if run is not None and run.recovery is not None and run.recovery != held.recovery:
        end_attempt(tx, held, run.recovery)
        return False
    settle(tx, held.id, transcript, Recovery("none"))
    return True


def restart(tx: Tx, rid: RunId, owner: OwnerId) -> Run:
    """An explicit `recover` restarts a recovery, also one that was given up."""
    run = get_run(tx, rid, owner)
    if run.recovery is None or run.last_seq:
        raise NotAllowedError("recover", "its journal was read to the end, so there is nothing left to recover")
    message = tx.message(run.message_id)
    if message is not None:
        tx.put_message(replace(message, recovery="pending"))
    tx.add_change(Change("session.changed", run.owner, run.session_id))
    return put_run(tx, replace(run, recovery=Recovery("pending", tx.now)))
