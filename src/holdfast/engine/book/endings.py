"""How a run ends in the store: taken over, shown as pending, looked for again, settled. Each function is one
transaction; `settle` is the only one that fills a message."""

from collections.abc import Callable, Collection, Iterable

from holdfast.core.errors import NotAllowed
from holdfast.core.events import Event
from holdfast.core.ids import OwnerId, RunId
from holdfast.core.recovery import Policy, verdict
from holdfast.core.run import ENDING_VERB, Recovery, Run, after, step
from holdfast.core.seeds import seeds
from holdfast.core.transcript import Transcript
from holdfast.core.values import replace
from holdfast.engine.book import remembering
from holdfast.engine.book.remembering import Keeping
from holdfast.engine.book.rows import DISCONNECTED, Me, put_approval, put_run, put_session, the_run
from holdfast.ports import Tx


def take_over(
    tx: Tx,
    me: Me,
    seen: Iterable[Run],
    can_continue: Callable[[Run], bool],
    policy: Policy,
    sealed: Collection[RunId] = (),
) -> list[Run]:
    """Put back what goes on by itself; of the rest raise the epoch and hold the lease while it is being ended. Only
    what still has the lease it was seen with, which the caller found dead. A journal that is `sealed` has nothing to
    go on with. Returns the ones that are ours to end."""
    ours: list[Run] = []
    for before in seen:
        run = tx.run(before.id)
        if run is None or run.epoch != before.epoch or run.lease != before.lease:
            continue
        intent = run.intent or before.intent
        fate = verdict(
            run,
            incarnation=me.incarnation,
            now=tx.now,
            can_continue=can_continue(run),
            policy=policy,
            gone=True,
            intent=intent,
        )
        if fate == "leave":
            continue
        if fate == "continue" and run.id not in sealed:
            put_run(tx, replace(step(run, "requeue"), lease=None, resumes=run.resumes + 1))
            continue
        if run.status == "queued" and intent is None:  # only a client that left ends a run which has not begun
            intent = DISCONNECTED
        run = replace(run, epoch=run.epoch + 1, lease=me.lease(tx.now), intent=intent)
        tx.put_run(run)
        ours.append(run)
    return ours


def mark_pending(tx: Tx, runs: Iterable[Run]) -> None:
    """J1: the journal cannot be fenced now. Show the run as interrupted and free the session; the rest comes later."""
    for held in runs:
        run = tx.run(held.id)
        if run is None or run.epoch != held.epoch or run.lease != held.lease or not run.is_open:
            continue  # somebody else's by now, or parked after all
        run = replace(step(run, "interrupt"), lease=None, recovery=Recovery("pending", tx.now), ended_at=tx.now)
        put_run(tx, run)
        message = tx.message(run.message_id)
        if message is not None:
            tx.put_message(replace(message, status="interrupted", recovery="pending"))
        _deny_open(tx, run)
        tx.add_change("session.changed", run.owner, run.session_id)


def take_look(tx: Tx, me: Me, seen: Run) -> Run | None:
    """J3: one reader at a time looks for the output of a pending run; the lease says who."""
    run = tx.run(seen.id)
    if run is None or not run.is_pending or run.epoch != seen.epoch or run.lease != seen.lease:
        return None
    run = replace(run, epoch=run.epoch + 1, lease=me.lease(tx.now))
    tx.put_run(run)
    return run


def end_look(tx: Tx, held: Run, recovery: Recovery) -> None:
    """The look found nothing final, or the time is over. The run ends as it is shown, or stays pending; a recovery that
    was begun anew meanwhile (`look_again`) is not ended by a look that began before it."""
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
    message = tx.message(run.message_id)
    if message is not None:
        tx.put_message(replace(message, recovery=recovery.state))
    tx.add_change("session.changed", run.owner, run.session_id)


def end_in_vain(tx: Tx, held: Run, transcript: Transcript) -> bool:
    """J5: sealed without output, and looked at often enough. False: the recovery was begun anew meanwhile."""
    run = tx.run(held.id)
    if run is not None and run.recovery is not None and run.recovery != held.recovery:
        end_look(tx, held, run.recovery)
        return False
    settle(tx, held.id, transcript, Recovery("none"))
    return True


def look_again(tx: Tx, rid: RunId, owner: OwnerId) -> Run:
    """J6: an explicit `recover` begins a recovery anew that was given up."""
    run = the_run(tx, rid, owner)
    if run.recovery is None or run.last_seq:
        raise NotAllowed("recover", "its journal was read to the end, so there is nothing left to recover")
    message = tx.message(run.message_id)
    if message is not None:
        tx.put_message(replace(message, recovery="pending"))
    tx.add_change("session.changed", run.owner, run.session_id)
    return put_run(tx, replace(run, recovery=Recovery("pending", tx.now)))


def seed(tx: Tx, run: Run) -> list[Event]:
    """The first events of a continuing run: what the run before it left behind. Whoever seals one whose journal is
    still empty writes this before the terminal event: its message has taken the earlier one's place."""
    if run.continues is None:
        return []
    earlier = tx.run(run.continues)
    message = None if earlier is None else tx.message(earlier.message_id)
    return seeds(run.continues, () if message is None else message.parts)


def settle(
    tx: Tx, rid: RunId, transcript: Transcript, recovery: Recovery | None = None, keeping: Keeping | None = None
) -> Run | None:
    """Fold's result into the message, and the run ended, once. Whatever ended it, this is the only way; a second call
    finds it done. If the message is gone (clear, delete) only the run ends, and its journal goes too. A session that is
    not to be kept is deleted with its run; it is erased when its client, who may still be reading, has left.
    `keeping`: a turn that is complete is one to be remembered."""
    run = tx.run(rid)
    if run is None or not (run.is_open or run.is_pending):
        return run
    assert transcript.status != "streaming"
    run = replace(
        run,
        status=after(run, ENDING_VERB[transcript.status]),
        lease=None,
        connection=None,
        recovery=recovery,
        reason=transcript.reason,
        finish_reason=transcript.finish_reason,
        error=transcript.error,
        usage=transcript.usage,
        last_seq=transcript.last_seq,
        ended_at=run.ended_at or tx.now,
    )
    session = tx.session(run.session_id)
    message = tx.message(run.message_id)
    if session is not None and session.deleted_at is None and not session.is_kept:
        tx.put_session(replace(session, deleted_at=tx.now, version=session.version + 1))
        tx.add_change("session.deleted", session.owner, session.id)
    elif session is None or session.deleted_at is not None or message is None:
        tx.add_purge([rid])
        run = replace(run, pruned=True)
    else:
        tx.put_message(
            replace(
                message,
                status=transcript.status,
                parts=transcript.parts,
                reason=transcript.reason,
                error=transcript.error,
                usage=transcript.usage,
                recovery=None if recovery is None else recovery.state,
                last_seq=transcript.last_seq,
            )
        )
        put_session(tx, replace(session, updated_at=tx.now))
        if keeping is not None and run.status == "complete":
            remembering.complete(tx, session, run, keeping)
    _deny_open(tx, run)
    return put_run(tx, run)


def _deny_open(tx: Tx, run: Run) -> None:
    """A question of a run that has ended is answered with deny."""
    for approval in tx.open_approvals(run.id):
        put_approval(tx, replace(approval, decision="deny", decided_at=tx.now))


def mark_pruned(tx: Tx, rids: Iterable[RunId]) -> None:
    for rid in rids:
        run = tx.run(rid)
        if run is not None:
            tx.put_run(replace(run, pruned=True))
