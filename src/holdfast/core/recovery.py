"""Decides what to do with an orphaned run: leave it, continue it automatically, or end it. Pure: `engine.recovery`
reads the rows, asks for the verdict and carries it out; whether a journal can be read yet it finds out by fencing.

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
    """What a run's agent can do (`ports.agent.Agent`); one that no longer exists can do neither."""

    park: bool = False
    resume: bool = False


Verdict = Literal[
    "leave",  # it is executed, waits for a person, or is queued and will be claimed
    "continue",  # requeue the same run
    "end",  # fence, seal, settle
]


def verdict(
    run: Run,
    *,
    incarnation: NodeId | None,
    now: float,
    agent: AgentAbilities,
    policy: RecoveryPolicy,
    gone: bool = False,
) -> Verdict:
    """`gone`: the lease holder is gone, whatever the lease."""
    if not run.is_open or (not gone and is_live(run.lease, incarnation, now)):
        return "leave"
    if run.intent is not None:
        return "end"
    client_gone = run.lifetime == "attached" and not is_live(run.connection, incarnation, now)
    if run.status == "queued":
        return "end" if client_gone else "leave"
    if run.status == "waiting":
        parked = run.lease is None  # otherwise its process kept the task, and is gone
        return "leave" if parked and agent.park and not client_gone else "end"
    if policy.auto_continue and agent.resume and run.lifetime == "detached" and run.resumes < policy.max_resumes:
        return "continue"
    return "end"


def ending(run: Run) -> RunEnded:
    """The terminal event of a run that did not seal itself: as requested, otherwise interrupted."""
    if run.intent is None:
        return RunEnded("interrupted", reason="process-gone")
    return RunEnded(run.intent.status, reason=run.intent.reason, error=run.intent.error)


Look = Literal["unavailable", "empty", "output"]
"""What an attempt to read a pending run's journal found: not readable; sealed without output; sealed with output."""


def due(recovery: Recovery, now: float, policy: RecoveryPolicy) -> bool:
    """Whether the recovery is still tried without being asked for."""
    return recovery.state == "pending" and now - recovery.since < policy.give_up_after


def after_look(recovery: Recovery, look: Look, now: float, policy: RecoveryPolicy) -> Recovery:
    """The recovery's state after an attempt. An unreadable journal uses up time but no attempt."""
    if look == "output":
        return Recovery("recovered")
    if look == "empty":
        recovery = replace(recovery, attempts=recovery.attempts + 1)
    spent = recovery.attempts >= policy.max_attempts or now - recovery.since >= policy.give_up_after
    return Recovery("none") if spent else recovery
