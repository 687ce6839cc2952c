"""The engine put together. `run` is its life: recover, then claim and execute until told to stop, then drain."""

from functools import partial

import anyio
from anyio.abc import TaskGroup, TaskStatus

from holdfast.core.ids import NodeId, RunId
from holdfast.engine.book.rows import Me
from holdfast.engine.boundaries import Boundaries
from holdfast.engine.executor import Deps
from holdfast.engine.facts import Facts
from holdfast.engine.feed import Feed
from holdfast.engine.hub import Hub
from holdfast.engine.library import Library
from holdfast.engine.preferences import Preferences
from holdfast.engine.recall import Recall
from holdfast.engine.service import Service
from holdfast.engine.settings import Settings
from holdfast.engine.settler import Settler
from holdfast.engine.supervisor import Supervisor
from holdfast.engine.sweeper import Sweeper
from holdfast.engine.transfer import Transfer
from holdfast.engine.writer import Writer
from holdfast.ports import Agents, Clock, Files, Ids, Journal, MemoryProviders, Store, Wakeups, Workspaces


class Engine:
    """One node. It owns none of its ports: whoever made them closes them, after `run` has returned."""

    def __init__(
        self,
        *,
        store: Store,
        journal: Journal,
        wakeups: Wakeups,
        agents: Agents,
        clock: Clock,
        ids: Ids,
        settings: Settings | None = None,
        files: Files | None = None,
        workspaces: Workspaces | None = None,
        memory: MemoryProviders | None = None,
        node: NodeId | None = None,
    ) -> None:
        """`node`: this one's name among others, the same after a restart, so that it finds at once what it left."""
        settings = settings or Settings()
        alone = store.incarnation is not None
        node = store.incarnation or node or NodeId(ids.new("node"))
        me = Me(node, None if alone else settings.lease_time)
        self.node = node
        self._hub = Hub(node, wakeups)
        self.feed = Feed(journal, self._hub.signals, settings, partial(_over, store))
        self.writer = Writer(journal, self.feed, settings, node, None if alone else wakeups, clock)
        self.boundaries = None if memory is None else Boundaries(store, self._hub, clock, me, settings, memory)
        """None: nothing is remembered, and no ledger kept."""
        self.facts = Facts(store, ids)
        keeping = None if self.boundaries is None else self.boundaries.keeping
        self.settler = Settler(store, journal, self.writer, self._hub, agents, me, settings, keeping)
        parts = (store, journal, self.writer, self.feed, self._hub, self.settler, agents, clock, ids, settings)
        recall = None
        if memory is not None and self.boundaries is not None:
            recall = Recall(store, memory, self.boundaries, settings)
        deps = Deps(*parts, recall)
        self.supervisor = Supervisor(deps, me)
        self.library = None if files is None else Library(store, files, ids, settings)
        self.sweeper = Sweeper(deps, self.supervisor, self.library, workspaces, self.boundaries)
        self.service = Service(deps, self.supervisor, me)
        self.preferences = Preferences(store)
        self.transfer = None if self.library is None else Transfer(self.service, self.library)
        self._works = settings.max_runs > 0
        """A node that executes nothing remembers nothing by itself either: it is gone in a moment."""
        self._stop = anyio.Event()
        self._writing = anyio.CancelScope(shield=True)

    def stop(self) -> None:
        """Ask for an orderly end: `run` drains and returns."""
        self._stop.set()

    def hurry(self) -> None:
        """Ask for the same at once: runs are sealed as interrupted, and go on when they are continued."""
        self.supervisor.hurry()
        if self.boundaries is not None:
            self.boundaries.hurry()
        self._stop.set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Reports started once every run of an earlier life is settled, queued again or shown as pending. The writer
        and the hub outlive the runs, because the last thing a run does is to write."""
        async with anyio.create_task_group() as base:
            base.start_soon(self._write)
            base.start_soon(self._hub.listen)
            try:
                await self.sweeper.start()
                async with anyio.create_task_group() as runs, anyio.create_task_group() as loops:
                    self._start_loops(loops, runs)
                    task_status.started()
                    await self._stop.wait()
                    await self.supervisor.drain()
                    await self.sweeper.finish()
                    if self.boundaries is not None and self._works:
                        await self.boundaries.finish()
                    self.feed.stop()
                    loops.cancel_scope.cancel()
                if not self._stop.is_set():
                    # A task raised a cancel that nobody had asked for, and its group took that for its own end. A
                    # server that accepts and executes nothing would be worse than one that falls and is started again.
                    raise RuntimeError("The engine ended without having been told to.")
                await self.settler.archive_rest()
            finally:
                await self.settler.at_rest()
                self._writing.cancel()
            base.cancel_scope.cancel()

    async def _write(self) -> None:
        """Shielded: whoever cancels the engine cancels its runs, and these have their endings to write."""
        with self._writing:
            await self.writer.run()

    def _start_loops(self, loops: TaskGroup, runs: TaskGroup) -> None:
        loops.start_soon(self.supervisor.claim, runs)
        loops.start_soon(self.supervisor.control)
        loops.start_soon(self.supervisor.limits)
        loops.start_soon(self.supervisor.heartbeat)
        loops.start_soon(self.sweeper.run)
        loops.start_soon(self.settler.archive)
        if self.boundaries is not None and self._works:
            loops.start_soon(self.boundaries.run)


async def _over(store: Store, rid: RunId) -> bool:
    run = await store.read(lambda tx: tx.run(rid))
    return run is None or not (run.is_open or run.is_pending)
