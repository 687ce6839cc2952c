"""SQL for approvals, tool grants and owners' settings."""

import json
import logging
from collections.abc import Mapping, Sequence

from holdfast.core.ids import ApprovalId, OwnerId, RunId, SessionId
from holdfast.core.parts import Json
from holdfast.ports.store import Approval, ToolGrant
from holdfast.storage.sql import tables
from holdfast.storage.sql.codecs import UNREADABLE, decode
from holdfast.storage.sql.statements import Statements

log = logging.getLogger("holdfast.storage")


class SqlApprovalRows(Statements):
    def approval(self, aid: ApprovalId) -> Approval | None:
        return self._select_one(tables.APPROVALS, "WHERE id = ?", aid)

    def put_approval(self, approval: Approval) -> None:
        self._db.enter_session(approval.session_id)
        self._db.execute(tables.APPROVALS.upsert, *tables.APPROVALS.encode(approval))

    def open_approvals(self, rid: RunId) -> Sequence[Approval]:
        rest = "WHERE run_id = ? AND decision IS NULL ORDER BY created_at, id"
        return self._select(tables.APPROVALS, rest, rid)

    def undecided_approvals(self, created_before: float, limit: int) -> Sequence[Approval]:
        rest = "WHERE decision IS NULL AND created_at < ? ORDER BY created_at, id LIMIT ?"
        return self._select(tables.APPROVALS, rest, created_before, limit)

    def grants(self, owner: OwnerId, sid: SessionId | None) -> Sequence[ToolGrant]:
        rest = "WHERE owner = ? AND session_id IN ('', ?) ORDER BY created_at, tool, scope"
        return self._select(tables.GRANTS, rest, owner, sid or "")

    def put_grant(self, grant: ToolGrant) -> None:
        sql = f"INSERT INTO grants VALUES ({tables.GRANTS.placeholders}) ON CONFLICT DO NOTHING"
        self._db.execute(sql, *tables.GRANTS.encode(grant))

    def drop_grant(self, owner: OwnerId, sid: SessionId | None, tool: str, scope: str) -> None:
        where = "owner = ? AND session_id = ? AND tool = ? AND scope = ?"
        self._db.execute(f"DELETE FROM grants WHERE {where}", owner, sid or "", tool, scope)

    def settings(self, owner: OwnerId) -> Mapping[str, Json]:
        """Without those that are damaged."""
        found = self._db.fetchall("SELECT name, value FROM settings WHERE owner = ? ORDER BY name", owner)
        settings: dict[str, Json] = {}
        for name, value in found:
            try:
                settings[name] = decode(value)
            except UNREADABLE:
                log.warning("the setting %s is damaged and cannot be read", name)
        return settings

    def put_setting(self, owner: OwnerId, name: str, value: Json) -> None:
        if value is None:
            self._db.execute("DELETE FROM settings WHERE owner = ? AND name = ?", owner, name)
        else:
            self._db.execute(tables.SETTINGS.upsert, owner, name, json.dumps(value))
