"""SQL for sessions, messages, compactions and search."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from itertools import starmap
from typing import Final

from holdfast.core.ids import MessageId, OwnerId, SessionId
from holdfast.core.parts import FilePart, plain_text
from holdfast.core.session import Compaction, Message, Session
from holdfast.ports.store import SearchHit, SessionQuery
from holdfast.storage.sql import row_codec as rows
from holdfast.storage.sql.dialect import TextQuery
from holdfast.storage.sql.runs import OPEN
from holdfast.storage.sql.statements import NEWEST, Statements

_SELECT: Final = rows.SESSIONS.select
_TITLE: Final = rows.SESSIONS.names.index("title")
_PARTS: Final = rows.MESSAGES.names.index("parts")
_OF_SESSION: Final = ("messages", "runs", "approvals", "compactions", "docs", "grants", "dirty_turns", "ledgers")

_QUEUED_OUTSIDE_TREE: Final = f"FROM runs WHERE session_id = ? AND {OPEN} AND status = 'queued' AND NOT in_tree"
_DROPPED: Final = f"""IN (
    SELECT id FROM messages WHERE session_id = ?
    EXCEPT SELECT message_id {_QUEUED_OUTSIDE_TREE} EXCEPT SELECT user_message_id {_QUEUED_OUTSIDE_TREE}
)"""


class SqlSessionRows(Statements):
    def session(self, sid: SessionId) -> Session | None:
        row = self._db.find(rows.SESSIONS, sid)
        return None if row is None else rows.to_session(row)

    def put_session(self, session: Session) -> None:
        self._db.enter_session(session.id)
        old = self._db.save(rows.SESSIONS, rows.from_session(session))
        if old is None or old[_TITLE] != session.title:
            self._db.index_text(session.owner, session.id, None, session.title)

    def sessions(self, query: SessionQuery) -> Sequence[Session]:
        where, values = "owner = ? AND archived = ? AND deleted_at IS NULL", [query.owner, query.archived]
        if query.project is not None:
            where, values = f"{where} AND project = ?", [*values, query.project]
        found = self._all(
            f"{_SELECT} WHERE {where} AND (updated_at, id) < (?, ?) ORDER BY updated_at DESC, id DESC LIMIT ?",
            *values,
            *(query.before or NEWEST),
            query.limit,
        )
        return [rows.to_session(row) for row in found]

    def deleted_sessions(self, limit: int) -> Sequence[SessionId]:
        sql = "SELECT id FROM sessions WHERE deleted_at IS NOT NULL ORDER BY deleted_at, id LIMIT ?"
        return [sid for (sid,) in self._all(sql, limit)]

    def drop_session(self, sid: SessionId) -> None:
        self._db.enter_session(sid)
        for table in _OF_SESSION:
            self._execute(f"DELETE FROM {table} WHERE session_id = ?", sid)
        self._execute("DELETE FROM sessions WHERE id = ?", sid)
        self._db.forget_rows()

    # ---- messages ----

    def message(self, mid: MessageId) -> Message | None:
        row = self._db.find(rows.MESSAGES, mid)
        return None if row is None else rows.to_message(row)

    def put_message(self, message: Message) -> None:
        self._db.enter_session(message.session_id)
        file_ids = {part.file_id for part in message.parts if isinstance(part, FilePart)}
        old = self._db.save_message(rows.from_message(message), file_ids)
        shown = message.in_tree and message.status != "streaming"
        text = plain_text(message.parts) if shown else ""
        was_empty = old is not None and old[_PARTS] == "[]"
        self._db.index_text(message.owner, message.session_id, message.id, text, is_new=was_empty)

    def children(self, sid: SessionId, parent: MessageId | None) -> Sequence[MessageId]:
        where = "session_id = ? AND in_tree = ? AND parent_id"
        if parent is None:
            found = self._all(f"SELECT id FROM messages WHERE {where} IS NULL ORDER BY created_at, id", sid, True)
        else:
            found = self._all(f"SELECT id FROM messages WHERE {where} = ? ORDER BY created_at, id", sid, True, parent)
        return [mid for (mid,) in found]

    def drop_messages(self, sid: SessionId) -> None:
        self._db.enter_session(sid)
        self._execute(f"DELETE FROM docs WHERE session_id = ? AND message_id {_DROPPED}", sid, sid, sid, sid)
        self._execute(f"DELETE FROM messages WHERE id {_DROPPED}", sid, sid, sid)
        self._execute("DELETE FROM compactions WHERE session_id = ?", sid)
        self._db.forget_rows()

    def compactions(self, sid: SessionId) -> Mapping[MessageId, Compaction]:
        found = self._all(f"{rows.COMPACTIONS.select} WHERE session_id = ?", sid)
        return {each.message_id: each for each in starmap(Compaction, found)}

    def put_compaction(self, compaction: Compaction) -> None:
        self._db.enter_session(compaction.session_id)
        self._execute(rows.COMPACTIONS.upsert, *astuple(compaction))

    # ---- search ----

    def search(self, owner: OwnerId, text: str, limit: int, before: int | None) -> Sequence[SearchHit]:
        """The first page decides for all pages whether the last word is a prefix, or they would not fit together."""
        queries = self._db.parse_query(text)
        if queries is None or limit <= 0:
            return []
        whole, prefix = queries
        first = self._hits(owner, whole, limit, None)
        if len(first) < limit and prefix != whole:
            return self._hits(owner, prefix, limit, before)
        return first if before is None else self._hits(owner, whole, limit, before)

    def _hits(self, owner: OwnerId, query: TextQuery, limit: int, before: int | None) -> list[SearchHit]:
        """The newest match of each session. A session that an earlier page showed is left out."""
        seen: set[SessionId] = set()
        found: list[SearchHit] = []
        for match in self._db.matches(owner, query, limit, before):
            if match.session_id in seen:
                continue
            seen.add(match.session_id)
            session = self.session(match.session_id)
            if session is None or session.deleted_at is not None:
                continue
            if before is not None and self._db.has_match_since(session.id, query, before):
                continue
            found.append(SearchHit(session, match.message_id, match.excerpt(), match.n))
            if len(found) == limit:
                break
        return found
