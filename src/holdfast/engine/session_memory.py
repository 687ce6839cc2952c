"""The memory of sessions: recalled before a run, bounded in time and length, and committed at boundaries, one commit at
a time per session. Providers are called outside every transaction; one that fails never fails the run. How long a run
waits for recall, and a stopping node for commits: `recall_wait` and `flush_time` in `engine.settings`; whose memories
are recalled: `core.memory_scope`; which provider a session has: `engine.transactions.memory.handle_of`.

A boundary is an explicit commit, the start of a session that follows it, clear, delete, idleness, eviction or shutdown;
`core.memory_ledger` decides what is due. Which turns are dirty is recorded in the store's ledger alone; this process
only knows which sessions are warm (their provider may hold resources for them) and which it is committing.
"""

import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, assert_never

import anyio

from holdfast.core.errors import InvalidInputError, StorageError, StorageUnavailableError
from holdfast.core.events import MemoryRecalled
from holdfast.core.ids import LOCAL, MessageId, OwnerId, SessionId
from holdfast.core.lease import is_live
from holdfast.core.memory_ledger import OFF, ON, Ledger
from holdfast.core.memory_scope import owner_of, project_of, provider_of, recalled_owners
from holdfast.core.parts import Json, plain_text
from holdfast.core.run import Run
from holdfast.core.session import Message, Session
from holdfast.engine.node_context import NodeContext
from holdfast.engine.signals import wait_for
from holdfast.engine.transactions import memory
from holdfast.engine.transactions.memory import CommitOutcome, MemoryPolicy
from holdfast.ports.agent import Turn
from holdfast.ports.memory import MemoryProvider, MemoryProviders
from holdfast.ports.store import Tx
from holdfast.ports.wakeups import Wake

log = logging.getLogger("holdfast.engine")

BOUNDARY: Final = "memory"  # The signal that a boundary was reached
_CONCURRENT: Final = 4
_BATCH: Final = 200
_READING_LEDGER: Final = "reading the memory ledger"
_COMMITTING_MEMORY: Final = "committing to memory"
_MAX_AT_START: Final = 10_000
_PROVIDER_TIMEOUT: Final = 5.0
_CHARACTERS: Final = 4  # Per token, roughly
_QUERY: Final = 4000


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """The state of a session's memory."""

    dirty_turns: int = 0
    committing: bool = False
    committed_turns: int = 0
    last_error: str | None = None
    provider: str | None = None


