"""One transaction: thin SQL over plain values. Writes are sent without waiting for their answers (a pipeline), so that
only reads cost a round trip; an error of a write comes up at the next read or at the commit, which is early enough."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from holdfast.core.ids import ApprovalId, FileId, MessageId, OwnerId, RunId, SessionId
from holdfast.core.parts import File, Json, plain_text
from holdfast.core.run import Lease, Run
from holdfast.core.session import Compaction, Message, Session
from holdfast.ports import Approval, Change, ChangeKind, Grant, Hit, SessionQuery, StoredFile
from holdfast.storage import rows
from holdfast.storage.postgres import changes, search
from holdfast.storage.postgres.link import TimedConnection
from holdfast.storage.postgres.remembering import Remembering
from holdfast.storage.postgres.statements import constant

_MESSAGE: Final = f"{rows.MESSAGE}, file_ids"
_PUT_SESSION: Final = constant(rows.upsert("sessions", rows.SESSION, mark="%s"))
_PUT_MESSAGE: Final = constant(rows.upsert("messages", _MESSAGE, mark="%s"))
_PUT_RUN: Final = constant(rows.upsert("runs", rows.RUN, mark="%s"))
_PUT_APPROVAL: Final = constant(rows.upsert("approvals", rows.APPROVAL, mark="%s"))
_PUT_COMPACTION: Final = constant(rows.upsert("compactions", rows.COMPACTION, "session_id, message_id", mark="%s"))
_PUT_FILE: Final = constant(rows.upsert("files", rows.FILE, mark="%s"))

_SESSIONS: Final = f"SELECT {rows.SESSION} FROM sessions"
_MESSAGES: Final = f"SELECT {rows.MESSAGE} FROM messages"
_RUNS: Final = f"SELECT {rows.RUN} FROM runs"
_APPROVALS: Final = f"SELECT {rows.APPROVAL} FROM approvals"
_FILES: Final = f"SELECT {rows.FILE} FROM files"

_OPEN: Final = "status IN ('queued', 'running', 'waiting')"
"""As the partial indexes say it."""

_CLAIMABLE: Final = f"""
    {_RUNS} AS mine WHERE status = 'queued' AND intent IS NULL AND NOT EXISTS (
        SELECT 1 FROM runs AS other
        WHERE other.session_id = mine.session_id AND other.{_OPEN} AND other.id <> mine.id AND (
            other.status <> 'queued'
            OR (NOT other.in_tree, other.rank, other.id) < (NOT mine.in_tree, mine.rank, mine.id)
        )
    ) ORDER BY rank, id LIMIT %s
"""

_RENEW: Final = f"""
    WITH named AS (
        SELECT rid, held, connected FROM runs
        JOIN unnest(%(rids)s::text[], %(held)s::boolean[], %(connected)s::boolean[]) AS item (rid, held, connected)
        ON id = rid WHERE {_OPEN} ORDER BY id FOR UPDATE OF runs
    )
    UPDATE runs SET
        lease_until = CASE WHEN held AND lease_holder = %(holder)s THEN %(until)s ELSE lease_until END,
        connection_holder = CASE WHEN connected THEN %(holder)s ELSE connection_holder END,
        connection_until = CASE WHEN connected THEN %(until)s ELSE connection_until END
    FROM named WHERE id = rid RETURNING {rows.RUN}
"""
"""Locked in the order of their names: two nodes that have runs in common do not wait for each other."""

_INDEX: Final = """
    INSERT INTO docs (owner, session_id, message_id, text, words) VALUES (%s, %s, %s, %s, array_to_tsvector(%s::text[]))
    ON CONFLICT (session_id, message_id) DO UPDATE SET text = excluded.text, words = excluded.words
    WHERE docs.text <> excluded.text
"""

_ENTER: Final = """
    INSERT INTO turnstiles (session_id, n) VALUES (%s, 1)
    ON CONFLICT (session_id) DO UPDATE SET n = turnstiles.n + 1
