"""Engines for tests, on storage that outlives them.

World, SqliteWorld   storage; a restart is a new engine on the same world
running              an engine on a world; `crash` cuts it off as `kill -9` would
Freehand             an agent that is one function
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, cast

import anyio
from anyio.abc import TaskStatus
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted_agent import Action, ScriptedAgent
from holdfast.core.errors import JournalPrunedError
from holdfast.core.events import Decision, Entry, Event, Failure
from holdfast.core.ids import LOCAL, ApprovalId, FileId, MessageId, NodeId, OwnerId, RunId, SessionId
from holdfast.core.parts import FilePart, Part, TextPart
from holdfast.core.run import Run
from holdfast.core.session import Message, Session
from holdfast.core.transcript import Transcript, fold
from holdfast.engine.engine import Engine
from holdfast.engine.session_memory import SessionMemory
from holdfast.engine.settings import EngineSettings
from holdfast.ports.agent import Agent, AgentLookup, AgentOutput, Turn
from holdfast.ports.clock import Clock
from holdfast.ports.files import Files, WorkspaceEraser
from holdfast.ports.journal import Journal
from holdfast.ports.memory import MemoryProviders
from holdfast.ports.prices import PriceTable
from holdfast.ports.push import PushService
from holdfast.ports.store import Approval, Store, StoredFile
from holdfast.ports.tracing import SpanExporter
from holdfast.ports.wakeups import Wakeups
from holdfast.storage.file_store import FileStore
from holdfast.storage.in_memory import InMemoryJournal, InMemoryStore, InMemoryWakeups
from holdfast.storage.sqlite import open_embedded
from holdfast.testing import CountingIds, FakeClock, FaultyJournal, FaultyStore
from tests.storage_interceptors import GUARD as GUARD
from tests.storage_interceptors import Hold, Tap, Tapped, appends, until

QUICK = EngineSettings(
    drain_time=0.0,
    poll_interval=0.05,
    sweep_interval=3600.0,
    storage_retry_time=0.0,
    cancel_wait=GUARD,
    fence_wait=GUARD,
)
"""Nothing lingers: draining is at once, storage that fails is given up at once, and chores run when a test calls
`tick`. What should happen may take as long as a busy machine needs."""


# ---------------------------------------------------------------------------------------------- storage


class AnyWorld(Protocol):
    clock: FakeClock
    ids: CountingIds
    wakeups: Wakeups

    def open(self, *, cluster: bool = False) -> AbstractAsyncContextManager[tuple[Store, Journal]]:
        """The storage as the next process opens it: claims of the one before are dead. `cluster`: leases lapse
        instead, and several may have it open."""


@dataclass
class World:
    """Storage in this process."""

    clock: FakeClock = field(default_factory=FakeClock)
    ids: CountingIds = field(default_factory=CountingIds)
    wakeups: Wakeups = field(default_factory=InMemoryWakeups)
    incarnations: int = 0

    def __post_init__(self) -> None:
        self.base = InMemoryStore(self.clock, incarnation=None, generation="g1")
        self.journal: Journal = InMemoryJournal()

    def next_store(self) -> Store:
        """The same data, opened by a new process: leases of the one before are dead."""
        self.incarnations += 1
        return self.base.as_incarnation(NodeId(f"node_{self.incarnations}"))

    @asynccontextmanager
    async def open(self, *, cluster: bool = False) -> AsyncIterator[tuple[Store, Journal]]:
        yield (self.base if cluster else self.next_store()), self.journal


@dataclass
class SqliteWorld:
    """The embedded default, in a directory."""

    path: Path
    clock: FakeClock = field(default_factory=FakeClock)
    ids: CountingIds = field(default_factory=CountingIds)
    wakeups: Wakeups = field(default_factory=InMemoryWakeups)

    @asynccontextmanager
    async def open(self, *, cluster: bool = False) -> AsyncIterator[tuple[Store, Journal]]:
        assert not cluster, "a data directory has one process"
        directory, store, journal = open_embedded(self.path, self.clock)
        try:
            yield store, journal
        finally:
            with anyio.CancelScope(shield=True):
                await journal.close()
                await store.close()
                directory.close()


# ---------------------------------------------------------------------------------------------- agents

Script = Sequence[Action]
Play = Callable[[Turn, AgentOutput], Awaitable[str | None]]


def in_turn(*scripts: Script) -> ScriptedAgent:
    """Follows the first script in its first turn, the second in its second, and so on."""
    left = iter(scripts)
    return ScriptedAgent(lambda turn: next(left))


def asked(turn: Turn) -> str:
    """The text of the last user message."""
    return texts(turn.input.messages[-1].parts)


def writes(*events: Event) -> Play:
    """An agent that writes these and is done."""

    async def play(turn: Turn, out: AgentOutput) -> str | None:
        for event in events:
            await out.write(event)
        return "stop"

    return play


@dataclass
class Freehand:
    """An agent that is one function, for what a script cannot express."""

    play: Play
    can_park: bool = True
    can_resume: bool = True
    can_steer: bool = True

    async def run(self, turn: Turn, out: AgentOutput) -> str | None:
        return await self.play(turn, out)


class Writer:
    """Writes summaries and titles; if it is `slow`, when the test opens `go`."""

    def __init__(self, text: str = "in short", *, slow: bool = False) -> None:
        self.text = text
        self.given: list[tuple[list[str], str | None]] = []
        self.called, self.go = anyio.Event(), anyio.Event()
        if not slow:
            self.go.set()

    async def summarize(self, messages: Sequence[Message], earlier: str | None) -> str:
        self.given.append(([texts(message.parts) for message in messages], earlier))
        self.called.set()
        await self.go.wait()
        return self.text

    async def title(self, messages: Sequence[Message]) -> str:
        return await self.summarize(messages, None)


# ---------------------------------------------------------------------------------------------- engines

InSession = SessionId | Run
"""A session, by its id or by one of its runs."""


def _session_of(where: InSession) -> SessionId:
    return where.session_id if isinstance(where, Run) else where


def failure(of: Run | Message) -> Failure:
    assert of.error is not None
    return of.error


@dataclass
class Running:
    engine: Engine
    world: AnyWorld
    agent: ScriptedAgent
    scope: anyio.CancelScope
    store: FaultyStore
    journal: FaultyJournal
    finished: anyio.Event

    # ---- what people do; without a session, in a new one ----

    async def new_session(self, *turns: str) -> SessionId:
        """A session in which these turns have been answered."""
        sid = (await self.engine.sessions.create()).id
        for text in turns:
            await self.turn(sid, text)
        return sid

    async def send(self, where: InSession | None = None, text: str = "hello", **options: Any) -> Run:
        sid = await self.new_session() if where is None else _session_of(where)
        return (await self.engine.runs.submit(sid, [TextPart(text)], **options)).run

    async def send_to_gate(
        self, where: InSession | None = None, text: str = "hello", *, gate: str = "here", **options: Any
    ) -> Run:
        """Send, and wait until the agent stands at the gate."""
        run = await self.send(where, text, **options)
        await self.reached(gate)
        return run

    async def send_and_see(self, seen: int, where: InSession | None = None, text: str = "hello", **options: Any) -> Run:
        """Send, and wait until a client has received event number `seen`."""
        run = await self.send(where, text, **options)
        await self.collect(run.id, until=seen)
        return run

    async def turn(self, where: InSession | None = None, text: str = "hello", **options: Any) -> Run:
        """Send, and wait for the end."""
        return await self.ended((await self.send(where, text, **options)).id)

    async def continue_to_end(self, run: Run, **options: Any) -> Run:
        return await self.ended((await self.engine.runs.continue_run(run.id, **options)).run.id)

    async def decide(self, run: Run, decision: Decision) -> Run:
        """Answer the open question of a run."""
        return await self.engine.runs.decide(run.id, (await self.question(run.id)).id, decision)

    async def add_file(self, name: str = "notes.txt", sha256: str = "5a", owner: OwnerId = LOCAL) -> FilePart:
        """An upload that is done."""
        fid = FileId(self.world.ids.new("fil"))
        file = StoredFile(fid, owner, sha256, name, "text/plain", 5, self.world.clock.now())
        await self.store.inner.transact(lambda tx: tx.put_file(file))
        return file.part()

    async def shown(self, where: InSession) -> list[Message]:
        return [item.message for item in (await self.engine.messages.page(_session_of(where), limit=1000)).items]

    async def said(self, where: InSession) -> list[str]:
        """The text of each message of the shown branch."""
        return [texts(message.parts) for message in await self.shown(where)]

    async def answer(self, where: InSession) -> Message:
        """The last message of the shown branch."""
        return (await self.engine.messages.page(_session_of(where))).items[-1].message

    async def answer_text(self, where: InSession) -> str:
        return texts((await self.answer(where)).parts)

    @property
    def model_input(self) -> tuple[str | None, list[str]]:
        """What the agent was given last: the summary, and the text of each message."""
        shown = self.agent.turns[-1].input
        return shown.summary, [texts(message.parts) for message in shown.messages]

    # ---- waiting ----

    async def collect(self, rid: RunId, after: int = 0, until: int | None = None, within: float = GUARD) -> list[Entry]:
        """What a client receives, up to event `until` or the end."""
        got: list[Entry] = []
        with anyio.fail_after(within):
            async with self.engine.subscriptions.watch(rid, after) as subscription:
                while (entries := await subscription.next()) is not None:
                    got.extend(entries)
                    if until is not None and got[-1].seq >= until:
                        break
        return got

    async def follow(
        self, rid: RunId, got: list[Entry], *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """A client as a task: started when it is connected, done when its stream ends."""
        with anyio.fail_after(GUARD):
            async with self.engine.subscriptions.watch(rid) as subscription:
                task_status.started()
                while (entries := await subscription.next()) is not None:
                    got.extend(entries)

    async def idle(self) -> None:
        """Until this engine executes nothing."""
        await until(lambda: not self.engine.supervisor.executing)

    async def ended(self, rid: RunId) -> Run:
        """Follow the run to its end, and until it is settled."""
        with anyio.fail_after(GUARD):
            async with self.engine.subscriptions.watch(rid) as subscription:
                while await subscription.next() is not None:
                    pass
            while (run := await self.engine.runs.get(rid)).is_open:
                await checkpoint()
            return run

    async def until(self, rid: RunId, *status: str, within: float = GUARD) -> Run:
        """Until the run's row says so. Looks without settling anything, and again whenever the row has changed."""
        generation = self.store.generation
        _, newest = await self.store.inner.read(lambda tx: tx.change_bounds())
        changes = self.engine.subscriptions.watch_changes(f"{generation}-{newest}")
        with anyio.fail_after(within):
            while (run := await self.row(rid)).status not in status:
                await changes.next()
        return run

    async def reached(self, gate: str) -> None:
        await until(self.agent.gate(gate).reached)

    def release(self, gate: str) -> None:
        self.agent.gate(gate).open.set()

    async def tick(self) -> None:
        with anyio.fail_after(GUARD):
            await self.engine.sweeper.tick()

    @property
    def boundaries(self) -> SessionMemory:
        assert self.engine.session_memory is not None
        return self.engine.session_memory

    # ---- what storage holds, whether or not the engine can reach it ----

    async def row(self, rid: RunId) -> Run:
        run = await self.store.inner.read(lambda tx: tx.run(rid))
        assert run is not None
        return run

    async def session_row(self, sid: SessionId) -> Session:
        session = await self.store.inner.read(lambda tx: tx.session(sid))
        assert session is not None
        return session

    async def stored(self, mid: MessageId) -> Message:
        message = await self.store.inner.read(lambda tx: tx.message(mid))
        assert message is not None
        return message

    async def approval(self, aid: ApprovalId) -> Approval:
        approval = await self.store.inner.read(lambda tx: tx.approval(aid))
        assert approval is not None
        return approval

    async def question(self, rid: RunId) -> Approval:
        """The open question of a run."""
        (approval,) = await self.store.inner.read(lambda tx: tx.open_approvals(rid))
        return approval

    async def events(self, rid: RunId) -> list[Entry]:
        return list(await self.journal.inner.read(rid, 0, 1_000_000))

    async def erased(self, rid: RunId) -> bool:
        """Whether the run's journal can no longer be read."""
        try:
            return await self.events(rid) == []
        except JournalPrunedError:
            return True

    async def outcome(self, run: Run) -> tuple[str, str | None]:
        row = await self.row(run.id)
        return row.status, row.reason

    async def types(self, rid: RunId) -> list[str]:
        return [entry.type for entry in await self.events(rid)]

    async def folded(self, rid: RunId) -> Transcript:
        return fold(await self.events(rid))

    # ---- the end ----

    async def crash(self) -> None:
        """Like `kill -9`: nothing that this engine does reaches storage any more."""
        self.store.away = self.journal.away = True
        await self.shut_down()

    async def draining(self) -> None:
        """Ask for an orderly end, and wait until it has begun."""
        self.engine.stop()
        await until(lambda: self.engine.supervisor.draining)

    async def shut_down(self) -> None:
        self.engine.stop()
        await until(self.finished)


