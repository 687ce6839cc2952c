"""SQL for sessions, messages and compactions."""

from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.core.ids import MessageId, SessionId
from holdfast.core.parts import FilePart, plain_text
from holdfast.core.session import COMPARE, Compaction, Message, Session
from holdfast.ports.store import SessionQuery
from holdfast.storage.sql.runs import OPEN
from holdfast.storage.sql.statements import NEWEST, Statements
from holdfast.storage.sql.tables import COMPACTIONS, MESSAGES, SESSIONS

_TITLE: Final = SESSIONS.names.index("title")
_TAGS: Final = SESSIONS.names.index("tags")
_PARTS: Final = MESSAGES.names.index("parts")
_OF_SESSION: Final = ("messages", "runs", "approvals", "compactions", "docs", "grants", "dirty_turns", "ledgers")

_COMPARISONS: Final = f'%"source":"{COMPARE}"%'  # Portable, and rare enough to need no index
_QUEUED_OUTSIDE_TREE: Final = f"FROM runs WHERE session_id = ? AND {OPEN} AND status = 'queued' AND NOT in_tree"
_DROPPED: Final = f"""IN (
    SELECT id FROM messages WHERE session_id = ?
    EXCEPT SELECT message_id {_QUEUED_OUTSIDE_TREE} EXCEPT SELECT user_message_id {_QUEUED_OUTSIDE_TREE}
)"""


class SqlSessionRows(Statements):
    def session(self, sid: SessionId) -> Session | None:
        return self._find(SESSIONS, sid)

    def put_session(self, session: Session) -> None:
        self._db.enter_session(session.id)
        row = SESSIONS.encode(session)
        old = self._remember(SESSIONS, row)
        self._db.save(SESSIONS, row, old)
        if old is None or (old[_TITLE], old[_TAGS]) != (row[_TITLE], row[_TAGS]):
            text = " ".join([session.title, *(f"#{tag}" for tag in session.tags)]).strip()
            self._db.index_text(session.owner, session.id, None, text)

    def sessions(self, query: SessionQuery) -> Sequence[Session]:
        where, values = "owner = ? AND archived = ? AND deleted_at IS NULL", [query.owner, query.archived]
        if query.project is not None:
            where, values = f"{where} AND project = ?", [*values, query.project]
        if query.comparisons is not None:
            where = f"{where} AND settings {'LIKE' if query.comparisons else 'NOT LIKE'} ?"
            values = [*values, _COMPARISONS]
        rest = f"WHERE {where} AND (updated_at, id) < (?, ?) ORDER BY updated_at DESC, id DESC LIMIT ?"
        return self._select(SESSIONS, rest, *values, *(query.before or NEWEST), query.limit)

    def deleted_sessions(self, limit: int) -> Sequence[SessionId]:
        sql = "SELECT id FROM sessions WHERE deleted_at IS NOT NULL ORDER BY deleted_at, id LIMIT ?"
        return [sid for (sid,) in self._db.fetchall(sql, limit)]

    def drop_session(self, sid: SessionId) -> None:
        self._db.enter_session(sid)
        for table in _OF_SESSION:
            self._db.execute(f"DELETE FROM {table} WHERE session_id = ?", sid)
        self._db.execute("DELETE FROM sessions WHERE id = ?", sid)
        self._forget_rows()

    # ---- messages ----

    def message(self, mid: MessageId) -> Message | None:
        return self._find(MESSAGES, mid)

    def add_message(self, message: Message) -> None:
        self._save_message(message, is_new=True)

    def put_message(self, message: Message) -> None:
        self._save_message(message, is_new=False)

    def _save_message(self, message: Message, *, is_new: bool) -> None:
        self._db.enter_session(message.session_id)
        file_ids = {part.file_id for part in message.parts if isinstance(part, FilePart)}
        row = MESSAGES.encode(message)
        old = self._remember(MESSAGES, row)
        was_empty = is_new or (old is not None and old[_PARTS] == "[]")
        self._db.save_message(row, old, file_ids, was_empty=was_empty)
        shown = message.in_tree and message.status != "streaming"
        text = plain_text(message.parts) if shown else ""
        self._db.index_text(message.owner, message.session_id, message.id, text, is_new=was_empty)

    def children(self, sid: SessionId, parent: MessageId | None) -> Sequence[MessageId]:
        is_parent, values = ("IS NULL", []) if parent is None else ("= ?", [parent])
        where = f"session_id = ? AND in_tree = ? AND parent_id {is_parent}"
        found = self._db.fetchall(f"SELECT id FROM messages WHERE {where} ORDER BY created_at, id", sid, True, *values)
        return [mid for (mid,) in found]

    def drop_messages(self, sid: SessionId) -> None:
        self._db.enter_session(sid)
        self._db.execute(f"DELETE FROM docs WHERE session_id = ? AND message_id {_DROPPED}", sid, sid, sid, sid)
        self._db.execute(f"DELETE FROM messages WHERE id {_DROPPED}", sid, sid, sid)
        self._db.execute("DELETE FROM compactions WHERE session_id = ?", sid)
        self._forget_rows()

    def compactions(self, sid: SessionId) -> Mapping[MessageId, Compaction]:
        return {each.message_id: each for each in self._select(COMPACTIONS, "WHERE session_id = ?", sid)}

    def put_compaction(self, compaction: Compaction) -> None:
        self._db.enter_session(compaction.session_id)
        self._db.execute(COMPACTIONS.upsert, *COMPACTIONS.encode(compaction))
