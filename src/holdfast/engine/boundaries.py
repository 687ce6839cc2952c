"""When memory is committed, and that it is: at boundaries, one commit at a time per session, outside every transaction.

What is dirty is in the store's ledger and nowhere else. This process only knows which sessions are warm (their provider
may hold something for them) and which it is committing.
"""

import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, assert_never

import anyio

from holdfast.core.errors import Invalid, StorageError
from holdfast.core.ids import LOCAL, OwnerId, SessionId
from holdfast.core.ledger import OFF
from holdfast.core.run import is_live
from holdfast.core.values import dataclass
from holdfast.engine.book import remembering
from holdfast.engine.book.remembering import Begun, Forget, Keeping, Nothing, UnderWay
from holdfast.engine.book.rows import Me
from holdfast.engine.hub import Hub, wait
from holdfast.engine.settings import Settings
from holdfast.ports import Clock, MemoryProvider, MemoryProviders, Store, Tx, Wake

log = logging.getLogger("holdfast.engine")

SIGNAL: Final = "memory"
"""Fired when a boundary was reached."""
_AT_ONCE: Final = 4
_BATCH: Final = 200
_LEFT_BEHIND: Final = 10_000
_RELEASE: Final = 5.0


@dataclass(frozen=True, slots=True)
class Status:
    """What is known of a session's memory."""

    dirty_turns: int = 0
    committing: bool = False
    committed_turns: int = 0
    last_error: str | None = None
    provider: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one commit. Neither committed nor an error: there was nothing to do, or another node is at it."""

    committed: int = 0
    provider: str | None = None
    error: str | None = None
    under_way: bool = False
    unclaimed: bool = False

    @property
    def went_on(self) -> bool:
        """Whether another commit may follow."""
        return self.committed > 0 and self.error is None


@dataclass(slots=True)
class _Warm:
    handle: str
    used_at: float


class Boundaries:
    def __init__(
        self, store: Store, hub: Hub, clock: Clock, me: Me, settings: Settings, providers: MemoryProviders
    ) -> None:
        self._store = store
        self._hub = hub
        self._clock = clock
        self._me = me
        self._settings = settings
        self._providers = providers
        self.keeping = Keeping(providers.default, settings.memory, settings.commit_limit)
        self._warm: OrderedDict[SessionId, _Warm] = OrderedDict()
        self._locks: dict[SessionId, tuple[anyio.Lock, int]] = {}
        """One for each session that somebody is at or waits for, with how many do."""
        self._patience = anyio.CancelScope()

    # ---- what is asked from outside ----

    def touch(self, sid: SessionId, handle: str) -> None:
        """The provider may hold something for this session from now on, until it is evicted."""
        self._warm[sid] = _Warm(handle, self._clock.now())
        self._warm.move_to_end(sid)
        if len(self._warm) > self._settings.warm_sessions:
            self._hub.signals.fire(SIGNAL)

    @property
    def warm(self) -> tuple[SessionId, ...]:
        """The least recently used first."""
        return tuple(self._warm)

    async def status(self, sid: SessionId, owner: OwnerId = LOCAL) -> Status:
        """M10: of an unknown session, that nothing is dirty."""
        at_it = sid in self._locks  # before looking: what ends meanwhile was under way when the ledger was read
        now, ledger = await self._store.read(lambda tx: (tx.now, tx.ledger(sid)))
        if ledger is None or ledger.owner != owner:
            return Status()
        handle = ledger.handle if ledger.commit is None else ledger.commit.handle
        lease = None if ledger.commit is None else ledger.commit.lease
        ours = lease is not None and lease.holder == self._me.node
        committing = at_it if ours else is_live(lease, self._me.incarnation, now)
        return Status(ledger.dirty, committing, ledger.committed, ledger.last_error, handle)

    def knows(self, name: str) -> bool:
        return name == OFF or name in self._providers.names

    async def health(self) -> list[tuple[str, bool, str | None]]:
        """Every provider: its name, whether it is the default, and what is wrong."""
        return [(name, name == self.keeping.default, await self._problem(name)) for name in self._providers.names]

    async def _problem(self, name: str) -> str | None:
        provider = self._provider(name)
        try:
            with anyio.fail_after(_RELEASE):
                return "cannot be had" if provider is None else await provider.health()
        except Exception as error:  # noqa: BLE001 - a provider may raise anything; that is what was asked about
            return str(error) or type(error).__name__

    async def commit(self, sid: SessionId, named: str | None = None, owner: OwnerId = LOCAL) -> Outcome:
        """M2, M6: the explicit call: one commit, of one provider's turns. `named` takes over for what comes after."""
        if named is not None and named not in self._providers.names:
            raise Invalid("provider", f"{named!r} is none of {', '.join(self._providers.names)}")
        ledger = await self._store.read(lambda tx: tx.ledger(sid))
        if ledger is None or ledger.owner != owner:
            return Outcome()
        async with self._alone(sid):
            return await self._commit(sid, named)

    async def evict(self, sid: SessionId) -> None:
        """M9: commit, let the provider close what it holds for the session, forget the handle. Dirty turns stay so if
        the commit fails; they have their handle."""
        async with self._alone(sid):
            await self._flush(sid, await self._store.transact(partial(remembering.reach, sid=sid)))
            warm = self._warm.pop(sid, None)
            if warm is None:
                return
            provider = self._provider(warm.handle)
            if provider is not None:
                await self._guarded(lambda: provider.release(sid))
            await self._store.transact(partial(remembering.evicted, sid=sid))

    # ---- a life ----

    async def start(self) -> None:
        """M11: what an earlier life left dirty is at a boundary now. Where other nodes live, their sessions are theirs
        until they have been idle."""
        if self._me.lease_time is None:
            await self._store.transact(partial(remembering.reach_all, limit=_LEFT_BEHIND))

    async def run(self) -> None:
        """For the engine's life."""
        while True:
            signal = self._hub.signals.armed(SIGNAL)
            await self.tick()
            await wait(signal, self._settings.sweep)

    async def tick(self) -> None:
        """Evict what is idle or too much, then commit what is due: also what failed before and rested long enough."""
        now, settings = self._clock.now(), self._settings
        too_many = max(0, len(self._warm) - settings.warm_sessions)
        idle = [
            sid
            for at, (sid, warm) in enumerate(self._warm.items())
            if at < too_many or now - warm.used_at >= settings.memory.idle
        ]
        await self._each([partial(self.evict, sid) for sid in idle])
        try:
            due = await self._store.transact(partial(remembering.ripen, limit=_BATCH))
        except StorageError:
            log.warning("what is to be remembered cannot be read; it waits", exc_info=True)
            return
        await self._each([partial(self._flush_alone, sid, up_to) for sid, up_to in due if sid not in self._locks])

    async def finish(self) -> None:
        """M8: wait for what is under way, then commit the rest and let go of everything, within a deadline. What is not
        done stays dirty, and the next start does it."""
        with self._patience:
            self._patience.deadline = anyio.current_time() + self._settings.flush
            await self._each([partial(self.evict, sid) for sid in dict.fromkeys([*self._locks, *self._warm])])

    def hurry(self) -> None:
        """Stopping, wait for no provider."""
        self._patience.cancel()

    async def _each(self, jobs: list[Callable[[], Awaitable[None]]]) -> None:
        """A few at a time; one that fails leaves the others alone."""
        room = anyio.CapacityLimiter(_AT_ONCE)

        async def do(job: Callable[[], Awaitable[None]]) -> None:
            async with room:
                try:
                    await job()
                except Exception:
                    log.warning("memory: a boundary was not seen to; it is tried again", exc_info=True)

        async with anyio.create_task_group() as group:
            for job in jobs:
                group.start_soon(do, job)

    # ---- commits ----

    @asynccontextmanager
    async def _alone(self, sid: SessionId) -> AsyncIterator[None]:
        """One at a time per session in this process; other nodes are kept out by the commit's lease."""
        lock, users = self._locks.get(sid, (anyio.Lock(), 0))
        self._locks[sid] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            _, users = self._locks.pop(sid)
            if users > 1:
                self._locks[sid] = lock, users - 1

    async def _flush_alone(self, sid: SessionId, up_to: int) -> None:
        async with self._alone(sid):
            await self._flush(sid, up_to)

    async def _flush(self, sid: SessionId, up_to: int) -> None:
        """Everything up to that turn, provider by provider."""
        while (await self._commit(sid, None, up_to)).went_on:
            pass

    async def _commit(self, sid: SessionId, named: str | None = None, up_to: int | None = None) -> Outcome:
        keeping, limit = self.keeping, self._settings.commit_limit
        sure_until = anyio.current_time() + limit * remembering.LEASE
        begin = partial(remembering.begin, sid=sid, me=self._me, keeping=keeping, named=named, up_to=up_to)
        work = await self._store.transact(begin)
        if self._me.lease_time is not None:  # what the store's answer took is off our time: another node may be next
            limit = max(0.0, min(limit, sure_until - anyio.current_time()))
        match work:
            case Nothing(unclaimed):
                return Outcome(unclaimed=unclaimed)
            case UnderWay():
                return Outcome(under_way=True)
            case Forget():
                return await self._forget(sid, work, limit)
            case Begun(commit, batch):
                error = await self._call(commit.handle, lambda provider: provider.commit(batch), limit)
                if error is None:
                    await self._tell(partial(remembering.finish, sid=sid, commit=commit, keeping=keeping))
                    return Outcome(len(batch.turns), commit.handle)
                await self._tell(partial(remembering.fail, sid=sid, commit=commit, error=error, keeping=keeping))
                return Outcome(provider=commit.handle, error=error)
            case _:
                assert_never(work)

    async def _forget(self, sid: SessionId, work: Forget, limit: float) -> Outcome:
        for handle in work.handles:
            error = await self._call(handle, lambda provider: provider.forget(work.ledger.owner, sid), limit)
            if error is not None:
                await self._tell(partial(remembering.fail, sid=sid, commit=None, error=error, keeping=self.keeping))
                return Outcome(provider=handle, error=error)
        await self._tell(partial(remembering.forgotten, sid=sid))
        return Outcome()

    async def _tell(self, work: Callable[[Tx], None]) -> None:
        """Shielded: what the provider has done is not to be done again because somebody left."""
        with anyio.move_on_after(self._settings.final_save, shield=True):
            await self._store.transact(work)
            await self._hub.announce(Wake("changed"))

    def _provider(self, handle: str) -> MemoryProvider | None:
        try:
            return self._providers.get(handle)
        except Exception:
            log.warning("memory provider %s cannot be had", handle, exc_info=True)
            return None

    async def _call(self, handle: str, use: Callable[[MemoryProvider], Awaitable[None]], limit: float) -> str | None:
        """What went wrong, in words for a person."""
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

    async def _guarded(self, use: Callable[[], Awaitable[None]]) -> None:
        try:
            with anyio.move_on_after(_RELEASE):
                await use()
        except Exception:
            log.warning("a memory provider did not let go of a session", exc_info=True)
