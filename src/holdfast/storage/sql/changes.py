"""SQL for the change feed."""

from collections.abc import Sequence
from itertools import starmap

from holdfast.core.ids import ApprovalId, OwnerId, RunId, SessionId
from holdfast.ports.store import Change, ChangeKind
from holdfast.storage.sql import row_codec as rows
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
        sql = f"INSERT INTO changes ({rows.CHANGES.columns}) VALUES ({self._db.next_number}, ?, ?, ?, ?, ?, ?)"
        self._execute(sql, *self._db.number_parameters(), kind, owner, session_id, run_id, approval_id, status)

    def changes(self, after: int, limit: int) -> Sequence[Change]:
        sql = f"{rows.CHANGES.select} WHERE n > ? AND {self._db.number_is_visible} ORDER BY n LIMIT ?"
        return list(starmap(Change, self._all(sql, after, limit)))

    def change_bounds(self) -> tuple[int, int]:
        return self._db.change_bounds()

    def changes_held_back(self) -> bool:
        return self._db.changes_held_back()

    def trim_changes(self, keep: int) -> None:
        self._db.trim_changes(keep)
