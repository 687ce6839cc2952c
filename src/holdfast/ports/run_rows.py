"""Runs and the queue of journals to erase, as a store transaction reads and writes them."""

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from holdfast.core.ids import OwnerId, RunId, SessionId
from holdfast.core.run import Lease, Run


class RunRows(Protocol):
    def run(self, rid: RunId) -> Run | None: ...
    def put_run(self, run: Run) -> None:
        """Insert or replace a run. StorageError: another run of this owner and session has the key."""

    def drop_run(self, rid: RunId) -> None:
        """Erase a run and its approvals."""

    def renew_leases(self, lease: Lease, held: Collection[RunId], connections: Collection[RunId]) -> Sequence[Run]:
        """Renew the leases in `held` that the same holder still has, and set the connection lease of every run in
        `connections`, in one statement. Returns the named runs that are open, as they are now, in no order."""

    def run_with_key(self, owner: OwnerId, sid: SessionId, key: str) -> Run | None: ...
    def open_runs(self, sid: SessionId) -> Sequence[Run]:
        """List the queued, running and waiting runs of a session by rank."""

    def all_open_runs(self, limit: int, after: RunId | None = None) -> Sequence[Run]:
        """List open runs of all sessions by id."""

    def pending_runs(self, limit: int, sid: SessionId | None = None) -> Sequence[Run]:
        """List runs whose recovery is pending, oldest `since` first."""

    def claimable_runs(self, limit: int) -> Sequence[Run]:
        """List queued runs without an intent whose session has no running or waiting run and no queued run ahead of
        them, by rank. A queued run in the tree goes ahead of all that are not."""

    def runs(
        self,
        owner: OwnerId,
        *,
        status: Collection[str] | None = None,
        sid: SessionId | None = None,
        limit: int = 50,
        before: tuple[float, RunId] | None = None,
    ) -> Sequence[Run]:
        """List runs, newest first by (created_at, id)."""

    def prunable_runs(self, ended_before: float, limit: int) -> Sequence[RunId]:
        """List ended runs whose journal may be pruned. A run whose output was never found keeps its journal."""

    def queue_purges(self, rids: Iterable[RunId]) -> None:
        """Queue journals for erasure, in the transaction that deletes the rows of their runs."""

    def queued_purges(self, limit: int) -> Sequence[RunId]:
        """List journals queued for erasure."""

    def drop_purges(self, rids: Iterable[RunId]) -> None:
        """Remove journals from the queue after they are erased."""
