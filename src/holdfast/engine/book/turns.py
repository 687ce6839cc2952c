"""The life of a run in the store. Each function is the body of one transaction and may be run again after a
conflict."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from holdfast.core import session as tree
from holdfast.core.errors import (
    AlreadyDecided,
    Busy,
    KeyReused,
    NotAllowed,
    NotFound,
    VersionMismatch,
    message_not_found,
    run_not_found,
    session_not_found,
)
from holdfast.core.events import ApprovalRequested, Decision, MessageSeeded
from holdfast.core.ids import ApprovalId, MessageId, NodeId, OwnerId, RunId, SessionId
from holdfast.core.parts import File, Json, Part
from holdfast.core.recovery import Policy, verdict
from holdfast.core.run import ENDING_VERB, Intent, Lease, Lifetime, Recovery, Run, dead, is_live, step
from holdfast.core.session import Message, Session
from holdfast.core.transcript import Transcript
from holdfast.ports import Approval, Tx

OnBusy = Literal["queue", "reject", "interrupt"]
SUPERSEDED = Intent("cancelled", reason="superseded")
DISCONNECTED = Intent("cancelled", reason="disconnected")


@dataclass(frozen=True, slots=True)
class NewIds:
    """Ids for a turn, made outside: a transaction that is run again must not make others."""

    run: RunId
    question: MessageId
    answer: MessageId


@dataclass(frozen=True, slots=True)
class Request:
    """A turn that somebody wants, whatever the way: sent, retried, edited or continued."""

    session_id: SessionId
    owner: OwnerId
    ids: NewIds
    fingerprint: str
    key: str | None = None
    input: tuple[Part, ...] = ()
    agent: str | None = None
    model: str | None = None
    settings: Json = None
    lifetime: Lifetime = "detached"
    attached_by: "Me | None" = None
    on_busy: OnBusy = "queue"


@dataclass(frozen=True, slots=True)
class Accepted:
    run: Run
    message: Message
    """The user's message."""
    fresh: bool = True
    """False: the key was known, and this is the run as it is now."""
    stop: tuple[Run, ...] = ()
    """Runs whose cancel was requested in the same transaction."""


# ---------------------------------------------------------------------------------------------- look-ups


def the_session(tx: Tx, sid: SessionId, owner: OwnerId, if_version: int | None = None) -> Session:
    session = tx.session(sid)
    if session is None or session.owner != owner or session.deleted_at is not None:
        raise session_not_found(sid)
    if if_version is not None and session.version != if_version:
        raise VersionMismatch(if_version, session.version)
    return session


def the_run(tx: Tx, rid: RunId, owner: OwnerId) -> Run:
    run = tx.run(rid)
    if run is None or run.owner != owner:
        raise run_not_found(rid)
    session = tx.session(run.session_id)
    if session is None or session.deleted_at is not None:
        raise run_not_found(rid)
    return run


def the_message(tx: Tx, mid: MessageId) -> Message:
    message = tx.message(mid)
    if message is None:
        raise message_not_found(mid)
    return message


# ---------------------------------------------------------------------------------------------- writing, one place each


def put_run(tx: Tx, run: Run) -> Run:
    tx.put_run(run)
    tx.add_change("run.changed", run.owner, run.session_id, run.id, status=run.status)
    return run


def put_session(tx: Tx, session: Session) -> Session:
    session = replace(session, version=session.version + 1)
    tx.put_session(session)
    tx.add_change("session.changed", session.owner, session.id)
    return session


def put_approval(tx: Tx, approval: Approval) -> None:
    tx.put_approval(approval)
    tx.add_change(
        "approval.changed",
        approval.owner,
        approval.session_id,
        approval.run_id,
        approval.id,
        approval.decision or "waiting",
    )


def intend(tx: Tx, run: Run, intent: Intent) -> Run:
    """Say how an open run is to end. The first word stands."""
    return run if run.intent is not None else put_run(tx, replace(run, intent=intent))


