"""SQL for sessions, messages and compactions."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from holdfast.core.ids import MessageId, OwnerId, SessionId
from holdfast.core.parts import FilePart, plain_text
from holdfast.core.session import COMPARE, Compaction, Message, Session
from holdfast.ports.store import PathEntry, SessionQuery
from holdfast.storage.sql.runs import OPEN
from holdfast.storage.sql.statements import NEWEST, Statements
from holdfast.storage.sql.tables import COMPACTIONS, MESSAGES, SESSIONS
from holdfast.storage.sql.usage import keep_usage

_TITLE: Final = SESSIONS.names.index("title")
_TAGS: Final = SESSIONS.names.index("tags")
_PARTS: Final = MESSAGES.names.index("parts")
_OF_SESSION: Final = (
    "messages",
    "runs",
    "approvals",
    "compactions",
    "docs",
    "grants",
    "dirty_turns",
    "ledgers",
    "cancelled_keys",
    "shares",
    "pushes",
    "drafts",
)

COMPARISONS: Final = f'%"source":"{COMPARE}"%'  # Portable, and rare enough to need no index
_QUEUED_OUTSIDE_TREE: Final = f"FROM runs WHERE session_id = ? AND {OPEN} AND status = 'queued' AND NOT in_tree"
_PATH: Final = """
    WITH RECURSIVE path (id, parent_id, above) AS (
        SELECT id, parent_id, 0 FROM messages WHERE id = ? AND in_tree = ?
        UNION ALL SELECT parent.id, parent.parent_id, above + 1
        FROM messages AS parent JOIN path ON parent.id = path.parent_id
    ) SELECT id, role, run_id FROM path JOIN messages USING (id) ORDER BY above DESC
"""
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
        if not query.archived_projects:
            hidden = "SELECT 1 FROM projects WHERE owner = sessions.owner AND name = sessions.project AND archived = ?"
            where, values = f"{where} AND (project IS NULL OR NOT EXISTS ({hidden}))", [*values, True]
        if query.comparisons is not None:
            where = f"{where} AND settings {'LIKE' if query.comparisons else 'NOT LIKE'} ?"
            values = [*values, COMPARISONS]
        rest = f"WHERE {where} AND (updated_at, id) < (?, ?) ORDER BY updated_at DESC, id DESC LIMIT ?"
        return self._select(SESSIONS, rest, *values, *(query.before or NEWEST), query.limit)

    def session_ids(self, owner: OwnerId) -> Sequence[SessionId]:
        where = "owner = ? AND archived = ? AND deleted_at IS NULL"
        sql = f"SELECT id FROM sessions WHERE {where} ORDER BY updated_at DESC, id DESC"
        return [sid for archived in (False, True) for (sid,) in self._db.fetchall(sql, owner, archived)]

    def deleted_sessions(self, limit: int) -> Sequence[SessionId]:
        sql = "SELECT id FROM sessions WHERE deleted_at IS NOT NULL ORDER BY deleted_at, id LIMIT ?"
        return [sid for (sid,) in self._db.fetchall(sql, limit)]

    def drop_session(self, sid: SessionId) -> None:
        self._db.enter_session(sid)
        keep_usage(self._db, "session_id = ?", sid)
        for table in _OF_SESSION:
            self._db.execute(f"DELETE FROM {table} WHERE session_id = ?", sid)
        self._db.execute("DELETE FROM sessions WHERE id = ?", sid)
        self._forget_rows()

    # ---- messages ----

    def message(self, mid: MessageId) -> Message | None:
        return self._find(MESSAGES, mid)

    def known_messages(self, sid: SessionId, mids: Collection[MessageId]) -> Collection[MessageId]:
        """The session is compared here, because a planner could choose its index, and read all its messages."""
        sql = f"SELECT id, session_id FROM messages WHERE id {self._db.in_list}"
        return {mid for mid, found in self._db.fetchall(sql, self._db.list_parameter(mids)) if found == sid}

    def message_within(self, mid: MessageId, max_bytes: int) -> Message | None:
        parts = f"CASE WHEN {self._db.parts_bytes} <= ? THEN parts ELSE '[]' END"
        columns = ", ".join(parts if name == "parts" else name for name in MESSAGES.names)
        found = self._db.fetchall(f"SELECT {columns} FROM messages WHERE id = ?", max_bytes, mid)
        return MESSAGES.decode(found[0]) if found else None

    def path(self, mid: MessageId) -> Sequence[PathEntry]:
        return [PathEntry(*row) for row in self._db.fetchall(_PATH, mid, True)]

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
