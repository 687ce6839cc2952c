"""The change feed, as a store transaction reads and writes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from holdfast.core.ids import ApprovalId, OwnerId, RunId, SessionId

ChangeKind = Literal["session.changed", "session.deleted", "run.changed", "approval.changed"]


@dataclass(frozen=True, slots=True)
class Change:
    """A row of the change feed. The store assigns `n`."""

    n: int
    kind: ChangeKind
    owner: OwnerId
    session_id: SessionId
    run_id: RunId | None = None
    approval_id: ApprovalId | None = None
    status: str | None = None


class ChangeRows(Protocol):
    def add_change(
        self,
        kind: ChangeKind,
        owner: OwnerId,
        session_id: SessionId,
        run_id: RunId | None = None,
        approval_id: ApprovalId | None = None,
        status: str | None = None,
    ) -> None:
        """Add a change in the transaction that makes it. Its number is hidden while a smaller one can still commit."""

    def changes(self, after: int, limit: int) -> Sequence[Change]:
        """List visible changes after a cursor, by n."""

    def change_bounds(self) -> tuple[int, int]:
        """(the smallest cursor from which no change is missing, the largest visible n)."""

    def changes_held_back(self) -> bool:
        """Whether there are committed changes that are not visible yet and will be in a moment, without a wake-up."""

    def trim_changes(self, keep: int) -> None:
        """Erase all but the newest `keep` changes."""