def stop_hidden(tx: Tx, session: Session) -> tuple[Run, ...]:
    """Request the cancel of every run whose message the shown branch no longer goes through."""
    return tuple(
        intend(tx, run, SUPERSEDED)
        for run in tx.open_runs(session.id)
        if run.in_tree and not tree.on_path(tx, session, run.message_id)
    )


# ---------------------------------------------------------------------------------------------- accepting


def known(tx: Tx, request: Request) -> Accepted | None:
    """The run that this idempotency key already made, if any."""
    if request.key is None:
        return None
    run = tx.run_with_key(request.owner, request.session_id, request.key)
    if run is None:
        return None
    if run.fingerprint != request.fingerprint:
        raise KeyReused(request.key, run.id)
    message = tx.message(run.user_message_id)
    if message is None:
        raise message_not_found(run.user_message_id)
    return Accepted(run, message, fresh=False)


def submit(tx: Tx, request: Request) -> Accepted:
    """A new user message at the head; on a busy session as `on_busy` says."""
    if (before := known(tx, request)) is not None:
        return before
    session = the_session(tx, request.session_id, request.owner)
    _check_files(tx, request.input, request.owner)
    others = tx.open_runs(session.id)
    if not others:
        return _accept(tx, request, session, parent=session.head, rank=_rank(tx))
    active = [run for run in others if run.in_tree]
    if request.on_busy == "reject":
        raise Busy(session.id, (active or others)[0].id)
    if request.on_busy == "queue":
        return _enqueue(tx, request, session, rank=max(_rank(tx), others[-1].rank + 1))
    stop = tuple(intend(tx, run, SUPERSEDED) for run in active)
    return replace(_enqueue(tx, request, session, rank=others[0].rank - 1), stop=stop)


def retry(tx: Tx, request: Request, mid: MessageId, if_version: int | None = None) -> Accepted:
    """Another answer to the same user message, beside the earlier ones."""
    if (before := known(tx, request)) is not None:
        return before
    session = the_session(tx, request.session_id, request.owner, if_version)
    asked = tree.question(tx, session, mid)
    return _accept(tx, request, session, parent=asked.id, rank=_rank(tx), question=asked)


def edit(tx: Tx, request: Request, mid: MessageId, if_version: int | None = None) -> Accepted:
    """The user message said differently, as a sibling of the first."""
    if (before := known(tx, request)) is not None:
        return before
    session = the_session(tx, request.session_id, request.owner, if_version)
    old = tree.node(tx, session, mid)
    if old.role != "user":
        raise NotAllowed("edit", "only what a person wrote can be edited")
    _check_files(tx, request.input, request.owner)
    return _accept(tx, request, session, parent=old.parent_id, rank=_rank(tx))


def continue_run(tx: Tx, request: Request, rid: RunId) -> Accepted:
    """A new run that takes up where `rid` stopped. Its message takes the earlier one's place in the shown branch."""
    if (before := known(tx, request)) is not None:
        return before
    earlier = the_run(tx, rid, request.owner)
    session = the_session(tx, request.session_id, request.owner)
    if others := tx.open_runs(session.id):
        raise Busy(session.id, others[0].id)
    if earlier.is_pending:
        raise NotAllowed("continue", "its output is still being recovered")
    if earlier.status == "complete":
        raise NotAllowed("continue", "the run is complete")
    message = tree.node(tx, session, earlier.message_id)
    asked = tree.question(tx, session, message.id)
    request = replace(request, agent=request.agent or earlier.agent, model=request.model or earlier.model)
    return _accept(tx, request, session, parent=asked.id, rank=_rank(tx), question=asked, continues=earlier.id)


def edit_queued(tx: Tx, rid: RunId, owner: OwnerId, parts: tuple[Part, ...]) -> Accepted:
    run = the_run(tx, rid, owner)
    if run.status != "queued" or run.in_tree:
        raise NotAllowed("edit the queued message", "it is no longer waiting in the queue")
    _check_files(tx, parts, owner)
    message = replace(the_message(tx, run.user_message_id), parts=parts)
    tx.put_message(message)
    tx.add_change("session.changed", owner, run.session_id)
    return Accepted(put_run(tx, run), message)


