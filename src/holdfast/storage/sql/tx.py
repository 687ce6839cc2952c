"""The store transaction in SQL, for SQLite and PostgreSQL alike."""

from holdfast.storage.sql.approvals import SqlApprovalRows
from holdfast.storage.sql.changes import SqlChangeRows
from holdfast.storage.sql.files import SqlFileRows
from holdfast.storage.sql.memory import SqlMemoryRows
from holdfast.storage.sql.runs import SqlRunRows
from holdfast.storage.sql.search import SqlSearchRows


class SqlTx(SqlSearchRows, SqlRunRows, SqlApprovalRows, SqlMemoryRows, SqlFileRows, SqlChangeRows):
    """The rows of every subject, over one dialect."""

    @property
    def now(self) -> float:
        return self._db.now
