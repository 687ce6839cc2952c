"""SQL for share links."""

from collections.abc import Collection, Sequence

from holdfast.core.ids import OwnerId, SessionId, ShareId
from holdfast.core.shares import Share
from holdfast.storage.sql.statements import NEWEST, Statements
from holdfast.storage.sql.tables import SHARES


class SqlShareRows(Statements):
    def share(self, share_id: ShareId) -> Share | None:
        return self._select_one(SHARES, "WHERE id = ?", share_id)

    def share_with_token(self, token_digest: str) -> Share | None:
        return self._select_one(SHARES, "WHERE token_digest = ?", token_digest)

    def shares(self, owner: OwnerId, limit: int, before: tuple[float, ShareId] | None = None) -> Sequence[Share]:
        rest = "WHERE owner = ? AND (created_at, id) < (?, ?) ORDER BY created_at DESC, id DESC LIMIT ?"
        return self._select(SHARES, rest, owner, *(before or NEWEST), limit)

    def shared_bytes(self, owner: OwnerId) -> tuple[int, int]:
        total = self._db.whole("coalesce(sum(size), 0)")
        ((count, size),) = self._db.fetchall(f"SELECT count(*), {total} FROM shares WHERE owner = ?", owner)
        return count, size

    def expired_shares(self, by: float, limit: int) -> Sequence[ShareId]:
        sql = "SELECT id FROM shares WHERE expires_at <= ? ORDER BY expires_at, id LIMIT ?"
        return [share_id for (share_id,) in self._db.fetchall(sql, by, limit)]

    def add_share(self, share: Share) -> None:
        self._db.enter_session(share.session_id)
        self._db.execute(f"INSERT INTO shares ({SHARES.columns}) VALUES ({SHARES.placeholders})", *SHARES.encode(share))

    def touch_share(self, share_id: ShareId, at: float) -> None:
        self._db.execute("UPDATE shares SET last_opened_at = ? WHERE id = ?", at, share_id)

    def drop_shares(self, share_ids: Collection[ShareId]) -> None:
        self._db.execute(f"DELETE FROM shares WHERE id {self._db.in_list}", self._db.list_parameter(share_ids))

    def drop_session_shares(self, sid: SessionId) -> None:
        self._db.enter_session(sid)
        self._db.execute("DELETE FROM shares WHERE session_id = ?", sid)
