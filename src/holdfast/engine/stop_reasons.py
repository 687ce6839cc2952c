"""Why an execution stops before its agent is done (cancel, limit, shutdown, lost lease, storage), and how each is
sealed. Failures of the model are `models.upstream_errors`, of the agent `ports.agent.AgentError`; `engine.executor`
turns those into endings."""

from dataclasses import dataclass
from typing import Literal

from holdfast.core.errors import StorageError
from holdfast.core.events import Failure, RunEnded
from holdfast.core.run import OUTAGE, Intent


@dataclass(frozen=True, slots=True)
class StopReason:
    """`ending` is how the run is sealed; without one the run is abandoned, and recovery ends it as `intent` says."""

    kind: Literal["end", "park", "hand over", "lost", "broken"]
    ending: RunEnded | None = None
    intent: Intent | None = None


def cancelled(reason: str | None) -> StopReason:
    return StopReason("end", RunEnded("cancelled", reason=reason))


def over_limit(message: str) -> StopReason:
    return StopReason("end", RunEnded("failed", reason="limit", error=Failure("limit", message)))


def storage_broken(error: StorageError) -> StopReason:
    return StopReason("broken", intent=storage_failed(error))


def storage_failed(error: StorageError) -> Intent:
    return Intent("failed", OUTAGE, Failure(error.code, f"The output could not be stored: {error}"))


SHUTDOWN = StopReason("end", RunEnded("interrupted", reason="shutdown"))
PARK = StopReason("park")  # The run waits for a person and its agent can continue later
HAND_OVER = StopReason("hand over")  # This node is stopping, and another can continue the run from its journal
LOST = StopReason("lost")  # The lease is gone or in doubt: another node may be executing the run
