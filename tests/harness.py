"""Engines for tests, on storage that outlives them, and what tests say to them.

World, SqliteWorld   storage; a restart is a new engine on the same world
running              an engine on a world; `crash` takes it away as `kill -9` would
Tap, Hold, Fuse      stand between an engine and its storage: wait, look, or die at a chosen call
Freehand             an agent that is one function
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, Protocol, cast

import anyio
from anyio.abc import TaskStatus
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted import Action, AgentTable, ScriptedAgent
from holdfast.core.errors import JournalPruned, StorageUnavailable
from holdfast.core.events import Entry
from holdfast.core.ids import LOCAL, ApprovalId, FileId, MessageId, NodeId, OwnerId, RunId, SessionId
from holdfast.core.parts import File, Part, Text
from holdfast.core.run import Run
from holdfast.core.session import Message, Session
from holdfast.core.transcript import Transcript, fold
from holdfast.engine.boundaries import Boundaries
from holdfast.engine.engine import Engine
from holdfast.engine.service import Service
from holdfast.engine.settings import Settings
from holdfast.ports import (
    Agent,
    Agents,
    Append,
    Approval,
    Clock,
    Files,
    Journal,
    MemoryProviders,
    Out,
    Store,
    StoredFile,
    Turn,
    Wakeups,
    Workspaces,
)
from holdfast.storage.memory import MemoryJournal, MemoryStore, MemoryWakeups
from holdfast.storage.sqlite import open_embedded
from holdfast.testing import CountingIds, FakeClock, FaultyJournal, FaultyStore

GUARD = 20.0
"""Seconds after which a test that waits for something has failed."""

QUICK = Settings(drain=0.0, poll=0.05, sweep=3600.0, storage_patience=0.0)
"""Nothing lingers: draining is at once, storage that fails is given up at once, and chores run when a test calls
`tick`."""


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
    wakeups: Wakeups = field(default_factory=MemoryWakeups)
    incarnations: int = 0

    def __post_init__(self) -> None:
        self.base = MemoryStore(self.clock, incarnation=None, generation="g1")
        self.journal: Journal = MemoryJournal()

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
    wakeups: Wakeups = field(default_factory=MemoryWakeups)

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


# ---------------------------------------------------------------------------------------------- taps


@dataclass
class Tap:
    """Sees every call of an engine to its storage, named like `store.transact` or `journal.append`."""

    seen: list[str] = field(default_factory=list, kw_only=True)

    async def before(self, call: str, args: Sequence[Any]) -> None: ...
    async def after(self, call: str, args: Sequence[Any]) -> None: ...


@dataclass
class Hold(Tap):
    """Stops the first call (`every`: all) that `match` picks while it is armed, before or after it is done, until the
    test lets go."""

    match: Callable[[str, Sequence[Any]], bool]
    when: Literal["before", "after"] = "before"
    every: bool = False
    armed: bool = True
    reached: anyio.Event = field(default_factory=anyio.Event)
    go: anyio.Event = field(default_factory=anyio.Event)

    async def before(self, call: str, args: Sequence[Any]) -> None:
        await self._hold("before", call, args)

    async def after(self, call: str, args: Sequence[Any]) -> None:
        await self._hold("after", call, args)

    async def _hold(self, when: str, call: str, args: Sequence[Any]) -> None:
        if when != self.when or not self.armed or (self.reached.is_set() and not self.every):
            return
        if self.match(call, args):
            self.reached.set()
            await self.go.wait()


@dataclass
class Both(Tap):
    """Two at once."""

    first: Tap
    second: Tap

    async def before(self, call: str, args: Sequence[Any]) -> None:
        await self.first.before(call, args)
        await self.second.before(call, args)

    async def after(self, call: str, args: Sequence[Any]) -> None:
        await self.first.after(call, args)
        await self.second.after(call, args)


def appends(*types: str) -> Callable[[str, Sequence[Any]], bool]:
    """Picks the journal appends that hold an event of one of these types."""

    def match(call: str, args: Sequence[Any]) -> bool:
        if call != "journal.append":
            return False
        batch: Sequence[Append] = args[0]
        return any(entry.type in types for append in batch for entry in append.entries)

    return match


@dataclass
class Fuse(Tap):
    """Storage that is dead to its engine from call number `at` on. `done`: that call still happens, and nobody hears
    of it."""

    at: int
    done: bool
    calls: int = 0
    blown: anyio.Event = field(default_factory=anyio.Event)

    async def before(self, call: str, args: Sequence[Any]) -> None:
        self.calls += 1
        if self.calls > self.at or (self.calls == self.at and not self.done):
            await self._blow(call)

    async def after(self, call: str, args: Sequence[Any]) -> None:
        if self.calls >= self.at:
            await self._blow(call)

    async def _blow(self, call: str) -> None:
        self.blown.set()
        await checkpoint()
        raise StorageUnavailable(f"{call}: the process is gone")


_CALLS: Final = frozenset({"transact", "read", "append", "fence", "heads", "settled", "purge", "reopen"})


class _Tapped:
    def __init__(self, inner: object, name: str, tap: Tap) -> None:
        self._inner = inner
        self._name = name
        self._tap = tap

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(self._inner, attribute)
        return self._tapped(attribute, found) if attribute in _CALLS else found

    def _tapped(self, attribute: str, do: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        async def call(*args: Any, **options: Any) -> object:
            name = f"{self._name}.{attribute}"
            self._tap.seen.append(name)
            await self._tap.before(name, args)
            result = await do(*args, **options)
            await self._tap.after(name, args)
            return result

        return call


# ---------------------------------------------------------------------------------------------- agents

Script = Sequence[Action]


def in_turn(*scripts: Script) -> ScriptedAgent:
    """Follows the first script in its first turn, the second in its second, and so on."""
    left = iter(scripts)
    return ScriptedAgent(lambda turn: next(left))


def asked(turn: Turn) -> str:
    """What the person said last."""
    return texts(turn.input.messages[-1].parts)


@dataclass
class Freehand:
    """An agent that is one function, for what a script cannot say."""

    play: Callable[[Turn, Out], Awaitable[str | None]]
    can_continue: bool = True

    async def run(self, turn: Turn, out: Out) -> str | None:
        return await self.play(turn, out)


# ---------------------------------------------------------------------------------------------- engines


@dataclass
class Running:
    engine: Engine
    world: AnyWorld
    agent: ScriptedAgent
    scope: anyio.CancelScope
    store: FaultyStore
    journal: FaultyJournal
    finished: anyio.Event

    @property
    def service(self) -> Service:
        return self.engine.service

    # ---- what people do ----

    async def new_session(self) -> SessionId:
        return (await self.service.create_session()).id

    async def send(self, sid: SessionId, text: str = "hello", **options: Any) -> Run:
        return (await self.service.submit(sid, [Text(text)], **options)).run

    async def turn(self, sid: SessionId, text: str = "hello", **options: Any) -> Run:
        """Send, and wait for the end."""
        return await self.ended((await self.send(sid, text, **options)).id)

    async def add_file(self, name: str = "notes.txt", sha256: str = "5a", owner: OwnerId = LOCAL) -> File:
        """An upload that is done."""
        fid = FileId(self.world.ids.new("fil"))
        file = StoredFile(fid, owner, sha256, name, "text/plain", 5, self.world.clock.now())
        await self.store.inner.transact(lambda tx: tx.put_file(file))
        return file.part()

    async def answer(self, sid: SessionId) -> Message:
        """The last message of the shown branch."""
        return (await self.service.messages(sid)).items[-1].message

    async def shown(self, sid: SessionId) -> list[Message]:
        return [item.message for item in (await self.service.messages(sid, limit=1000)).items]

    # ---- waiting ----

    async def ended(self, rid: RunId) -> Run:
        """Follow the run to its end, and until it is settled."""
        with anyio.fail_after(GUARD):
            async with self.service.watch(rid) as subscription:
                while await subscription.next() is not None:
                    pass
            while (run := await self.service.run(rid)).is_open:
                await checkpoint()
            return run

    async def until(self, rid: RunId, *status: str, within: float = GUARD) -> Run:
        """Until the run's row says so. Looks without settling anything, and again whenever the row has changed."""
        generation = self.store.generation
        _, newest = await self.store.inner.read(lambda tx: tx.change_bounds())
        changes = self.service.watch_changes(f"{generation}-{newest}")
        with anyio.fail_after(within):
            while (run := await self.row(rid)).status not in status:
                await changes.next()
        return run

    async def reached(self, gate: str) -> None:
        with anyio.fail_after(GUARD):
            await self.agent.gate(gate).reached.wait()

    def release(self, gate: str) -> None:
        self.agent.gate(gate).open.set()

    async def tick(self) -> None:
        with anyio.fail_after(GUARD):
            await self.engine.sweeper.tick()

    @property
    def boundaries(self) -> Boundaries:
        assert self.engine.boundaries is not None
        return self.engine.boundaries

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
        """Whether nothing can be read of the run's journal any more."""
        try:
            return await self.events(rid) == []
        except JournalPruned:
            return True

    async def types(self, rid: RunId) -> list[str]:
        return [entry.type for entry in await self.events(rid)]

    async def folded(self, rid: RunId) -> Transcript:
        return fold(await self.events(rid))

    # ---- the end ----

    async def crash(self) -> None:
        """As `kill -9` looks to the next process: storage hears nothing more of this engine."""
        self.store.away = self.journal.away = True
        self.engine.stop()
        with anyio.fail_after(GUARD):
            await self.finished.wait()

    async def draining(self) -> None:
        """Ask for an orderly end, and wait until it has begun."""
        self.engine.stop()
        with anyio.fail_after(GUARD):
            while not self.engine.supervisor.draining:
                await checkpoint()

    async def shut_down(self) -> None:
        self.engine.stop()
        with anyio.fail_after(GUARD):
            await self.finished.wait()


