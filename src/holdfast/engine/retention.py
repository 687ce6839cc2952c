"""Retention: erases deleted sessions, cleared turns, expired journals and shares, orphaned files, and the trash of
workspaces.

Settled journals are kept for `EngineSettings.retention` seconds; those of unsettled or pending runs are never pruned.
Files that neither a message nor a share refers to are deleted `unused_file_grace` seconds after their upload.
"""

import logging
from dataclasses import dataclass, field
from typing import Final

import anyio
from anyio import to_thread

from holdfast.core.ids import SessionId
from holdfast.engine.attachments import Attachments
from holdfast.engine.node_context import NodeContext
from holdfast.engine.transactions import run_endings, session_edits
from holdfast.ports.files import WorkspaceEraser
from holdfast.ports.store import RunQuery, Tx

log = logging.getLogger("holdfast.engine")

_BATCH: Final = 500


@dataclass(frozen=True, slots=True, eq=False)
class Retention:
    _node: NodeContext
    _attachments: Attachments
    _workspaces: WorkspaceEraser | None
    _remembers: bool  # A deleted session is erased only after its turns were committed to memory
    erasing: anyio.Lock = field(default_factory=anyio.Lock)
    """While a backup holds this, no journal or file is erased, so that it can copy what the store names."""

    async def erase(self) -> None:
        """Erase everything that is due. Each step is tried even if another fails, and again at the next sweep."""
        if self.erasing.locked():
            return
        async with self.erasing:
            steps = (
                self.purge,
                self.prune,
                self.drop_expired_shares,
                self._attachments.drop_orphans,
                self.expire_trash,
            )
            await self._node.outages.try_each("erasing what is due", steps)

    async def purge(self) -> None:
        """Erase deleted sessions and cleared turns: workspaces, then rows, then the journals they queued."""
        store = self._node.store
        if self._node.tracing is not None:
            await self._node.tracing.wait_for_waiting()  # they are traced from their journals
        for sid in await store.read(lambda tx: tx.deleted_sessions(_BATCH)):
            if await self._in_use(sid) or not await self._erase_workspace(sid):
                continue
            await store.transact(lambda tx, sid=sid: session_edits.purge(tx, sid, self._remembers))  # type: ignore[misc]
        while rids := await store.read(lambda tx: tx.queued_purges(_BATCH)):
            await self._node.journal.purge(rids)
            await store.transact(lambda tx, rids=rids: tx.drop_purges(rids))  # type: ignore[misc]

    async def _in_use(self, sid: SessionId) -> bool:
        """A deleted session gets no new runs, but its last one may still be ending, or its client still reading."""
        connected = self._node.local.connected

        def work(tx: Tx) -> bool:
            session = tx.session(sid)
            if session is None or not connected or tx.open_runs(sid):
                return bool(tx.open_runs(sid))
            return any(run.id in connected for run in tx.runs(RunQuery(session.owner, session_id=sid, limit=_BATCH)))

        return await self._node.store.read(work)

    async def _erase_workspace(self, sid: SessionId) -> bool:
        """Whether nothing of it is left."""
        if self._workspaces is None:
            return True
        try:
            await to_thread.run_sync(self._workspaces.erase, sid)
        except OSError:
            log.warning(
                "the workspace of deleted session %s cannot be erased; the server tries again", sid, exc_info=True
            )
            return False
        return True

    async def drop_expired_shares(self) -> None:
        """Erase shares that have ended. No link opens them any more; their contents are orphaned files now."""

        def work(tx: Tx) -> int:
            ended = tx.expired_shares(tx.now, _BATCH)
            tx.drop_shares(ended)
            return len(ended)

        if await self._node.store.read(lambda tx: tx.expired_shares(tx.now, 1)):
            while await self._node.store.transact(work) == _BATCH:
                pass

    async def prune(self) -> None:
        """Erase settled journals that are older than the retention period."""
        keep = self._node.settings.retention
        if keep <= 0:
            return
        while rids := await self._node.store.read(lambda tx: tx.prunable_runs(tx.now - keep, _BATCH)):
            await self._node.journal.purge(rids)
            await self._node.store.transact(lambda tx, rids=rids: run_endings.mark_pruned(tx, rids))  # type: ignore[misc]

    async def expire_trash(self) -> None:
        """Erase what people deleted in working directories long ago."""
        if self._workspaces is not None:
            await to_thread.run_sync(self._workspaces.expire, self._node.clock.now())
