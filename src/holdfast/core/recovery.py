"""What is to become of a run that nobody executes. Pure: the caller reads the store, this decides, the caller does."""

from typing import Literal

from holdfast.core.events import RunEnded
from holdfast.core.ids import NodeId
from holdfast.core.run import Intent, Recovery, Run, is_live
from holdfast.core.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class Policy:
    max_attempts: int = 3
    """J5: how often a readable journal without output is looked at again."""
    give_up_after: float = 24 * 3600.0
    """J6: age at which a pending recovery is given up without another look."""
    auto_continue: bool = False
    max_resumes: int = 2


Verdict = Literal[
    "leave",  # somebody executes it, or it waits for a person, or it is queued and will be claimed
    "continue",  # put it back into the queue, the same run goes on
    "end",  # fence, seal, settle
]


def verdict(
    run: Run,
    *,
    incarnation: NodeId | None,
    now: float,
    can_continue: bool,
    policy: Policy,
    gone: bool = False,
    intent: Intent | None = None,
) -> Verdict:
    """On an open run. `can_continue`: its agent can take up a journal that another process began. `gone`: whoever holds
    its lease is known to be gone, whatever the lease says. `intent`: how it is to end, if it does not say so itself."""
    if not run.is_open or (not gone and is_live(run.lease, incarnation, now)):
        return "leave"
    if run.intent is not None or intent is not None:
        return "end"
    client_gone = run.lifetime == "attached" and not is_live(run.connection, incarnation, now)
    if run.status == "queued":
        return "end" if client_gone else "leave"
    if run.status == "waiting":
        parked = run.lease is None  # otherwise it kept its task, which is gone with its process
        return "leave" if parked and can_continue and not client_gone else "end"
    if policy.auto_continue and can_continue and run.lifetime == "detached" and run.resumes < policy.max_resumes:
        return "continue"
    return "end"


def ending(run: Run) -> RunEnded:
    """How a run is sealed that did not seal itself: as somebody asked for, else as interrupted."""
    if run.intent is None:
        return RunEnded("interrupted", reason="process-gone")
    return RunEnded(run.intent.status, reason=run.intent.reason, error=run.intent.error)


Look = Literal["unavailable", "empty", "output"]
"""What a look at the journal of a pending run found: still arriving; sealed without output; sealed with output."""


def due(recovery: Recovery, now: float, policy: Policy) -> bool:
    """Whether the journal may still be looked at without being told to."""
    return recovery.state == "pending" and now - recovery.since < policy.give_up_after


def after_look(recovery: Recovery, look: Look, now: float, policy: Policy) -> Recovery:
    """J2, J4, J5 as one function. An arriving journal uses up nothing but time."""
    if look == "output":
        return Recovery("recovered")
    if look == "empty":
        recovery = replace(recovery, attempts=recovery.attempts + 1)
    spent = recovery.attempts >= policy.max_attempts or now - recovery.since >= policy.give_up_after
    return Recovery("none") if spent else recovery