async def collect(
    service: Service, rid: RunId, after: int = 0, until: int | None = None, within: float = GUARD
) -> list[Entry]:
    """What a client receives, up to event `until` or the end."""
    got: list[Entry] = []
    with anyio.fail_after(within):
        async with service.watch(rid, after) as subscription:
            while (entries := await subscription.next()) is not None:
                got.extend(entries)
                if until is not None and got[-1].seq >= until:
                    break
    return got


async def follow(
    service: Service, rid: RunId, got: list[Entry], *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """A client as a task: started when it is connected, done when its stream ends."""
    with anyio.fail_after(GUARD):
        async with service.watch(rid) as subscription:
            task_status.started()
            while (entries := await subscription.next()) is not None:
                got.extend(entries)


@asynccontextmanager
async def running(
    script: Script | ScriptedAgent = (),
    world: AnyWorld | None = None,
    settings: Settings = QUICK,
    agents: dict[str, Agent] | Agents | None = None,
    *,
    cluster: bool = False,
    tap: Tap | None = None,
    files: Files | None = None,
    workspaces: Workspaces | None = None,
    memory: MemoryProviders | None = None,
    wakeups: Wakeups | None = None,
    clock: Clock | None = None,
    journal_away: bool = False,
    **changes: Any,
) -> AsyncIterator[Running]:
    """An engine that is stopped in an orderly way at the end, unless it crashed or its scope was cancelled before."""
    world = world or World()
    agent = script if isinstance(script, ScriptedAgent) else ScriptedAgent(script)
    if agents is None or isinstance(agents, dict):
        agents = AgentTable({"chat": agent, **(agents or {})})
    async with world.open(cluster=cluster) as (store, journal):
        faulty_store, faulty_journal = FaultyStore(store), FaultyJournal(journal)
        faulty_journal.away = journal_away
        tapped = tap or Tap()
        engine = Engine(
            store=cast(Store, _Tapped(faulty_store, "store", tapped)),
            journal=cast(Journal, _Tapped(faulty_journal, "journal", tapped)),
            wakeups=wakeups or world.wakeups,
            agents=agents,
            clock=clock or world.clock,
            ids=world.ids,
            settings=replace(settings, **changes),
            files=files,
            workspaces=workspaces,
            memory=memory,
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
    """A run whose process is gone; a client had been shown its events up to number `seen`."""
    async with running(script, world) as it:
        run = await it.send(await it.new_session(), **options)
        await collect(it.service, run.id, until=seen)
        await it.crash()
    return run


def texts(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))