def _rank(tx: Tx) -> int:
    return int(tx.now * 1_000_000)


def _check_files(tx: Tx, parts: Iterable[Part], owner: OwnerId) -> None:
    for part in parts:
        if isinstance(part, File):
            file = tx.file(part.file_id)
            if file is None or file.owner != owner:
                raise NotFound("file", part.file_id)


def _new_run(request: Request, session: Session, now: float, rank: int, in_tree: bool) -> Run:
    return Run(
        id=request.ids.run,
        owner=session.owner,
        session_id=session.id,
        message_id=request.ids.answer,
        user_message_id=request.ids.question,
        agent=request.agent or session.agent,
        model=request.model or session.model,
        settings=request.settings,
        lifetime=request.lifetime,
        created_at=now,
        rank=rank,
        in_tree=in_tree,
        connection=None if request.attached_by is None else request.attached_by.lease(now),
        key=request.key,
        fingerprint=request.fingerprint,
    )


def _question(request: Request, session: Session, parent: MessageId | None, now: float) -> Message:
    return Message(
        request.ids.question,
        session.owner,
        session.id,
        "user",
        parent,
        now,
        request.ids.run,
        parts=request.input,
        key=request.key,
    )


def _answer(run: Run, now: float, in_tree: bool) -> Message:
    return Message(
        run.message_id,
        run.owner,
        run.session_id,
        "assistant",
        run.user_message_id,
        now,
        run.id,
        "streaming",
        model=run.model,
        in_tree=in_tree,
    )


def _accept(
    tx: Tx,
    request: Request,
    session: Session,
    *,
    parent: MessageId | None,
    rank: int,
    question: Message | None = None,
    continues: RunId | None = None,
) -> Accepted:
    """Rule 3: user message, empty answer, run and head in one transaction. With `question`, that message is answered
    again."""
    run = replace(_new_run(request, session, tx.now, rank, in_tree=True), continues=continues)
    if question is None:
        question = _question(request, session, parent, tx.now)
        tx.put_message(question)
    else:
        run = replace(run, user_message_id=question.id)
    tx.put_message(_answer(run, tx.now, in_tree=True))
    session = put_session(tx, replace(tree.append(session, run.message_id), updated_at=tx.now))
    put_run(tx, run)
    return Accepted(run, question, stop=stop_hidden(tx, session))


def _enqueue(tx: Tx, request: Request, session: Session, *, rank: int) -> Accepted:
    """Outside the tree, until the run is claimed."""
    run = _new_run(request, session, tx.now, rank, in_tree=False)
    question = replace(_question(request, session, None, tx.now), in_tree=False)
    tx.put_message(question)
    tx.put_message(_answer(run, tx.now, in_tree=False))
    put_session(tx, replace(session, updated_at=tx.now))
    put_run(tx, run)
    return Accepted(run, question)


# ---------------------------------------------------------------------------------------------- executing


@dataclass(frozen=True, slots=True)
class Me:
    """Who claims, and for how long: `lease_time` is None where the data directory's lock is the lease."""

    node: NodeId
    lease_time: float | None

    def lease(self, now: float) -> Lease:
        return Lease(self.node, None if self.lease_time is None else now + self.lease_time)

    @property
    def incarnation(self) -> NodeId | None:
        return self.node if self.lease_time is None else None


def claim(tx: Tx, me: Me, limit: int, connected: Collection[RunId] = ()) -> list[Run]:
    """Take up to `limit` queued runs; those that waited outside the tree join it here, at the head of this moment."""
    claimed: list[Run] = []
    for queued in tx.claimable_runs(limit):
        if queued.lifetime == "attached" and not _connected(queued, me, tx.now, connected):
            continue  # its client is gone: recovery ends it
        run = queued if queued.in_tree else _join(tx, queued)
        lease, started_at = me.lease(tx.now), run.started_at or tx.now
        run = replace(step(run, "claim"), epoch=run.epoch + 1, lease=lease, started_at=started_at)
        claimed.append(put_run(tx, run))
    return claimed


