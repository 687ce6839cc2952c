"""One transaction on `holdfast.db`: thin SQL over plain values. Statements are constants, so SQLite prepares each
once."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from holdfast.core.ids import ApprovalId, FileId, MessageId, OwnerId, RunId, SessionId
from holdfast.core.parts import File, Json, plain_text
from holdfast.core.run import Lease, Run
from holdfast.core.session import Compaction, Message, Session
from holdfast.ports import Approval, Change, ChangeKind, Grant, Hit, SessionQuery, StoredFile
from holdfast.storage import rows
from holdfast.storage.sqlite import search
from holdfast.storage.sqlite.remembering import Remembering
from holdfast.storage.sqlite.statements import Table, encodable

_SESSION: Final = Table("sessions", rows.SESSION)
_MESSAGE: Final = Table("messages", rows.MESSAGE)
_RUN: Final = Table("runs", rows.RUN)
_PUT_APPROVAL: Final = rows.upsert("approvals", rows.APPROVAL)
_PUT_COMPACTION: Final = rows.upsert("compactions", rows.COMPACTION, "session_id, message_id")
_PUT_FILE: Final = rows.upsert("files", rows.FILE)

_SESSIONS: Final = _SESSION.select
_RUNS: Final = _RUN.select
_APPROVALS: Final = f"SELECT {rows.APPROVAL} FROM approvals"
_FILES: Final = f"SELECT {rows.FILE} FROM files"

_TITLE: Final = _SESSION.columns.index("title")
_PARTS: Final = _MESSAGE.columns.index("parts")

_OPEN: Final = "status IN ('queued', 'running', 'waiting')"
"""As the partial indexes say it: SQLite only uses one whose condition it finds in the query."""

_CLAIMABLE: Final = f"""
    {_RUNS} AS mine WHERE status = 'queued' AND intent IS NULL AND NOT EXISTS (
        SELECT 1 FROM runs AS other
        WHERE other.session_id = mine.session_id AND other.{_OPEN} AND other.id <> mine.id AND (
            other.status <> 'queued'
            OR (1 - other.in_tree, other.rank, other.id) < (1 - mine.in_tree, mine.rank, mine.id)
        )
    ) ORDER BY rank, id LIMIT ?
"""

_RENEW: Final = f"""
    UPDATE runs SET
        lease_until = iif(lease_holder = ?1 AND id IN (SELECT value FROM json_each(?3)), ?2, lease_until),
        connection_holder = iif(id IN (SELECT value FROM json_each(?4)), ?1, connection_holder),
        connection_until = iif(id IN (SELECT value FROM json_each(?4)), ?2, connection_until)
    WHERE id IN (SELECT value FROM json_each(?3) UNION SELECT value FROM json_each(?4)) AND {_OPEN}
    RETURNING {rows.RUN}
