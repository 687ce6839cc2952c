"""Approvals and tool grants, as a store transaction reads and writes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.core.events import Decision
from holdfast.core.ids import ApprovalId, OwnerId, RunId, SessionId
from holdfast.core.parts import Json


@dataclass(frozen=True, slots=True)
class Approval:
    """A question to a person. The row is the truth of the decision; the journal repeats it."""

    id: ApprovalId
    owner: OwnerId
    run_id: RunId
    session_id: SessionId
    call_id: str
    name: str
    args: Json
    reason: str
    created_at: float
    decision: Decision | None = None
    decided_at: float | None = None
    note: str | None = None  # Why it was decided, if no person decided it


@dataclass(frozen=True, slots=True)
class ToolGrant:
    """A person's permission for a tool in one session, or in all (None), within `scope` unless that is empty."""

    owner: OwnerId
    session_id: SessionId | None
    tool: str
    scope: str
    created_at: float


class ApprovalRows(Protocol):
    def approval(self, aid: ApprovalId) -> Approval | None: ...
    def put_approval(self, approval: Approval) -> None:
        """Insert or replace an approval."""

    def open_approvals(self, rid: RunId) -> Sequence[Approval]:
        """List the undecided approvals of a run, oldest first."""

    def undecided_approvals(self, created_before: float, limit: int) -> Sequence[Approval]:
        """List undecided approvals of all runs, oldest first."""

    def grants(self, owner: OwnerId, sid: SessionId | None) -> Sequence[ToolGrant]:
        """List the grants that apply in a session, its own and those for all (`sid` None: only those), oldest first."""

    def put_grant(self, grant: ToolGrant) -> None:
        """Insert a grant; an existing one of the same owner, session, tool and scope remains as it is."""

    def drop_grant(self, owner: OwnerId, sid: SessionId | None, tool: str, scope: str) -> None: ...