def _connected(run: Run, me: Me, now: float, connected: Collection[RunId]) -> bool:
    if not is_live(run.connection, me.incarnation, now):
        return False
    return run.connection is None or run.connection.holder != me.node or run.id in connected


def _join(tx: Tx, run: Run) -> Run:
    session = tx.session(run.session_id)
    assert session is not None  # runs go with their session
    tx.put_message(replace(the_message(tx, run.user_message_id), parent_id=session.head, in_tree=True))
    tx.put_message(replace(the_message(tx, run.message_id), in_tree=True))
    put_session(tx, tree.append(session, run.message_id))
    return replace(run, in_tree=True)


def unclaim(tx: Tx, runs: Iterable[Run]) -> None:
    """Claimed by a node that is stopping: back into the queue, as if nothing had been."""
    for claimed in runs:
        run = tx.run(claimed.id)
        if run is not None and run.status == "running" and run.epoch == claimed.epoch:
            put_run(tx, replace(step(run, "requeue"), lease=None))


def renew(tx: Tx, me: Me, rids: Collection[RunId], connections: Collection[RunId]) -> tuple[float, list[Run]]:
    """Prolong the leases that are still ours, and say how those runs now stand, by which clock; who is missing is
    lost."""
    held: list[Run] = []
    for rid in {*rids, *connections}:
        run = tx.run(rid)
        if run is None or not run.is_open:
            continue
        renewed = run
        if rid in rids and run.lease is not None and run.lease.holder == me.node:
            renewed = replace(renewed, lease=me.lease(tx.now))
            held.append(renewed)
        if rid in connections:
            renewed = replace(renewed, connection=me.lease(tx.now))
        if renewed != run:
            tx.put_run(renewed)  # a heartbeat is no change that anybody wants to hear of
    return tx.now, held


def ask(tx: Tx, rid: RunId, epoch: int, asked: ApprovalRequested) -> bool:
    """Put the question where it can be answered, before anybody is shown it. False: the run was asked to end meanwhile,
    or is no longer ours."""
    run = tx.run(rid)
    if run is None or run.epoch != epoch or run.intent is not None or run.status != "running":
        return False
    question = (asked.call_id, asked.name, asked.args, asked.reason)
    put_approval(tx, Approval(asked.approval_id, run.owner, run.id, run.session_id, *question, tx.now))
    return True


def park(tx: Tx, rid: RunId, epoch: int, aid: ApprovalId, *, keep_lease: bool) -> Run | None:
    """The run waits for a person; if the answer was quicker, it goes on. None: it was asked to end meanwhile, or is no
    longer ours."""
    run, approval = tx.run(rid), tx.approval(aid)
    if run is None or approval is None:
        return None
    if run.epoch != epoch or run.intent is not None or run.status != "running":
        return None
    if approval.decision is None:
        return put_run(tx, replace(step(run, "park"), lease=run.lease if keep_lease else None))
    return run if keep_lease else put_run(tx, replace(step(run, "requeue"), lease=None))


def decide(tx: Tx, rid: RunId, aid: ApprovalId, owner: OwnerId, decision: Decision) -> Run:
    """The first answer counts. A parked run goes back to the queue; one that kept its task goes on."""
    run = the_run(tx, rid, owner)
    approval = tx.approval(aid)
    if approval is None or approval.run_id != rid:
        raise NotFound("approval", aid)
    if approval.decision is not None:
        raise AlreadyDecided(aid, approval.decision)
    put_approval(tx, replace(approval, decision=decision, decided_at=tx.now))
    if run.status != "waiting":
        return run
    return put_run(tx, step(run, "decide" if run.lease is None else "answer"))


def touch(tx: Tx, sid: SessionId) -> None:
    """P6: a finished tool is activity. One row, and no version: nothing that anybody edits has changed."""
    session = tx.session(sid)
    if session is not None and session.deleted_at is None:
        tx.put_session(replace(session, updated_at=tx.now))
        tx.add_change("session.changed", session.owner, sid)