@asynccontextmanager
async def running(
    script: Script | ScriptedAgent | Play = (),
    world: AnyWorld | None = None,
    settings: EngineSettings = QUICK,
    agents: dict[str, Agent] | AgentLookup | None = None,
    *,
    cluster: bool = False,
    tap: Tap | None = None,
    files: Files | None = None,
    workspaces: WorkspaceEraser | None = None,
    memory: MemoryProviders | None = None,
    wakeups: Wakeups | None = None,
    clock: Clock | None = None,
    journal_away: bool = False,
    span_exporter: SpanExporter | None = None,
    prices: PriceTable | None = None,
    push: PushService | None = None,
    **changes: Any,
) -> AsyncIterator[Running]:
    """An engine that is stopped in an orderly way at the end, unless it crashed or its scope was cancelled before."""
    world = world or World()
    agent = script if isinstance(script, ScriptedAgent) else ScriptedAgent(() if callable(script) else script)
    if agents is None or isinstance(agents, dict):
        agents = {"chat": Freehand(script) if callable(script) else agent, **(agents or {})}
    async with world.open(cluster=cluster) as (store, journal):
        faulty_store, faulty_journal = FaultyStore(store), FaultyJournal(journal)
        faulty_journal.away = journal_away
        tapped = tap or Tap()
        engine = Engine(
            store=cast(Store, Tapped(faulty_store, "store", tapped)),
            journal=cast(Journal, Tapped(faulty_journal, "journal", tapped)),
            wakeups=wakeups or world.wakeups,
            agents=agents,
            clock=clock or world.clock,
            ids=world.ids,
            settings=replace(settings, **changes),
            files=files or FileStore(Path("no files")),
            workspaces=workspaces,
            memory=memory,
            span_exporter=span_exporter,
            prices=prices,
            push=push,
        )
        finished = anyio.Event()

        async def live(*, task_status: TaskStatus[None]) -> None:
            try:
                await engine.run(task_status=task_status)
            finally:
                finished.set()

        async with anyio.create_task_group() as tg:
            await tg.start(live)
            try:
                yield Running(engine, world, agent, tg.cancel_scope, faulty_store, faulty_journal, finished)
            finally:
                engine.stop()


async def crash_at(world: AnyWorld, script: Script | ScriptedAgent, seen: int, **options: Any) -> Run:
    """A run whose process crashed after a client had received its events up to number `seen`."""
    async with running(script, world) as it:
        run = await it.send_and_see(seen, **options)
        await it.crash()
    return run


async def crash_before_settling(world: AnyWorld, script: Script) -> Run:
    """A run that completed, whose process crashed between the terminal event and the settling."""
    sealed = Hold(appends("run.complete"), when="after")
    async with running(script, world, tap=sealed) as it:
        run = await it.send()
        await sealed.held()
        it.store.away = True
        sealed.go.set()
        await it.crash()
        assert (await it.row(run.id)).status == "running"
    return run


def texts(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextPart))
