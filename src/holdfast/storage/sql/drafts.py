"""SQL for drafts."""

from holdfast.core.drafts import Draft
from holdfast.core.ids import OwnerId
from holdfast.storage.sql.statements import Statements
from holdfast.storage.sql.tables import DRAFTS


class SqlDraftRows(Statements):
    def draft(self, owner: OwnerId, sid: str) -> Draft | None:
        return self._select_one(DRAFTS, "WHERE owner = ? AND session_id = ?", owner, sid)

    def put_draft(self, draft: Draft) -> None:
        self._db.execute(DRAFTS.upsert, *DRAFTS.encode(draft))
