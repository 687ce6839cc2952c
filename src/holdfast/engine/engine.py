"""Puts the engine together. `run` recovers, then claims and executes runs until told to stop, then drains. Order of
start and stop of the process around it: `app.lifecycle`."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup, TaskStatus

from holdfast.core.ids import NodeId
from holdfast.core.lease import NodeIdentity
from holdfast.engine.attachments import Attachments
from holdfast.engine.client_connections import AttachedConnections
from holdfast.engine.drafts import Drafts
from holdfast.engine.earlier_usage import EarlierUsage
from holdfast.engine.executor import ExecutorDeps
from holdfast.engine.export_import import ExportImport
from holdfast.engine.fact_store import MemoryFacts
from holdfast.engine.group_commit import GroupCommitWriter
from holdfast.engine.local_runs import LocalRuns
from holdfast.engine.messages import Messages
from holdfast.engine.node_context import NodeContext
from holdfast.engine.notifications import Notifications
from holdfast.engine.personas import Personas
from holdfast.engine.preferences import Preferences
from holdfast.engine.projects import ProjectMoves, Projects
from holdfast.engine.push_sender import PushSender
from holdfast.engine.readiness import Readiness
from holdfast.engine.recovery import RunRecovery
from holdfast.engine.retention import Retention
from holdfast.engine.run_feed import RunFeed
from holdfast.engine.run_tracing import RunTracing
from holdfast.engine.runs import Runs
from holdfast.engine.saved_prompts import SavedPrompts
from holdfast.engine.session_memory import SessionMemory
from holdfast.engine.sessions import Sessions
from holdfast.engine.settings import EngineSettings
from holdfast.engine.settler import Settler
from holdfast.engine.settling_reader import SettlingReader
from holdfast.engine.shares import Shares
from holdfast.engine.signals import WakeupHub
from holdfast.engine.subscriptions import Subscriptions
from holdfast.engine.supervisor import Supervisor
from holdfast.engine.sweeper import Sweeper
from holdfast.engine.titles import Titles
from holdfast.engine.usage import UsageReports
from holdfast.ports.agent import AgentLookup
from holdfast.ports.clock import Clock, Ids
from holdfast.ports.files import Files, WorkspaceEraser
from holdfast.ports.journal import Journal
from holdfast.ports.memory import MemoryProviders
from holdfast.ports.prices import PriceTable
from holdfast.ports.push import PushService
from holdfast.ports.store import Store
from holdfast.ports.tracing import SpanExporter
from holdfast.ports.wakeups import Wakeups

T = TypeVar("T")


class Engine:
    """One node. The caller owns the ports and closes them after `run` has returned."""

    def __init__(
        self,
        *,
        store: Store,
        journal: Journal,
        wakeups: Wakeups,
        agents: AgentLookup,
        clock: Clock,
        ids: Ids,
        files: Files,
        settings: EngineSettings | None = None,
        workspaces: WorkspaceEraser | None = None,
        memory: MemoryProviders | None = None,
        node: NodeId | None = None,
        span_exporter: SpanExporter | None = None,
        prices: PriceTable | None = None,
        push: PushService | None = None,
    ) -> None:
        """`node`: its name in a cluster, the same after a restart, so that it finds its own runs at once.
        `span_exporter`: where the traces of runs go; None: runs are not traced. `prices`: of models for which the
        owner has set none. `push`: sends notifications; None: they wait for a node that can."""
        settings = settings or EngineSettings()
        alone = store.incarnation is not None
        self.node = store.incarnation or node or NodeId(ids.new("node"))
        self.clock, self.ids = clock, ids
        self.local_runs = LocalRuns(self.node)
        identity = NodeIdentity(self.node, None if alone else settings.lease_time)
        hub = WakeupHub(self.node, wakeups)
        tracing = None if span_exporter is None else RunTracing(journal, span_exporter)
        self._context = context = NodeContext(
            store,
            journal,
            agents,
            clock,
            ids,
            settings,
            identity,
            hub,
            self.local_runs,
            EarlierUsage(store),
            tracing=tracing,
            prices=prices,
        )
        self.metrics = context.metrics
        self.feed = RunFeed(context)
        self.writer = GroupCommitWriter(context, self.feed, None if alone else wakeups)
        self.session_memory = None if memory is None else SessionMemory(context, memory)
        """None: no memory, and no ledger."""
        policy = None if self.session_memory is None else self.session_memory.policy
        self.settler = Settler(context, self.writer, policy)
        recovery = RunRecovery(context, self.settler)
        self.settler.end_runs = recovery.resolve_orphans
        deps = ExecutorDeps(context, self.writer, self.feed, self.settler, recovery, self.session_memory)
        self.supervisor = Supervisor(deps)
        self.attachments = Attachments(context, files)
        self.retention = Retention(context, self.attachments, workspaces, memory is not None)
        self.readiness = Readiness(context, lambda: self.supervisor.draining)
        moves = ProjectMoves(context, self.supervisor)
        self.sweeper = Sweeper(
            context, recovery, self.supervisor, self.retention, self.readiness, moves, self.session_memory
        )
        self._works = settings.max_runs > 0  # A short-lived command executes nothing and commits no memory
        self._stop = anyio.Event()
        self._writing = anyio.CancelScope(shield=True)
        # What servers and commands call, by subject.
        reader = SettlingReader(context, self.feed, recovery)
        self.sessions = Sessions(context, reader, self.supervisor, self.readiness)
        self.projects = Projects(context, moves)
        self.messages = Messages(context, self.settler, reader)
        self.runs = Runs(context, reader, self.feed, self.supervisor, self.readiness, recovery)
        self.subscriptions = Subscriptions(context, self.feed, reader)
        self.connections = AttachedConnections(context, self.feed, self.supervisor)
        self.titles = Titles(context, self.settler)
        self._open_library(context)
        self.usage = UsageReports(context)
        self.notifications = Notifications(context, push)
        self._push_sender = None if push is None else PushSender(context, push)
        self.export_import = ExportImport(self.sessions, self.messages, self.attachments, self.projects)
        self.shares = Shares(context, reader, self.messages, self.attachments, self.export_import)

    def _open_library(self, context: NodeContext) -> None:
        """What an owner has besides chats."""
        self.memory_facts = MemoryFacts(context.store, context.ids)
        self.preferences = Preferences(context.store)
        self.drafts = Drafts(context)
        self.saved_prompts = SavedPrompts(context)
        self.personas = Personas(context)

    async def ping(self) -> None:
        """Raises StorageError unless both the store and the journal answer."""
        await self._context.store.read(lambda tx: tx.now)
        await self._context.journal.heads([])

    async def retry_storage(self, work: Callable[[], Awaitable[T]]) -> T:
        """`NodeContext.retry_storage`, for services that a run needs."""
        return await self._context.retry_storage(work)

    def stop(self) -> None:
        """Ask for an orderly shutdown: `run` drains and returns."""
        self._stop.set()

    async def wait_for_stop(self) -> None:
        """Returns when the shutdown begins."""
        await self._stop.wait()

    def stop_now(self) -> None:
        """The same without waiting: open runs are sealed as interrupted or handed over."""
        self.supervisor.stop_now()
        if self.session_memory is not None:
            self.session_memory.stop_now()
        self._stop.set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Reports started once every run of an earlier process is settled, requeued or marked pending."""
        async with anyio.create_task_group() as base:
            base.start_soon(self._write)
            base.start_soon(self._context.hub.listen)
            try:
                await self.sweeper.start()
                async with anyio.create_task_group() as runs, anyio.create_task_group() as loops:
                    self._start_loops(loops, runs)
                    task_status.started()
                    await self._stop.wait()
                    await self.supervisor.drain()
                    await self.sweeper.finish()
                    if self.session_memory is not None and self._works:
                        await self.session_memory.finish()
                    self.feed.stop()
                    loops.cancel_scope.cancel()
                if not self._stop.is_set():
                    # A task raised a cancellation that nobody requested, and its group ended. A server that accepts
                    # runs and executes none would be worse than one that exits and is restarted.
                    raise RuntimeError("The engine ended without being told to stop.")
                await self.settler.archive_rest()
                if self._context.tracing is not None:
                    await self._context.tracing.finish()
            finally:
                # A reader that met an orphaned run may be in the middle of ending it.
                with anyio.move_on_after(self._context.settings.final_save, shield=True):
                    await self.local_runs.wait_until_none_ending()
                self.local_runs.close()
                self._writing.cancel()
            base.cancel_scope.cancel()

    async def _write(self) -> None:
        """Shielded: cancelling the engine cancels its runs, which still have to write their endings."""
        with self._writing:
            await self.writer.run()

    def _start_loops(self, loops: TaskGroup, runs: TaskGroup) -> None:
        loops.start_soon(self.supervisor.claim, runs)
        for loop in (self.supervisor.control, self.supervisor.limits, self.supervisor.heartbeat):
            loops.start_soon(loop)
        loops.start_soon(self.sweeper.run)
        loops.start_soon(self.settler.archive)
        if self._context.tracing is not None:
            loops.start_soon(self._context.tracing.run)
        if self.session_memory is not None and self._works:
            loops.start_soon(self.session_memory.run)
        if self._push_sender is not None and self._works:
            loops.start_soon(self._push_sender.run)
