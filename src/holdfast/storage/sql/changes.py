"""SQL for the change feed."""

from collections.abc import Sequence

from holdfast.core.ids import ApprovalId, OwnerId, RunId, SessionId
from holdfast.ports.store import Change, ChangeKind
from holdfast.storage.sql import tables
from holdfast.storage.sql.statements import Statements


class SqlChangeRows(Statements):
    def add_change(
        self,
        kind: ChangeKind,
        owner: OwnerId,
        session_id: SessionId,
        run_id: RunId | None = None,
        approval_id: ApprovalId | None = None,
        status: str | None = None,
    ) -> None:
        sql = f"INSERT INTO changes ({tables.CHANGES.columns}) VALUES ({self._db.next_number}, ?, ?, ?, ?, ?, ?)"
        self._db.execute(sql, *self._db.number_parameters(), kind, owner, session_id, run_id, approval_id, status)

    def changes(self, after: int, limit: int) -> Sequence[Change]:
        rest = f"WHERE n > ? AND {self._db.number_is_visible} ORDER BY n LIMIT ?"
        return self._select(tables.CHANGES, rest, after, limit)

    def change_bounds(self) -> tuple[int, int]:
        ((low, high),) = self._db.fetchall(self._db.change_bounds)
        return low, high

    def changes_held_back(self) -> bool:
        ((held,),) = self._db.fetchall(self._db.changes_held_back)
        return bool(held)

    def trim_changes(self, keep: int) -> None:
        self._db.execute(self._db.trim_changes, keep)
