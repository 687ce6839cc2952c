"""SQL for runs. Which run may be claimed, and in which order, is the condition `_CLAIMABLE`."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from holdfast.core.ids import OwnerId, RunId, SessionId
from holdfast.core.lease import Lease
from holdfast.core.run import Run
from holdfast.ports.store import RunQuery, RunTimes
from holdfast.storage.sql.statements import NEWEST, OLDEST, Statements
from holdfast.storage.sql.tables import CANCELLED_KEYS, LISTED_RUNS, RUNS
from holdfast.storage.sql.usage import keep_usage

OPEN: Final = "status IN ('queued', 'running', 'waiting')"
"""As the partial indexes have it: SQLite uses one only if the query has its condition literally."""

_CLAIMABLE: Final = f"""
    AS mine WHERE status = 'queued' AND intent IS NULL AND NOT EXISTS (
        SELECT 1 FROM runs AS other
        WHERE other.session_id = mine.session_id AND other.{OPEN} AND other.id <> mine.id AND (
            other.status <> 'queued'
            OR (other.steers IS NULL OR other.intent IS NULL)
            AND (NOT other.in_tree, other.rank, other.id) < (NOT mine.in_tree, mine.rank, mine.id)
        )
    ) ORDER BY rank, id LIMIT ?
"""


class SqlRunRows(Statements):
    def run(self, rid: RunId) -> Run | None:
        return self._find(RUNS, rid)

    def put_run(self, run: Run) -> None:
        self._db.enter_session(run.session_id)
        row = RUNS.encode(run)
        self._db.save(RUNS, row, self._remember(RUNS, row))

    def drop_run(self, rid: RunId) -> None:
        keep_usage(self._db, "runs.id = ?", rid)
        self._db.execute("DELETE FROM approvals WHERE run_id = ?", rid)
        self._db.execute("DELETE FROM runs WHERE id = ?", rid)
        self._forget_rows()

    def renew_leases(self, lease: Lease, held: Collection[RunId], connections: Collection[RunId]) -> Sequence[Run]:
        """Does not enter the sessions: a node renews hundreds of leases at once and must not conflict with writers."""
        self._forget_rows()
        one_of = f"id {self._db.in_list}"
        sql = f"""
            WITH named AS (SELECT id FROM runs WHERE {one_of} AND {OPEN} {self._db.lock_named})
            UPDATE runs SET
                lease_until = CASE WHEN lease_holder = ? AND {one_of} THEN ? ELSE lease_until END,
                connection_holder = CASE WHEN {one_of} THEN ? ELSE connection_holder END,
                connection_until = CASE WHEN {one_of} THEN ? ELSE connection_until END
            WHERE id IN (SELECT id FROM named) RETURNING {RUNS.columns}
        """
        named, held_ids, connected = map(self._db.list_parameter, ({*held, *connections}, held, connections))
        holder, until = lease.holder, lease.until
        found = self._db.fetchall(sql, named, holder, held_ids, until, connected, holder, connected, until)
        return list(map(RUNS.decode, found))

    def run_with_key(self, owner: OwnerId, sid: SessionId, key: str) -> Run | None:
        return self._select_one(RUNS, "WHERE owner = ? AND session_id = ? AND key = ?", owner, sid, key)

    def cancel_key(self, sid: SessionId, key: str) -> None:
        self._db.enter_session(sid)
        self._db.execute(CANCELLED_KEYS.upsert, sid, key, self._db.now)

    def key_cancelled_at(self, sid: SessionId, key: str) -> float | None:
        found = self._db.fetchall("SELECT created_at FROM cancelled_keys WHERE session_id = ? AND key = ?", sid, key)
        return found[0][0] if found else None

    def count_cancelled_keys(self, sid: SessionId) -> int:
        ((count,),) = self._db.fetchall("SELECT count(*) FROM cancelled_keys WHERE session_id = ?", sid)
        return int(count)

    def trim_cancelled_keys(self, sid: SessionId, before: float) -> None:
        self._db.execute("DELETE FROM cancelled_keys WHERE session_id = ? AND created_at < ?", sid, before)

    def open_runs(self, sid: SessionId) -> Sequence[Run]:
        return self._select(RUNS, f"WHERE session_id = ? AND {OPEN} ORDER BY rank, id", sid)

    def all_open_runs(self, limit: int, after: RunId | None = None) -> Sequence[Run]:
        return self._select(RUNS, f"WHERE {OPEN} AND id > ? ORDER BY id LIMIT ?", after or "", limit)

    def pending_runs(self, limit: int, sid: SessionId | None = None) -> Sequence[Run]:
        # `coalesce` keeps the planner on the small index of pending runs.
        where = "recovery_state = 'pending' AND session_id = coalesce(?, session_id)"
        return self._select(RUNS, f"WHERE {where} ORDER BY recovery_since, id LIMIT ?", sid, limit)

    def claimable_runs(self, limit: int) -> Sequence[Run]:
        return self._select(RUNS, f"{_CLAIMABLE} {self._db.skip_locked}", limit)

    def shown_open_runs(self, sid: SessionId) -> Sequence[Run]:
        return self._select(LISTED_RUNS, f"WHERE session_id = ? AND {OPEN} ORDER BY rank, id", sid)

    def run_times(self, rids: Collection[RunId]) -> Mapping[RunId, RunTimes]:
        if not rids:
            return {}
        sql = f"SELECT id, started_at, ended_at FROM runs WHERE id {self._db.in_list}"
        found = self._db.fetchall(sql, self._db.list_parameter(rids))
        return {rid: RunTimes(started_at, ended_at) for rid, started_at, ended_at in found}

    def count_runs(self, sid: SessionId) -> int:
        ((count,),) = self._db.fetchall("SELECT count(*) FROM runs WHERE session_id = ?", sid)
        return int(count)

    def count_open_runs(self) -> Mapping[str, int]:
        return dict(self._db.fetchall(f"SELECT status, count(*) FROM runs WHERE {OPEN} GROUP BY status"))

    def runs(self, query: RunQuery) -> Sequence[Run]:
        owner, status = query.owner, query.status
        where = "owner = ?"
        values: list[Any] = [owner]
        if query.session_id is not None:
            where, values = f"session_id = ? AND {where}", [query.session_id, *values]
            if status is not None:
                where, values = f"{where} AND status {self._db.in_list}", [*values, self._db.list_parameter(status)]
        if query.session_id is not None or status is None:
            return self._listed_runs(query, where, values)
        # One query per status reads its index in order; one query for all would sort every run they have.
        found: list[Run] = []
        for each in set(status):
            found += self._listed_runs(query, f"{where} AND status = ?", [*values, each])
        found.sort(key=lambda run: (run.created_at, run.id), reverse=not query.oldest_first)
        return found[: query.limit]

    def _listed_runs(self, query: RunQuery, where: str, values: Sequence[Any]) -> list[Run]:
        if query.among_newest is not None:
            sql = f"SELECT created_at, id FROM runs WHERE {where} ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET ?"
            # Not a subquery of ids: those that match would be sorted, and none could be left unread.
            for last in self._db.fetchall(sql, *values, query.among_newest - 1):
                where, values = f"{where} AND (created_at, id) >= (?, ?)", [*values, *last]
        for path, text in query.settings_with.items():
            if text is None:
                where = f"{where} AND {self._db.setting(path)} IS NOT NULL"
            else:
                where, values = f"{where} AND {self._db.setting(path)} = ?", [*values, text]
        for path in query.settings_without:
            where = f"{where} AND {self._db.setting(path)} IS NULL"
        beyond, direction, first = (">", "ASC", OLDEST) if query.oldest_first else ("<", "DESC", NEWEST)
        rest = f"AND (created_at, id) {beyond} (?, ?) ORDER BY created_at {direction}, id {direction} LIMIT ?"
        return self._select(LISTED_RUNS, f"WHERE {where} {rest}", *values, *(query.before or first), query.limit)

    def queued_bytes(self, sid: SessionId) -> int:
        sql = f"""
            SELECT coalesce(sum({self._db.parts_bytes}), 0) FROM messages WHERE id IN (
                SELECT user_message_id FROM runs WHERE session_id = ? AND {OPEN} AND status = 'queued' AND NOT in_tree
            )
        """
        ((size,),) = self._db.fetchall(sql, sid)
        return int(size)

    def has_queued_runs(self, owner: OwnerId, count: int) -> bool:
        sql = "SELECT 1 FROM runs WHERE owner = ? AND status = 'queued' LIMIT 1 OFFSET ?"
        return bool(self._db.fetchall(sql, owner, count - 1))

    def prunable_runs(self, ended_before: float, limit: int) -> Sequence[RunId]:
        sql = f"""
            SELECT id FROM runs WHERE pruned = {self._db.false} AND ended_at < ? AND NOT {OPEN}
            AND coalesce(recovery_state, '') NOT IN ('pending', 'none')
            ORDER BY ended_at, id LIMIT ?
        """
        return [rid for (rid,) in self._db.fetchall(sql, ended_before, limit)]