"""

_FIRST: Final = (float("inf"), "")
"""A cursor before the first row of a list that runs from new to old."""


class SqliteTx(Remembering):
    @property
    def now(self) -> float:
        return self._now

    # ---- sessions ----

    def session(self, sid: SessionId) -> Session | None:
        row = self._find(_SESSION, sid)
        return None if row is None else rows.to_session(row)

    def put_session(self, session: Session) -> None:
        old = self._put(_SESSION, rows.from_session(session))
        if old is None or old[_TITLE] != session.title:
            self._index(session.owner, session.id, None, session.title)

    def sessions(self, query: SessionQuery) -> Sequence[Session]:
        where, values = "owner = ? AND archived = ? AND deleted_at IS NULL", [query.owner, query.archived]
        if query.project is not None:
            where, values = f"{where} AND project = ?", [*values, query.project]
        found = self._all(
            f"{_SESSIONS} WHERE {where} AND (updated_at, id) < (?, ?) ORDER BY updated_at DESC, id DESC LIMIT ?",
            *values,
            *(query.before or _FIRST),
            query.limit,
        )
        return [rows.to_session(row) for row in found]

    def deleted_sessions(self, limit: int) -> Sequence[SessionId]:
        sql = "SELECT id FROM sessions WHERE deleted_at IS NOT NULL ORDER BY deleted_at, id LIMIT ?"
        return [sid for (sid,) in self._all(sql, limit)]

    def drop_session(self, sid: SessionId) -> None:
        for table in ("messages", "runs", "approvals", "compactions", "docs", "grants", "dirty_turns", "ledgers"):
            self._do(f"DELETE FROM {table} WHERE session_id = ?", sid)
        self._do("DELETE FROM sessions WHERE id = ?", sid)
        self._known.clear()

    # ---- messages ----

    def message(self, mid: MessageId) -> Message | None:
        row = self._find(_MESSAGE, mid)
        return None if row is None else rows.to_message(row)

    def put_message(self, message: Message) -> None:
        old = self._put(_MESSAGE, rows.from_message(message))
        shown = message.in_tree and message.status != "streaming"
        text = plain_text(message.parts) if shown else ""
        was_empty = old is not None and old[_PARTS] == "[]"
        self._index(message.owner, message.session_id, message.id, text, known_to_be_new=was_empty)
        if not was_empty:
            self._do("DELETE FROM message_files WHERE message_id = ?", message.id)
        for fid in {part.file_id for part in message.parts if isinstance(part, File)}:
            self._do("INSERT INTO message_files VALUES (?, ?, ?)", fid, message.id, message.owner)

    def children(self, sid: SessionId, parent: MessageId | None) -> Sequence[MessageId]:
        sql = "SELECT id FROM messages WHERE session_id = ? AND in_tree = 1 AND parent_id IS ? ORDER BY created_at, id"
        return [mid for (mid,) in self._all(sql, sid, parent)]

    def drop_messages(self, sid: SessionId) -> None:
        queued = f"FROM runs WHERE session_id = ?1 AND {_OPEN} AND status = 'queued' AND in_tree = 0"
        gone = f"IN (SELECT id FROM messages WHERE session_id = ?1 EXCEPT SELECT message_id {queued} \
            EXCEPT SELECT user_message_id {queued})"
        self._do(f"DELETE FROM docs WHERE session_id = ?1 AND message_id {gone}", sid)
        self._do(f"DELETE FROM messages WHERE id {gone}", sid)
        self._do("DELETE FROM compactions WHERE session_id = ?", sid)
        self._known.clear()

    # ---- runs ----

    def run(self, rid: RunId) -> Run | None:
        row = self._find(_RUN, rid)
        return None if row is None else rows.to_run(row)

    def put_run(self, run: Run) -> None:
        self._put(_RUN, rows.from_run(run))

    def renew(self, lease: Lease, held: Collection[RunId], connections: Collection[RunId]) -> Sequence[Run]:
        self._known.clear()
        return self._runs(_RENEW, lease.holder, lease.until, json.dumps(list(held)), json.dumps(list(connections)))

    def drop_run(self, rid: RunId) -> None:
        self._do("DELETE FROM approvals WHERE run_id = ?", rid)
        self._do("DELETE FROM runs WHERE id = ?", rid)
        self._known.clear()

    def run_with_key(self, owner: OwnerId, sid: SessionId, key: str) -> Run | None:
        row = self._one(f"{_RUNS} WHERE owner = ? AND session_id = ? AND key = ?", owner, sid, key)
        return None if row is None else rows.to_run(row)

    def open_runs(self, sid: SessionId) -> Sequence[Run]:
        return self._runs(f"{_RUNS} WHERE session_id = ? AND {_OPEN} ORDER BY rank, id", sid)

    def all_open_runs(self, limit: int, after: RunId | None = None) -> Sequence[Run]:
        return self._runs(f"{_RUNS} WHERE {_OPEN} AND id > ? ORDER BY id LIMIT ?", after or "", limit)

    def pending_runs(self, limit: int, sid: SessionId | None = None) -> Sequence[Run]:
        where = "recovery_state = 'pending' AND session_id = ifnull(?, session_id)"
        return self._runs(f"{_RUNS} WHERE {where} ORDER BY recovery_since, id LIMIT ?", sid, limit)

    def claimable_runs(self, limit: int) -> Sequence[Run]:
        return self._runs(_CLAIMABLE, limit)

    def runs(
        self,
        owner: OwnerId,
        *,
        status: Collection[str] | None = None,
        sid: SessionId | None = None,
        limit: int = 50,
        before: tuple[float, RunId] | None = None,
    ) -> Sequence[Run]:
        rest = "AND (created_at, id) < (?, ?) ORDER BY created_at DESC, id DESC LIMIT ?"
        page = (*(before or _FIRST), limit)
        if sid is not None:
            sql = f"{_RUNS} WHERE session_id = ? AND owner = ? {{}} {rest}"
            wanted = () if status is None else tuple(status)
            some = "" if status is None else f"AND status IN ({', '.join('?' * len(wanted))})"
            return self._runs(sql.format(some), sid, owner, *wanted, *page)
        if status is None:
            return self._runs(f"{_RUNS} WHERE owner = ? {rest}", owner, *page)
        # Each status by itself comes in order from its index; together they would have to be sorted, all of them.
        found: list[Run] = []
        for each in set(status):
            found += self._runs(f"{_RUNS} WHERE owner = ? AND status = ? {rest}", owner, each, *page)
        found.sort(key=lambda run: (run.created_at, run.id), reverse=True)
        return found[:limit]

    def prunable_runs(self, ended_before: float, limit: int) -> Sequence[RunId]:
        sql = f"""
            SELECT id FROM runs WHERE pruned = 0 AND ended_at < ? AND NOT {_OPEN}
            AND ifnull(recovery_state, '') NOT IN ('pending', 'none')
            ORDER BY ended_at, id LIMIT ?
        """
        return [rid for (rid,) in self._all(sql, ended_before, limit)]

    def _runs(self, sql: str, *values: Any) -> list[Run]:
        return [rows.to_run(row) for row in self._all(sql, *values)]

    # ---- approvals, compactions ----

    def approval(self, aid: ApprovalId) -> Approval | None:
        row = self._one(f"{_APPROVALS} WHERE id = ?", aid)
        return None if row is None else rows.to_approval(row)

    def put_approval(self, approval: Approval) -> None:
        self._do(_PUT_APPROVAL, *rows.from_approval(approval))

    def open_approvals(self, rid: RunId) -> Sequence[Approval]:
        sql = f"{_APPROVALS} WHERE run_id = ? AND decision IS NULL ORDER BY created_at, id"
        return [rows.to_approval(row) for row in self._all(sql, rid)]

    def old_approvals(self, created_before: float, limit: int) -> Sequence[Approval]:
        sql = f"{_APPROVALS} WHERE decision IS NULL AND created_at < ? ORDER BY created_at, id LIMIT ?"
        return [rows.to_approval(row) for row in self._all(sql, created_before, limit)]

    def grants(self, owner: OwnerId, sid: SessionId | None) -> Sequence[Grant]:
        where = "owner = ? AND session_id IN ('', ?)"
        sql = f"SELECT {rows.GRANT} FROM grants WHERE {where} ORDER BY created_at, tool, scope"
        return [rows.to_grant(row) for row in self._all(sql, owner, sid or "")]

    def put_grant(self, grant: Grant) -> None:
        self._do("INSERT OR IGNORE INTO grants VALUES (?, ?, ?, ?, ?)", *rows.from_grant(grant))

    def drop_grant(self, owner: OwnerId, sid: SessionId | None, tool: str, scope: str) -> None:
        where = "owner = ? AND session_id = ? AND tool = ? AND scope = ?"
        self._do(f"DELETE FROM grants WHERE {where}", owner, sid or "", tool, scope)

    def settings(self, owner: OwnerId) -> Mapping[str, Json]:
        found = self._all("SELECT name, value FROM settings WHERE owner = ? ORDER BY name", owner)
        return {name: json.loads(value) for name, value in found}

    def put_setting(self, owner: OwnerId, name: str, value: Json) -> None:
        if value is None:
            self._do("DELETE FROM settings WHERE owner = ? AND name = ?", owner, name)
        else:
            self._do("INSERT OR REPLACE INTO settings VALUES (?, ?, ?)", owner, name, json.dumps(value))

    def compactions(self, sid: SessionId) -> Mapping[MessageId, Compaction]:
        found = self._all(f"SELECT {rows.COMPACTION} FROM compactions WHERE session_id = ?", sid)
        return {compaction.message_id: compaction for compaction in map(rows.to_compaction, found)}

    def put_compaction(self, compaction: Compaction) -> None:
        self._do(_PUT_COMPACTION, *rows.from_compaction(compaction))

    # ---- files, purges ----

    def file(self, fid: FileId) -> StoredFile | None:
        row = self._one(f"{_FILES} WHERE id = ?", fid)
        return None if row is None else rows.to_file(row)

    def put_file(self, file: StoredFile) -> None:
        self._do(_PUT_FILE, *rows.from_file(file))

    def orphan_files(self, created_before: float, limit: int) -> Sequence[StoredFile]:
        named = "SELECT 1 FROM message_files WHERE file_id = files.id"
        sql = f"{_FILES} WHERE created_at < ? AND NOT EXISTS ({named}) ORDER BY created_at, id LIMIT ?"
        return [rows.to_file(row) for row in self._all(sql, created_before, limit)]

    def drop_file(self, fid: FileId) -> None:
        self._do("DELETE FROM files WHERE id = ?", fid)

    def digest_in_use(self, sha256: str) -> bool:
        return self._one("SELECT 1 FROM files WHERE sha256 = ? LIMIT 1", sha256) is not None

    def add_purge(self, rids: Iterable[RunId]) -> None:
        for rid in rids:
            self._do("INSERT OR IGNORE INTO purges VALUES (?)", rid)

    def purges(self, limit: int) -> Sequence[RunId]:
        return [rid for (rid,) in self._all("SELECT run_id FROM purges ORDER BY run_id LIMIT ?", limit)]

    def drop_purges(self, rids: Iterable[RunId]) -> None:
        for rid in rids:
            self._do("DELETE FROM purges WHERE run_id = ?", rid)

    # ---- the change feed: one writer, so numbers are committed in their order ----

    def add_change(
        self,
        kind: ChangeKind,
        owner: OwnerId,
        session_id: SessionId,
        run_id: RunId | None = None,
        approval_id: ApprovalId | None = None,
        status: str | None = None,
    ) -> None:
        sql = f"INSERT INTO changes ({rows.CHANGE}) VALUES (NULL, ?, ?, ?, ?, ?, ?)"
        self._do(sql, kind, owner, session_id, run_id, approval_id, status)

    def changes(self, after: int, limit: int) -> Sequence[Change]:
        sql = f"SELECT {rows.CHANGE} FROM changes WHERE n > ? ORDER BY n LIMIT ?"
        return [rows.to_change(row) for row in self._all(sql, after, limit)]

    def change_bounds(self) -> tuple[int, int]:
        (first,) = self._one("SELECT min(n) FROM changes")
        used = self._one("SELECT seq FROM sqlite_sequence WHERE name = 'changes'")
        last: int = 0 if used is None else used[0]
        return (last if first is None else first - 1), last

    def changes_held_back(self) -> bool:
        return False  # one writes at a time

    def trim_changes(self, keep: int) -> None:
        self._do("DELETE FROM changes WHERE n <= (SELECT max(n) FROM changes) - ?", keep)

    # ---- search ----

    def search(self, owner: OwnerId, text: str, limit: int, before: int | None) -> Sequence[Hit]:
        """The first page decides how all pages understand the query, or they would not fit together."""
        queries = search.query(encodable(text))
        if queries is None or limit <= 0:
            return []
        whole, prefix = queries
        first = self._hits(owner, whole, limit, None)
        if len(first) < limit and prefix != whole:
            return self._hits(owner, prefix, limit, before)
        return first if before is None else self._hits(owner, whole, limit, before)

    def _hits(self, owner: OwnerId, match: str, limit: int, before: int | None) -> list[Hit]:
        seen: set[SessionId] = set()
        found: list[Hit] = []
        for n, sid, mid in search.hits(self._db, owner, match, before):
            if sid not in seen:
                seen.add(sid)
                hit = self._hit(match, n, sid, mid, before)
                if hit is not None:
                    found.append(hit)
                    if len(found) == limit:
                        break
        return found

    def _hit(self, match: str, n: int, sid: SessionId, mid: MessageId | None, before: int | None) -> Hit | None:
        session = self.session(sid)
        if session is None or session.deleted_at is not None:
            return None
        if before is not None and search.has_newer(self._db, sid, match, before):
            return None
        return Hit(session, mid, search.excerpt(self._db, match, n), n)

    def _index(
        self, owner: OwnerId, sid: SessionId, mid: MessageId | None, text: str, *, known_to_be_new: bool = False
    ) -> None:
        """Keep the entry of a title (`mid` is None) or message right. One that changes keeps its place in the order."""
        text = encodable(search.document(text))
        find = "SELECT n, text FROM docs WHERE session_id = ? AND message_id IS ?"
        row = None if known_to_be_new else self._one(find, sid, mid)
        if row is None:
            if text:
                sql = "INSERT INTO docs (owner, session_id, message_id, text) VALUES (?, ?, ?, ?)"
                self._do(sql, owner, sid, mid, text)
        elif not text:
            self._do("DELETE FROM docs WHERE n = ?", row[0])
        elif row[1] != text:
            self._do("UPDATE docs SET text = ? WHERE n = ?", text, row[0])
