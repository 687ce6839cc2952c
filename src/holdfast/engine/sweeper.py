"""What has to be done now and then: end runs that nobody executes, look again for lost output, keep retention."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
from anyio import to_thread

from holdfast.core.ids import RunId, SessionId
from holdfast.engine.book import edits, endings, turns
from holdfast.engine.boundaries import Boundaries
from holdfast.engine.executor import Deps
from holdfast.engine.hub import wait
from holdfast.engine.library import Library
from holdfast.engine.supervisor import Supervisor
from holdfast.ports import Tx, Wake, Workspaces

log = logging.getLogger("holdfast.engine")

_BATCH = 500
ERASE = "erase"
"""The signal that something is to be erased now, and not at the next tick."""


class Sweeper:
    def __init__(
        self,
        deps: Deps,
        supervisor: Supervisor,
        library: Library | None,
        workspaces: Workspaces | None = None,
        boundaries: Boundaries | None = None,
    ) -> None:
        self._deps = deps
        self._supervisor = supervisor
        self._library = library
        self._workspaces = workspaces
        self._boundaries = boundaries
        self._erasing = anyio.Lock()

    @asynccontextmanager
    async def keeping_everything(self) -> AsyncIterator[None]:
        """While this is held no journal and no content of a file is erased: what a copy of the store names can be
        copied after it. Whatever was being erased is erased first; what is due meanwhile, at a later tick."""
        async with self._erasing:
            yield

    async def run(self) -> None:
        armed, pause = self._deps.hub.signals.armed, self._deps.settings.sweep
        signal, due = armed(ERASE), anyio.current_time() + pause
        await self._do(self._erase_hidden)
        while True:
            await wait(signal, max(0.0, due - anyio.current_time()))
            signal = armed(ERASE)  # before looking: what is asked for meanwhile is not missed
            if anyio.current_time() < due:
                await self._do(self.erase)
            else:
                await self.tick()
                due = anyio.current_time() + pause

    async def tick(self) -> None:
        """Every chore once. One that fails is tried at the next tick and holds up no other."""
        await self._do(
            self._deps.settler.hand_back,
            self.recover,
            self.look_again,
            self.expire,
            self.erase,
            self.trim_changes,
        )

    async def start(self) -> None:
        """What must be done before anybody is served: nothing of an earlier life is shown as running."""
        await self._do(self.recover, self.look_again)
        if self._boundaries is not None and self._deps.settings.max_runs > 0:
            await self._do(self._boundaries.start)

    async def finish(self) -> None:
        """What can still be done before the node goes: let others have what it could not end."""
        await self._do(self._deps.settler.hand_back)

    async def _do(self, *chores: Callable[[], Awaitable[None]]) -> None:
        for chore in chores:
            try:
                await chore()
            except Exception:
                log.warning("a chore failed; it is tried again", exc_info=True)

    async def recover(self) -> None:
        """X2, X3: settle every run that nobody executes."""
        settler, last = self._deps.settler, None
        while True:
            async with settler.claims:
                now, runs = await self._deps.store.read(
                    lambda tx, last=last: (tx.now, tx.all_open_runs(_BATCH, last))  # type: ignore[misc]
                )
                stale = settler.find_stale(runs, now)
            for run in runs:
                if run.intent is not None:  # whoever asked may have failed to reach us
                    self._supervisor.heed(run)
            await settler.end_stale(stale)
            if len(runs) < _BATCH:
                return
            last = runs[-1].id

    async def look_again(self) -> None:
        now, runs = await self._deps.store.read(lambda tx: (tx.now, tx.pending_runs(_BATCH)))
        for run in runs:
            await self._deps.settler.look(run, now)

    async def erase(self) -> None:
        try:
            self._erasing.acquire_nowait()
        except anyio.WouldBlock:
            return
        try:
            await self._do(self.purge, self.prune, self.drop_orphans)
        finally:
            self._erasing.release()

    async def _erase_hidden(self) -> None:
        """Sessions that were deleted in an earlier life, or with the runs of it that were ended just now."""
        if await self._deps.store.read(lambda tx: tx.deleted_sessions(1)):
            await self.erase()

    async def expire(self) -> None:
        """A question that nobody answers is answered with deny."""
        limit = self._deps.settings.answer_within
        if limit <= 0:
            return
        note = f"Nobody answered within {_span(limit)}, so it was denied."
        while runs := await self._deps.store.transact(lambda tx: turns.expire(tx, tx.now - limit, note, _BATCH)):
            await self._deps.hub.announce(*(Wake("control", run.id) for run in runs), Wake("queue"), Wake("changed"))

    async def purge(self) -> None:
        """Erase what was deleted or cleared: first the rows, which leave a note, then the journals the note names. A
        session's directory goes before its rows, which are what says that it is still there."""
        store, journal = self._deps.store, self._deps.journal
        keeping = self._boundaries is not None
        for sid in await store.read(lambda tx: tx.deleted_sessions(_BATCH)):
            if await self._in_use(sid) or not await self._erase_workspace(sid):
                continue
            await store.transact(lambda tx, sid=sid: edits.purge(tx, sid, keeping))  # type: ignore[misc]
        while rids := await store.read(lambda tx: tx.purges(_BATCH)):
            await journal.purge(rids)
            await store.transact(lambda tx, rids=rids: tx.drop_purges(rids))  # type: ignore[misc]

    async def _in_use(self, sid: SessionId) -> bool:
        """A deleted session gets no new runs, but the last one may still be ending, or its client still reading."""

        def runs(tx: Tx) -> list[RunId]:
            session = tx.session(sid)
            return [] if session is None else [run.id for run in tx.runs(session.owner, sid=sid, limit=_BATCH)]

        if await self._deps.store.read(lambda tx: bool(tx.open_runs(sid))):
            return True
        connections = self._deps.settler.connections
        return bool(connections) and not connections.isdisjoint(await self._deps.store.read(runs))

    async def _erase_workspace(self, sid: SessionId) -> bool:
        """Whether nothing of it is left."""
        if self._workspaces is None:
            return True
        try:
            await to_thread.run_sync(self._workspaces.erase, sid)
        except OSError:
            log.warning("the workspace of deleted session %s cannot be erased; tried again", sid, exc_info=True)
            return False
        return True

    async def prune(self) -> None:
        settings, store = self._deps.settings, self._deps.store
        if settings.retention <= 0:
            return
        while rids := await store.read(lambda tx: tx.prunable_runs(tx.now - settings.retention, _BATCH)):
            await self._deps.journal.purge(rids)
            await store.transact(lambda tx, rids=rids: endings.mark_pruned(tx, rids))  # type: ignore[misc]

    async def drop_orphans(self) -> None:
        if self._library is not None:
            await self._library.drop_orphans()

    async def trim_changes(self) -> None:
        keep = self._deps.settings.keep_changes
        await self._deps.store.transact(lambda tx: tx.trim_changes(keep))
        await self._deps.hub.announce(Wake("changed"))


def _span(seconds: float) -> str:
    """`7 days`, `2 hours`: as a person says it."""
    for unit, length in (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0)):
        if seconds >= length:
            count = round(seconds / length)
            return f"{count} {unit}" + ("s" if count != 1 else "")
    return "a moment"