def request_cancel(tx: Tx, rid: RunId, owner: OwnerId, reason: str) -> Run:
    run = the_run(tx, rid, owner)
    return intend(tx, run, Intent("cancelled", reason=reason)) if run.is_open else run


def give_up(tx: Tx, me: Me, rid: RunId, epoch: int, intent: Intent | None) -> None:
    """Let go of a run without ending it: recovery seals it, as `intent` says where there is one."""
    run = tx.run(rid)
    if run is None or not run.is_open or run.epoch != epoch or run.lease is None or run.lease.holder != me.node:
        return
    put_run(tx, replace(run, lease=None, intent=run.intent or intent))


# ---------------------------------------------------------------------------------------------- ending


def take_over(tx: Tx, me: Me, seen: Iterable[Run], can_continue: Callable[[Run], bool], policy: Policy) -> list[Run]:
    """Put back what goes on by itself; of the rest raise the epoch and hold the lease while it is being ended. Only
    what still has the lease it was seen with, which the caller found dead. Returns the ones that are ours to end."""
    ours: list[Run] = []
    for before in seen:
        run = tx.run(before.id)
        if run is None or run.epoch != before.epoch or run.lease != before.lease:
            continue
        run = replace(run, lease=dead(run.lease), intent=run.intent or before.intent)
        fate = verdict(run, incarnation=me.incarnation, now=tx.now, can_continue=can_continue(run), policy=policy)
        if fate == "continue":
            put_run(tx, replace(step(run, "requeue"), lease=None, resumes=run.resumes + 1))
        elif fate == "end":
            run = replace(run, epoch=run.epoch + 1, lease=me.lease(tx.now))
            tx.put_run(run)
            ours.append(run)
    return ours


def mark_pending(tx: Tx, runs: Iterable[Run]) -> None:
    """J1: the journal cannot be fenced now. Show the run as interrupted and free the session; the rest comes later."""
    for held in runs:
        run = tx.run(held.id)
        if run is None or run.epoch != held.epoch or not run.is_open:
            continue
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


def end_look(tx: Tx, rid: RunId, epoch: int, recovery: Recovery) -> None:
    """The look found nothing final, or the time is over. The run ends as it is shown, or stays pending."""
    run = tx.run(rid)
    if run is None or run.epoch != epoch or not run.is_pending:
        return
    run = replace(run, lease=None, recovery=recovery)
    if recovery.state == "pending":
        tx.put_run(run)
        return
    put_run(tx, run)
    message = tx.message(run.message_id)
    if message is not None:
        tx.put_message(replace(message, recovery=recovery.state))
    tx.add_change("session.changed", run.owner, run.session_id)


def look_again(tx: Tx, rid: RunId, owner: OwnerId) -> Run:
    """J6: an explicit `recover` begins a recovery anew that was given up."""
    run = the_run(tx, rid, owner)
    if run.recovery is None or run.last_seq:
        raise NotAllowed("recover", "its journal was read to the end, so there is nothing left to recover")
    return put_run(tx, replace(run, recovery=Recovery("pending", tx.now)))


def seed(tx: Tx, run: Run) -> MessageSeeded | None:
    """The first event of a continuing run: what the run before it left behind. Whoever seals one whose journal is still
    empty writes this before the terminal event: its message has taken the earlier one's place."""
    if run.continues is None:
        return None
    earlier = tx.run(run.continues)
    message = None if earlier is None else tx.message(earlier.message_id)
    return MessageSeeded(run.continues, () if message is None else message.parts)


def settle(tx: Tx, rid: RunId, transcript: Transcript, recovery: Recovery | None = None) -> Run | None:
    """Fold's result into the message, and the run ended, once. Whatever ended it, this is the only way; a second call
    finds it done. If the message is gone (clear, delete) only the run ends, and its journal goes too."""
    run = tx.run(rid)
    if run is None or not (run.is_open or run.is_pending):
        return run
    assert transcript.status != "streaming"
    run = replace(
        step(run, ENDING_VERB[transcript.status]),
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
    if session is None or session.deleted_at is not None or message is None:
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
