"""The store transaction in SQL, for SQLite and PostgreSQL alike."""

from holdfast.storage.sql.approvals import SqlApprovalRows
from holdfast.storage.sql.changes import SqlChangeRows
from holdfast.storage.sql.drafts import SqlDraftRows
from holdfast.storage.sql.files import SqlFileRows
from holdfast.storage.sql.memory import SqlMemoryRows
from holdfast.storage.sql.personas import SqlPersonaRows
from holdfast.storage.sql.projects import SqlProjectRows
from holdfast.storage.sql.pushes import SqlPushRows
from holdfast.storage.sql.runs import SqlRunRows
from holdfast.storage.sql.saved_prompts import SqlPromptRows
from holdfast.storage.sql.search import SqlSearchRows
from holdfast.storage.sql.shares import SqlShareRows
from holdfast.storage.sql.usage import SqlUsageRows


class SqlTx(
    SqlSearchRows,
    SqlRunRows,
    SqlUsageRows,
    SqlApprovalRows,
    SqlMemoryRows,
    SqlDraftRows,
    SqlFileRows,
    SqlShareRows,
    SqlPushRows,
    SqlProjectRows,
    SqlPersonaRows,
    SqlPromptRows,
    SqlChangeRows,
):
    """The rows of every subject, over one dialect."""

    @property
    def now(self) -> float:
        return self._db.now
