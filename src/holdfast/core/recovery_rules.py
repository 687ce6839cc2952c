"""Decides what to do with an orphaned run (`decide_orphan`): leave it, continue it automatically, or end it; and when a
pending recovery is tried again or given up (`should_retry`, `after_read`). Pure: `engine.recovery` reads the rows and
carries the decision out; it fences the journal first, and if that fails the journal cannot be read now. A run whose
journal is sealed is ended in any case (`engine.transactions.takeover`). The number of attempts and the age at which one
is given up are in `RecoveryPolicy`.

A tool call without a result is marked by `core.transcript`, and `agents.chat.tool_runner` asks before it runs again."""

from dataclasses import dataclass, replace
from typing import Literal

from holdfast.core.events import RunEnded
from holdfast.core.ids import NodeId
from holdfast.core.lease import is_live
from holdfast.core.run import Recovery, Run


@dataclass(frozen=True, slots=True)
class RecoveryPolicy:
    max_attempts: int = 3  # How often a journal that is readable but has no output is read before giving up
    give_up_after: float = 24 * 3600.0  # Age in seconds at which a pending recovery is given up
    auto_continue: bool = False  # Requeue orphaned detached runs whose agent can resume
    max_resumes: int = 2  # How often automatic continue requeues one run


@dataclass(frozen=True, slots=True)
class AgentAbilities:
    """What a run's agent can do (`ports.agent.Agent`); one that no longer exists can do nothing."""

    park: bool = False
    resume: bool = False
    steer: bool = False


OrphanDecision = Literal[
    "leave",  # it is executed, waits for a person, is queued and will be claimed, or waits for the run it is added to
    "continue",  # requeue the same run
    "end",  # fence, seal, settle
]


def decide_orphan(
    run: Run,
    *,
    incarnation: NodeId | None,
    now: float,
    agent: AgentAbilities,
    policy: RecoveryPolicy,
    holder_gone: bool = False,
) -> OrphanDecision:
    """`holder_gone`: the caller knows that the holder of the lease is gone, even if the lease has not expired."""
    if not run.is_open or run.is_taken or (not holder_gone and is_live(run.lease, incarnation, now)):
        return "leave"
    if run.intent is not None and not run.intent.is_outage:
        return "end"
    client_gone = run.lifetime == "attached" and not is_live(run.connection, incarnation, now)
    if run.status == "queued":
        return "end" if client_gone else "leave"
    if run.status == "waiting":
        # With a lease, or an intent, it waited inside a process, which is gone or gave it up.
        parked = run.lease is None and run.intent is None
        return "leave" if parked and agent.park and not client_gone else "end"
    if policy.auto_continue and agent.resume and run.lifetime == "detached" and run.resumes < policy.max_resumes:
        return "continue"
    return "end"


def resumes_after(run: Run, now: float, policy: RecoveryPolicy, *, readable: bool) -> int:
    """The run's `resumes` after automatic continue has requeued it. While its journal is not `readable` it only waits,
    which uses up nothing, but not for longer than `give_up_after`."""
    waits = not readable and now - (run.started_at or run.created_at) < policy.give_up_after
    return run.resumes if waits else run.resumes + 1


def terminal_event(run: Run) -> RunEnded:
    """The terminal event of a run that did not seal itself: as requested, otherwise interrupted."""
    if run.intent is None:
        return RunEnded("interrupted", reason="process-gone")
    return RunEnded(run.intent.status, reason=run.intent.reason, error=run.intent.error)


JournalReading = Literal["unavailable", "empty", "output"]
"""The result of reading a pending run's journal: it cannot be read, it is sealed without output, or with output."""


def should_retry(recovery: Recovery, now: float, policy: RecoveryPolicy) -> bool:
    """Whether a pending recovery is still tried in the background, or only when a person asks for it."""
    return recovery.state == "pending" and now - recovery.since < policy.give_up_after


def after_read(recovery: Recovery, reading: JournalReading, now: float, policy: RecoveryPolicy) -> Recovery:
    """The recovery's state after an attempt to read the journal. A journal that cannot be read uses up no attempt, but
    it is not waited for longer than `give_up_after`."""
    if reading == "output":
        return Recovery("recovered")
    if reading == "empty":
        recovery = replace(recovery, attempts=recovery.attempts + 1)
    spent = recovery.attempts >= policy.max_attempts or now - recovery.since >= policy.give_up_after
    return Recovery("none") if spent else recovery