class SessionMemory:
    def __init__(self, node: NodeContext, providers: MemoryProviders) -> None:
        self._node = node
        self._providers = providers
        self.policy = MemoryPolicy(providers.default, node.settings.memory, node.settings.commit_limit)
        self.warm: OrderedDict[SessionId, tuple[str, float]] = OrderedDict()
        """Sessions in use, the least recently used first, with their provider and when they were used."""
        self._locks: dict[SessionId, tuple[anyio.Lock, int]] = {}  # A lock per session being committed, and its users
        self._finish_scope = anyio.CancelScope()

    # ---- recall ----

    def handle_of(self, tx: Tx, session: Session, run: Run) -> str | None:
        """The provider to recall from; None if memory is off for the run."""
        handle = memory.handle_of(tx, session, run, self.policy)
        return None if handle == OFF else handle

    async def recall(self, turn: Turn, handle: str) -> MemoryRecalled | None:
        """What to show the model, or None. A provider that fails or is slow yields a note instead."""
        try:
            self.touch(turn.session.id, handle)
            provider = self._providers.get(provider_of(handle))
            if provider is None:
                return _note(f"There is no memory provider named {handle!r}.")
            with anyio.fail_after(self._node.settings.recall_wait):
                asked = question(turn.input.messages, turn.run.user_message_id)[:_QUERY]
                owners = recalled_owners(turn.run)
                found = [item for who in owners for item in await provider.recall(who, turn.session.id, asked)]
            items = fitting(found, self._node.settings.recall_tokens)
            return MemoryRecalled(items) if items else None
        except TimeoutError:
            return _note(f"The memory did not answer within {self._node.settings.recall_wait:g} seconds.")
        except Exception as error:
            log.info("memory recall failed for run %s", turn.run.id, exc_info=True, extra=turn.run.log_extra)
            return _note(f"Memory recall failed: {str(error) or type(error).__name__}"[:300])

    def touch(self, sid: SessionId, handle: str) -> None:
        """The provider may hold resources for this session until it is evicted."""
        self.warm[sid] = handle, self._node.clock.now()
        self.warm.move_to_end(sid)
        if len(self.warm) > self._node.settings.warm_sessions:
            self._node.hub.signals.fire(BOUNDARY)

    # ---- for callers ----

    async def status(self, sid: SessionId, owner: OwnerId = LOCAL) -> MemoryStatus:
        """An unknown session has nothing dirty."""
        locked = sid in self._locks  # before reading: a commit that ends meanwhile was under way then
        now, ledger = await self._node.store.read(lambda tx: (tx.now, tx.ledger(sid)))
        if ledger is None or ledger.owner != owner:
            return MemoryStatus()
        handle = ledger.handle if ledger.commit is None else ledger.commit.handle
        lease = None if ledger.commit is None else ledger.commit.lease
        ours = lease is not None and lease.holder == self._node.identity.node
        committing = locked if ours else is_live(lease, self._node.identity.incarnation, now)
        provider = None if handle is None else provider_of(handle)
        return MemoryStatus(ledger.dirty, committing, ledger.committed, ledger.last_error, provider)

    def knows(self, name: str) -> bool:
        return name in (OFF, ON) or name in self._providers.names

    async def health(self) -> list[tuple[str, bool, str | None]]:
        """Every provider: its name, whether it is the default, and its problem, if any."""
        return [(name, name == self.policy.default, await self._problem(name)) for name in self._providers.names]

    async def _problem(self, name: str) -> str | None:
        provider = self._provider(name)
        try:
            with anyio.fail_after(_PROVIDER_TIMEOUT):
                return "could not be loaded" if provider is None else await provider.health()
        except Exception as error:  # noqa: BLE001 - a provider may raise anything, and that is the answer
            return str(error) or type(error).__name__

    async def commit(self, sid: SessionId, named: str | None = None, owner: OwnerId = LOCAL) -> CommitOutcome:
        """Commit the turns of one provider now. `named` becomes the provider of later turns."""
        if named is not None and named not in self._providers.names:
            raise InvalidInputError(
                "provider", f"{named!r} is not a memory provider; expected one of {', '.join(self._providers.names)}"
            )
        ledger = await self._node.store.read(lambda tx: tx.ledger(sid))
        if ledger is None or ledger.owner != owner:
            return CommitOutcome()
        async with self._locked(sid):
            return await self._commit(sid, named)

    async def evict(self, sid: SessionId) -> None:
        """Commit, let the provider release the session, forget the provider. Turns not committed keep theirs."""
        async with self._locked(sid):
            await self._flush(sid, await self._node.store.transact(partial(memory.reach_boundary, sid=sid)))
            handle, _ = self.warm.pop(sid, (None, 0.0))
            if handle is not None:
                await self._call(handle, lambda provider: provider.release(sid), _PROVIDER_TIMEOUT)
                await self._node.store.transact(partial(memory.evicted, sid=sid))

    # ---- for the engine's life ----

    async def start(self) -> None:
        """Commit what an earlier process left dirty; in a cluster it may be another node's and waits until it is
        idle."""
        if self._node.identity.lease_time is None:
            await self._node.store.transact(partial(memory.reach_all_boundaries, limit=_MAX_AT_START))

    async def run(self) -> None:
        while True:
            signal = self._node.hub.signals.event_for(BOUNDARY)
            await self.tick()
            await wait_for(signal, self._node.settings.sweep_interval)

    async def tick(self) -> None:
        """Evict sessions that are idle or too many, then commit what is due, including what failed before."""
        now, settings = self._node.clock.now(), self._node.settings
        too_many = max(0, len(self.warm) - settings.warm_sessions)
        idle = [
            sid
            for at, (sid, (_, used_at)) in enumerate(self.warm.items())
            if at < too_many or now - used_at >= settings.memory.idle
        ]
        await self._run_all([partial(self.evict, sid) for sid in idle])
        try:
            due = await self._node.store.transact(partial(memory.reach_due_boundaries, limit=_BATCH))
            self._node.outages.worked(_READING_LEDGER)
        except StorageError as error:
            self._node.outages.failed(_READING_LEDGER, error)
            return
        await self._run_all([partial(self._flush_locked, sid, up_to) for sid, up_to in due if sid not in self._locks])

    async def finish(self) -> None:
        """Finish commits under way, commit the rest and release every session, within a deadline."""
        with self._finish_scope:
            self._finish_scope.deadline = anyio.current_time() + self._node.settings.flush_time
            await self._run_all([partial(self.evict, sid) for sid in dict.fromkeys([*self._locks, *self.warm])])

    def stop_now(self) -> None:
        """Stop without waiting for providers."""
        self._finish_scope.cancel()

    async def _run_all(self, jobs: list[Callable[[], Awaitable[None]]]) -> None:
        """Run a few at a time; one that fails does not affect the others."""
        limiter = anyio.CapacityLimiter(_CONCURRENT)

        async def run_one(job: Callable[[], Awaitable[None]]) -> None:
            async with limiter:
                try:
                    await job()
                    self._node.outages.worked(_COMMITTING_MEMORY)
                except Exception as error:  # noqa: BLE001 - it does not affect the others
                    self._node.outages.failed(_COMMITTING_MEMORY, error)

        async with anyio.create_task_group() as group:
            for job in jobs:
                group.start_soon(run_one, job)

    # ---- commits ----

    @asynccontextmanager
    async def _locked(self, sid: SessionId) -> AsyncIterator[None]:
        """One task at a time per session in this process; the commit's lease excludes other nodes."""
        lock, users = self._locks.get(sid, (anyio.Lock(), 0))
        self._locks[sid] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            _, users = self._locks.pop(sid)
            if users > 1:
                self._locks[sid] = lock, users - 1

    async def _flush_locked(self, sid: SessionId, up_to: int) -> None:
        async with self._locked(sid):
            await self._flush(sid, up_to)

    async def _flush(self, sid: SessionId, up_to: int) -> None:
        """Commit everything up to that turn, provider by provider."""
        while (await self._commit(sid, None, up_to)).committed:
            pass

    async def _commit(self, sid: SessionId, named: str | None = None, up_to: int | None = None) -> CommitOutcome:
        policy, limit = self.policy, self._node.settings.commit_limit
        lease_ends = anyio.current_time() + limit * memory.LEASE
        begin = partial(memory.begin, sid=sid, me=self._node.identity, policy=policy, named=named, up_to=up_to)
        work = await self._node.store.transact(begin)
        if self._node.identity.lease_time is not None:  # once the lease ends, another node may commit
            limit = max(0.0, min(limit, lease_ends - anyio.current_time()))
        match work:
            case CommitOutcome():
                return work
            case memory.ForgetSession():
                return await self._forget(work.ledger, limit)
            case memory.CommitBegun(commit, batch):
                error = await self._call(commit.handle, lambda provider: provider.commit(batch), limit)
                if error is None:
                    await self._record(partial(memory.finish, sid=sid, commit=commit, policy=policy))
                    return CommitOutcome(len(batch.turns), provider_of(commit.handle))
                await self._record(partial(memory.fail, sid=sid, commit=commit, error=error, policy=policy))
                return CommitOutcome(provider=provider_of(commit.handle), error=error)
            case _:
                assert_never(work)

    async def _forget(self, ledger: Ledger, limit: float) -> CommitOutcome:
        sid = ledger.session_id
        for handle in ledger.told:
            owner = owner_of(ledger.owner, project_of(handle))
            error = await self._call(handle, lambda provider, owner=owner: provider.forget(owner, sid), limit)  # type: ignore[misc]
            if error is not None:
                await self._record(partial(memory.fail, sid=sid, commit=None, error=error, policy=self.policy))
                return CommitOutcome(provider=provider_of(handle), error=error)
        await self._record(partial(memory.forgotten, sid=sid))
        return CommitOutcome()

    async def _record(self, work: Callable[[Tx], None]) -> None:
        """Shielded: a commit that the provider has made must not be repeated because a client left."""
        with anyio.move_on_after(self._node.settings.final_save, shield=True):
            await self._node.store.transact(work)
            await self._node.hub.announce(Wake("changed"))
            return
        raise StorageUnavailableError("The storage did not answer in time; the server tries the memory commit again.")

    def _provider(self, handle: str) -> MemoryProvider | None:
        try:
            return self._providers.get(provider_of(handle))
        except Exception:
            log.warning("memory provider %s could not be loaded", handle, exc_info=True)
            return None

    async def _call(self, handle: str, use: Callable[[MemoryProvider], Awaitable[None]], limit: float) -> str | None:
        """The error, written for a person; None if there was none."""
        provider = self._provider(handle)
        if provider is None:
            return f"There is no memory provider named {handle!r}. Configure it in holdfast.toml, table [memory]."
        try:
            with anyio.fail_after(limit):
                await use(provider)
        except TimeoutError:
            return f"The memory provider {handle!r} did not answer within {limit:g} seconds."
        except Exception as error:
            log.info("memory provider %s failed", handle, exc_info=True)
            return f"The memory provider {handle!r} failed: {str(error) or type(error).__name__}"[:500]
        return None


def question(messages: Sequence[Message], mid: MessageId) -> str:
    """The text that the run answers."""
    asked = [message for message in messages if message.id == mid]
    return plain_text(asked[-1].parts) if asked else ""


def fitting(found: Sequence[Mapping[str, Json]], tokens: int) -> tuple[Mapping[str, Json], ...]:
    """The first items, as many as fit."""
    kept: list[Mapping[str, Json]] = []
    left = tokens * _CHARACTERS
    for item in found:
        left -= len(str(item.get("text", ""))) + _CHARACTERS
        if left < 0:
            break
        kept.append(item)
    return tuple(kept)


def _note(text: str) -> MemoryRecalled:
    return MemoryRecalled((), f"{text} The answer was written without it.")
