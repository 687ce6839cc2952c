"""SQL for the change feed."""

from collections.abc import Sequence

from holdfast.ports.store import Change
from holdfast.storage.sql import tables
from holdfast.storage.sql.statements import Statements


class SqlChangeRows(Statements):
    def add_change(self, change: Change) -> None:
        sql = f"INSERT INTO changes ({tables.CHANGES.columns}) VALUES (?, ?, ?, ?, ?, ?, {self._db.next_number})"
        self._db.execute(sql, *tables.CHANGES.encode(change)[:-1], *self._db.number_parameters())

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
