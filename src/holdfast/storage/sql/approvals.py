"""SQL for approvals, tool grants and owners' settings."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.core.ids import ApprovalId, OwnerId, RunId, SessionId
from holdfast.core.parts import Json
from holdfast.ports.store import Approval, ToolGrant
from holdfast.storage.sql import row_codec as rows
from holdfast.storage.sql.statements import Statements

_SELECT: Final = rows.APPROVALS.select


class SqlApprovalRows(Statements):
    def approval(self, aid: ApprovalId) -> Approval | None:
        return self._one_as(rows.to_approval, rows.APPROVALS.select_by_id, aid)

    def put_approval(self, approval: Approval) -> None:
        self._db.enter_session(approval.session_id)
        self._execute(rows.APPROVALS.upsert, *rows.from_approval(approval))

    def open_approvals(self, rid: RunId) -> Sequence[Approval]:
        sql = f"{_SELECT} WHERE run_id = ? AND decision IS NULL ORDER BY created_at, id"
        return self._all_as(rows.to_approval, sql, rid)

    def undecided_approvals(self, created_before: float, limit: int) -> Sequence[Approval]:
        sql = f"{_SELECT} WHERE decision IS NULL AND created_at < ? ORDER BY created_at, id LIMIT ?"
        return self._all_as(rows.to_approval, sql, created_before, limit)

    def grants(self, owner: OwnerId, sid: SessionId | None) -> Sequence[ToolGrant]:
        where = "owner = ? AND session_id IN ('', ?)"
        sql = f"{rows.GRANTS.select} WHERE {where} ORDER BY created_at, tool, scope"
        return self._all_as(rows.to_grant, sql, owner, sid or "")

    def put_grant(self, grant: ToolGrant) -> None:
        values = rows.from_grant(grant)
        self._execute(f"INSERT INTO grants VALUES ({rows.GRANTS.placeholders}) ON CONFLICT DO NOTHING", *values)

    def drop_grant(self, owner: OwnerId, sid: SessionId | None, tool: str, scope: str) -> None:
        where = "owner = ? AND session_id = ? AND tool = ? AND scope = ?"
        self._execute(f"DELETE FROM grants WHERE {where}", owner, sid or "", tool, scope)

    def settings(self, owner: OwnerId) -> Mapping[str, Json]:
        found = self._all("SELECT name, value FROM settings WHERE owner = ? ORDER BY name", owner)
        return {name: json.loads(value) for name, value in found}

    def put_setting(self, owner: OwnerId, name: str, value: Json) -> None:
        if value is None:
            self._execute("DELETE FROM settings WHERE owner = ? AND name = ?", owner, name)
        else:
            self._execute(rows.SETTINGS.upsert, owner, name, json.dumps(value))
