"""SQL for runs."""

from collections.abc import Collection, Sequence
from typing import Final

from holdfast.core.ids import OwnerId, RunId, SessionId
from holdfast.core.lease import Lease
from holdfast.core.run import Run
from holdfast.ports.store import RunQuery
from holdfast.storage.sql.statements import NEWEST, Statements
from holdfast.storage.sql.tables import RUNS

OPEN: Final = "status IN ('queued', 'running', 'waiting')"
"""As the partial indexes have it: SQLite uses one only if the query has its condition literally."""

_CLAIMABLE: Final = f"""
    AS mine WHERE status = 'queued' AND intent IS NULL AND NOT EXISTS (
        SELECT 1 FROM runs AS other
        WHERE other.session_id = mine.session_id AND other.{OPEN} AND other.id <> mine.id AND (
            other.status <> 'queued'
            OR (NOT other.in_tree, other.rank, other.id) < (NOT mine.in_tree, mine.rank, mine.id)
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

    def runs(self, query: RunQuery) -> Sequence[Run]:
        owner, sid, status = query.owner, query.session_id, query.status
        rest = "AND (created_at, id) < (?, ?) ORDER BY created_at DESC, id DESC LIMIT ?"
        page = (*(query.before or NEWEST), query.limit)
        if sid is not None:
            condition, values = "", [sid, owner]
            if status is not None:
                condition, values = f"AND status {self._db.in_list}", [*values, self._db.list_parameter(status)]
            return self._select(RUNS, f"WHERE session_id = ? AND owner = ? {condition} {rest}", *values, *page)
        if status is None:
            return self._select(RUNS, f"WHERE owner = ? {rest}", owner, *page)
        # One query per status reads its index in order; one query for all would sort every run they have.
        found: list[Run] = []
        for each in set(status):
            found += self._select(RUNS, f"WHERE owner = ? AND status = ? {rest}", owner, each, *page)
        found.sort(key=lambda run: (run.created_at, run.id), reverse=True)
        return found[: query.limit]

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