"""

_LAST: Final = (float("inf"), "")
"""A cursor before the first row of a list that runs from new to old."""


class PostgresTx(Remembering):
    def __init__(self, db: TimedConnection, *, writes: bool) -> None:
        super().__init__(db)
        self._writes = writes
        self._titles: dict[SessionId, str] = {}
        """As this transaction has seen them: a save that leaves the title alone leaves the index alone."""
        self._entered: set[SessionId] = set()

    def _enter(self, sid: SessionId) -> None:
        """Before the first write of a session: whoever else writes in it at the same time is done again, or we are."""
        if sid not in self._entered:
            self._entered.add(sid)
            self._do(_ENTER, sid)

    # ---- sessions ----

    def session(self, sid: SessionId) -> Session | None:
        row = self._one(f"{_SESSIONS} WHERE id = %s", sid)
        if row is None:
            return None
        found = rows.to_session(row)
        self._titles[sid] = found.title
        return found

    def put_session(self, session: Session) -> None:
        self._enter(session.id)
        self._do(_PUT_SESSION, *rows.from_session(session))
        if self._titles.get(session.id) != session.title:
            self._index(session.owner, session.id, "", session.title)
            self._titles[session.id] = session.title

    def sessions(self, query: SessionQuery) -> Sequence[Session]:
        where, values = "owner = %s AND archived = %s AND deleted_at IS NULL", [query.owner, query.archived]
        if query.project is not None:
            where, values = f"{where} AND project = %s", [*values, query.project]
        found = self._all(
            f"{_SESSIONS} WHERE {where} AND (updated_at, id) < (%s, %s) ORDER BY updated_at DESC, id DESC LIMIT %s",
            *values,
            *(query.before or _LAST),
            query.limit,
        )
        return [rows.to_session(row) for row in found]

    def deleted_sessions(self, limit: int) -> Sequence[SessionId]:
        sql = "SELECT id FROM sessions WHERE deleted_at IS NOT NULL ORDER BY deleted_at, id LIMIT %s"
        return [sid for (sid,) in self._all(sql, limit)]

    def drop_session(self, sid: SessionId) -> None:
        self._enter(sid)
        for table in ("messages", "runs", "approvals", "compactions", "docs", "grants", "dirty_turns", "ledgers"):
            self._do(f"DELETE FROM {table} WHERE session_id = %s", sid)
        self._do("DELETE FROM sessions WHERE id = %s", sid)
        self._titles.pop(sid, None)

    # ---- messages ----

    def message(self, mid: MessageId) -> Message | None:
        row = self._one(f"{_MESSAGES} WHERE id = %s", mid)
        return None if row is None else rows.to_message(row)

    def put_message(self, message: Message) -> None:
        self._enter(message.session_id)
        files = sorted({part.file_id for part in message.parts if isinstance(part, File)})
        self._do(_PUT_MESSAGE, *rows.from_message(message), files)
        if files:  # written, so that somebody who is dropping them as orphans at this moment is done again
            self._do("UPDATE files SET created_at = created_at WHERE id = ANY(%s)", files)
        shown = message.in_tree and message.status != "streaming"
        self._index(message.owner, message.session_id, message.id, plain_text(message.parts) if shown else "")

    def children(self, sid: SessionId, parent: MessageId | None) -> Sequence[MessageId]:
        where = "session_id = %s AND in_tree AND parent_id" + (" IS NULL" if parent is None else " = %s")
        sql = f"SELECT id FROM messages WHERE {where} ORDER BY created_at, id"
        return [mid for (mid,) in self._all(sql, sid, *(() if parent is None else (parent,)))]

    def drop_messages(self, sid: SessionId) -> None:
        self._enter(sid)
        queued = f"FROM runs WHERE session_id = %(sid)s AND {_OPEN} AND status = 'queued' AND NOT in_tree"
        gone = f"IN (SELECT id FROM messages WHERE session_id = %(sid)s EXCEPT SELECT message_id {queued} \
            EXCEPT SELECT user_message_id {queued})"
        values = {"sid": sid}
        self._db.execute(constant(f"DELETE FROM docs WHERE session_id = %(sid)s AND message_id {gone}"), values)
        self._db.execute(constant(f"DELETE FROM messages WHERE id {gone}"), values)
        self._do("DELETE FROM compactions WHERE session_id = %s", sid)

    # ---- runs ----

    def run(self, rid: RunId) -> Run | None:
        row = self._one(f"{_RUNS} WHERE id = %s", rid)
        return None if row is None else rows.to_run(row)

    def put_run(self, run: Run) -> None:
        self._enter(run.session_id)
        self._do(_PUT_RUN, *rows.from_run(run))

    def renew(self, lease: Lease, held: Collection[RunId], connections: Collection[RunId]) -> Sequence[Run]:
        """A lease is nothing of the session's: a node renews hundreds at once, and is in nobody's way."""
        rids = list({*held, *connections})
        which = {"held": [rid in held for rid in rids], "connected": [rid in connections for rid in rids]}
        values = {"rids": rids, **which, "holder": lease.holder, "until": lease.until}
        return [rows.to_run(row) for row in self._db.execute(constant(_RENEW), values)]

    def drop_run(self, rid: RunId) -> None:
        self._do("DELETE FROM approvals WHERE run_id = %s", rid)
        self._do("DELETE FROM runs WHERE id = %s", rid)

    def run_with_key(self, owner: OwnerId, sid: SessionId, key: str) -> Run | None:
        row = self._one(f"{_RUNS} WHERE owner = %s AND session_id = %s AND key = %s", owner, sid, key)
        return None if row is None else rows.to_run(row)

    def open_runs(self, sid: SessionId) -> Sequence[Run]:
        return self._runs(f"{_RUNS} WHERE session_id = %s AND {_OPEN} ORDER BY rank, id", sid)

    def all_open_runs(self, limit: int, after: RunId | None = None) -> Sequence[Run]:
        return self._runs(f"{_RUNS} WHERE {_OPEN} AND id > %s ORDER BY id LIMIT %s", after or "", limit)

    def pending_runs(self, limit: int, sid: SessionId | None = None) -> Sequence[Run]:
        where = "recovery_state = 'pending'" + ("" if sid is None else " AND session_id = %s")
        sql = f"{_RUNS} WHERE {where} ORDER BY recovery_since, id LIMIT %s"
        return self._runs(sql, *(() if sid is None else (sid,)), limit)

    def claimable_runs(self, limit: int) -> Sequence[Run]:
        """In a transaction that writes, what another node is claiming at this moment is passed over: nodes that were
        woken together take different runs instead of undoing one another's work."""
        return self._runs(f"{_CLAIMABLE} FOR UPDATE OF mine SKIP LOCKED" if self._writes else _CLAIMABLE, limit)

    def runs(
        self,
        owner: OwnerId,
        *,
        status: Collection[str] | None = None,
        sid: SessionId | None = None,
        limit: int = 50,
        before: tuple[float, RunId] | None = None,
    ) -> Sequence[Run]:
        rest = "AND (created_at, id) < (%s, %s) ORDER BY created_at DESC, id DESC LIMIT %s"
        page = (*(before or _LAST), limit)
        if sid is not None:
            some = "" if status is None else "AND status = ANY(%s)"
            wanted = () if status is None else (list(status),)
            sql = f"{_RUNS} WHERE session_id = %s AND owner = %s {some} {rest}"
            return self._runs(sql, sid, owner, *wanted, *page)
        if status is None:
            return self._runs(f"{_RUNS} WHERE owner = %s {rest}", owner, *page)
        # Each status by itself comes in order from its index; together they would have to be sorted, all of them.
        found: list[Run] = []
        for each in set(status):
            found += self._runs(f"{_RUNS} WHERE owner = %s AND status = %s {rest}", owner, each, *page)
        found.sort(key=lambda run: (run.created_at, run.id), reverse=True)
        return found[:limit]

    def prunable_runs(self, ended_before: float, limit: int) -> Sequence[RunId]:
        sql = f"""
            SELECT id FROM runs WHERE NOT pruned AND ended_at < %s AND NOT {_OPEN}
            AND coalesce(recovery_state, '') NOT IN ('pending', 'none')
            ORDER BY ended_at, id LIMIT %s
        """
        return [rid for (rid,) in self._all(sql, ended_before, limit)]

    def _runs(self, sql: str, *values: Any) -> list[Run]:
        return [rows.to_run(row) for row in self._all(sql, *values)]

    # ---- approvals, grants, settings, compactions ----

    def approval(self, aid: ApprovalId) -> Approval | None:
        row = self._one(f"{_APPROVALS} WHERE id = %s", aid)
        return None if row is None else rows.to_approval(row)

    def put_approval(self, approval: Approval) -> None:
        self._enter(approval.session_id)
        self._do(_PUT_APPROVAL, *rows.from_approval(approval))

    def open_approvals(self, rid: RunId) -> Sequence[Approval]:
        sql = f"{_APPROVALS} WHERE run_id = %s AND decision IS NULL ORDER BY created_at, id"
        return [rows.to_approval(row) for row in self._all(sql, rid)]

    def old_approvals(self, created_before: float, limit: int) -> Sequence[Approval]:
        sql = f"{_APPROVALS} WHERE decision IS NULL AND created_at < %s ORDER BY created_at, id LIMIT %s"
        return [rows.to_approval(row) for row in self._all(sql, created_before, limit)]

    def grants(self, owner: OwnerId, sid: SessionId | None) -> Sequence[Grant]:
        where = "owner = %s AND session_id IN ('', %s)"
        sql = f"SELECT {rows.GRANT} FROM grants WHERE {where} ORDER BY created_at, tool, scope"
        return [rows.to_grant(row) for row in self._all(sql, owner, sid or "")]

    def put_grant(self, grant: Grant) -> None:
        self._do("INSERT INTO grants VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING", *rows.from_grant(grant))

    def drop_grant(self, owner: OwnerId, sid: SessionId | None, tool: str, scope: str) -> None:
        where = "owner = %s AND session_id = %s AND tool = %s AND scope = %s"
        self._do(f"DELETE FROM grants WHERE {where}", owner, sid or "", tool, scope)

    def settings(self, owner: OwnerId) -> Mapping[str, Json]:
        found = self._all("SELECT name, value FROM settings WHERE owner = %s ORDER BY name", owner)
        return {name: json.loads(value) for name, value in found}

    def put_setting(self, owner: OwnerId, name: str, value: Json) -> None:
        if value is None:
            self._do("DELETE FROM settings WHERE owner = %s AND name = %s", owner, name)
        else:
            sql = rows.upsert("settings", "owner, name, value", "owner, name", mark="%s")
            self._do(sql, owner, name, json.dumps(value))

    def compactions(self, sid: SessionId) -> Mapping[MessageId, Compaction]:
        found = self._all(f"SELECT {rows.COMPACTION} FROM compactions WHERE session_id = %s", sid)
        return {compaction.message_id: compaction for compaction in map(rows.to_compaction, found)}

    def put_compaction(self, compaction: Compaction) -> None:
        self._enter(compaction.session_id)
        self._do(_PUT_COMPACTION, *rows.from_compaction(compaction))

    # ---- files, purges ----

    def file(self, fid: FileId) -> StoredFile | None:
        row = self._one(f"{_FILES} WHERE id = %s", fid)
        return None if row is None else rows.to_file(row)

    def put_file(self, file: StoredFile) -> None:
        self._do(_PUT_FILE, *rows.from_file(file))

    def orphan_files(self, created_before: float, limit: int) -> Sequence[StoredFile]:
        named = "SELECT 1 FROM messages WHERE file_ids <> '{{}}' AND file_ids @> ARRAY[files.id::text]"
        sql = f"{_FILES} WHERE created_at < %s AND NOT EXISTS ({named}) ORDER BY created_at, id LIMIT %s"
        return [rows.to_file(row) for row in self._all(sql.replace("{{}}", "{}"), created_before, limit)]

    def drop_file(self, fid: FileId) -> None:
        self._do("DELETE FROM files WHERE id = %s", fid)

    def digest_in_use(self, sha256: str) -> bool:
        return self._one("SELECT 1 FROM files WHERE sha256 = %s LIMIT 1", sha256) is not None

    def add_purge(self, rids: Iterable[RunId]) -> None:
        self._do("INSERT INTO purges SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING", list(rids))

    def purges(self, limit: int) -> Sequence[RunId]:
        return [rid for (rid,) in self._all("SELECT run_id FROM purges ORDER BY run_id LIMIT %s", limit)]

    def drop_purges(self, rids: Iterable[RunId]) -> None:
        self._do("DELETE FROM purges WHERE run_id = ANY(%s)", list(rids))

    # ---- the change feed ----

    def add_change(
        self,
        kind: ChangeKind,
        owner: OwnerId,
        session_id: SessionId,
        run_id: RunId | None = None,
        approval_id: ApprovalId | None = None,
        status: str | None = None,
    ) -> None:
        self._do(changes.ADD, self._count(), kind, owner, session_id, run_id, approval_id, status)

    def changes(self, after: int, limit: int) -> Sequence[Change]:
        return [rows.to_change(row) for row in self._all(changes.LIST, after, limit)]

    def change_bounds(self) -> tuple[int, int]:
        low, high = self._one(changes.BOUNDS)
        return low, high

    def changes_held_back(self) -> bool:
        (held,) = self._one(changes.HELD)
        return bool(held)

    def trim_changes(self, keep: int) -> None:
        self._do(changes.TRIM, keep)

    # ---- search ----

    def search(self, owner: OwnerId, text: str, limit: int, before: int | None) -> Sequence[Hit]:
        """The first page decides how all pages understand the query, or they would not fit together."""
        queries = search.query(text)
        if queries is None or limit <= 0:
            return []
        whole, prefix = queries
        first = self._hits(owner, text, whole, limit, None)
        if len(first) < limit and prefix != whole:
            return self._hits(owner, text, prefix, limit, before)
        return first if before is None else self._hits(owner, text, whole, limit, before)

    def _hits(self, owner: OwnerId, typed: str, match: str, limit: int, before: int | None) -> list[Hit]:
        """In portions: with a limit PostgreSQL goes backwards through a common word's documents and stops."""
        exact, portion = search.unspaced(typed), limit * 4 + 20
        seen: set[SessionId] = set()
        found: list[Hit] = []
        last = 2**62 if before is None else before
        while len(found) < limit:
            some = self._all(
                "SELECT n, session_id, message_id, text FROM docs "
                "WHERE owner = %s AND words @@ %s::tsquery AND n < %s ORDER BY n DESC LIMIT %s",
                owner, match, last, portion,
            )  # fmt: skip
            for n, sid, mid, text in some:
                last = n
                if sid in seen or not all(each in text for each in exact):
                    continue
                seen.add(sid)
                session = self.session(sid)
                if session is None or session.deleted_at is not None:
                    continue
                if before is not None and self._has_newer(sid, match, before):
                    continue
                found.append(Hit(session, mid or None, search.excerpt(text, match, typed), n))
                if len(found) == limit:
                    break
            if len(some) < portion:
                break
        return found

    def _has_newer(self, sid: SessionId, match: str, since: int) -> bool:
        """Whether the session was on an earlier page: it has a hit from `since` on."""
        sql = "SELECT 1 FROM docs WHERE session_id = %s AND n >= %s AND words @@ %s::tsquery LIMIT 1"
        return self._one(sql, sid, since, match) is not None

    def _index(self, owner: OwnerId, sid: SessionId, mid: str, text: str) -> None:
        """Keep the entry of a title (`mid` is empty) or message right. One that changes keeps its place in the
        order."""
        found = search.words(text) if text else []
        if found:
            self._do(_INDEX, owner, sid, mid, text, found)
        else:
            self._do("DELETE FROM docs WHERE session_id = %s AND message_id = %s", sid, mid)
