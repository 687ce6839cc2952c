"""Clients that follow runs, disconnect, and reconnect with their cursor. Each delivery is checked: it is already in the
journal, and nothing is missing or duplicated."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import anyio
from anyio.abc import TaskGroup

from holdfast.core.errors import CursorAheadError, JournalPrunedError, NotFoundError, StorageError
from holdfast.core.events import Entry
from holdfast.core.ids import RunId
from holdfast.engine.engine import Engine
from holdfast.engine.transactions.accept import Accepted
from tests.sim.observed_storage import Story
from tests.sim.plan import After, Watch
from tests.sim.world import GoneError, Node, World

_NOTHING = Story()


class Cursor:
    """What one client has seen of one run, over all its connections."""

    def __init__(self, run: RunId, at: int, *, late: bool = False) -> None:
        self.run = run
        self.at = at
        self.late = late
        """It comes after everybody else was disconnected."""
        self.ended = False
        """It was given the terminal event, or was told that there is nothing more to come."""
        self.follows = sum(run.encode()) % 2 == 0
        """It is handed what comes, where it can be; others always look."""
        self.pushes = 0


class Attached:
    """The connection of an attached run: `scope` is cancelled when the client leaves."""

    def __init__(self, node: Node, cursor: Cursor) -> None:
        self.node = node
        self.cursor = cursor
        self.scope = anyio.CancelScope()


class Watchers:
    def __init__(self, world: World, tg: TaskGroup) -> None:
        self._world = world
        self._ledger = world.ledger
        self._tg = tg
        self._scopes: set[anyio.CancelScope] = set()
        self.following: list[Cursor] = []
        """Clients that are not through yet."""
        self.closing = False

    def close(self) -> None:
        """Disconnect every client for good: only late ones connect after this."""
        self.closing = True
        for scope in self._scopes:
            scope.cancel()

    async def connect(self, node: Node, use: Callable[[Engine], Awaitable[bool]]) -> bool:
        """A connection that also ends on `close`."""
        scope = anyio.CancelScope()
        self._scopes.add(scope)
        try:
            return await self._world.call(node, use, scope)
        finally:
            self._scopes.discard(scope)

    # ---- one connection ----

    def _take(self, cursor: Cursor, entries: Sequence[Entry]) -> None:
        story = self._ledger.stories.get(cursor.run, _NOTHING)
        if not entries:
            self._ledger.blame(f"a watcher of {cursor.run} was woken for nothing")
        for entry in entries:
            if entry.seq != cursor.at + 1:
                self._ledger.blame(f"a watcher of {cursor.run} was at {cursor.at} and was given {entry.seq}")
            elif entry.seq > len(story.entries) or story.entries[entry.seq - 1].frame != entry.frame:
                self._ledger.blame(f"a watcher of {cursor.run} was shown {entry} which is not in the journal")
            cursor.at = entry.seq
            cursor.ended = entry.ends

    async def deliver(self, engine: Engine, cursor: Cursor, limit: int | None) -> bool:
        """One connection, up to `limit` deliveries. Whether the server let go of it before the end."""
        came_at = self._ledger.now()
        written = len(self._ledger.stories.get(cursor.run, _NOTHING).entries)
        async with engine.subscriptions.watch(cursor.run, cursor.at) as subscription:
            if subscription.at_end:
                cursor.ended = True
                self._check_end(cursor, came_at, written)
            while limit is None or limit > 0:
                entries = await subscription.next()
                if entries is None:
                    return not cursor.ended
                self._take(cursor, entries)
                limit = None if limit is None else limit - 1
                if limit is None and cursor.follows:
                    await subscription.follow(partial(self._pushed, cursor))
        return False

    def _pushed(self, cursor: Cursor, entries: Sequence[Entry]) -> bool:
        """Every third time the line is full."""
        cursor.pushes += 1
        if cursor.pushes % 3 == 0:
            return False
        self._ledger.situations["handed to a watcher"] += 1
        self._take(cursor, entries)
        return True

    def _check_end(self, cursor: Cursor, came_at: float, written: int) -> None:
        """It was told that nothing more will come: the journal is sealed, or was given up as it is, at some moment
        since it came. A node that was cut off may add to a journal that was given up, after those `written` events."""
        story = self._ledger.stories.get(cursor.run, _NOTHING)
        run = self._ledger.runs[cursor.run]
        given_up = run.recovery is not None and run.recovery.state == "none"
        given_up = given_up or self._ledger.anew.get(cursor.run, -1.0) >= came_at
        if cursor.run in self._ledger.erased:
            return
        is_whole = len(story.entries) == cursor.at or (given_up and cursor.at >= written)
        if not is_whole or not (story.sealed or given_up):
            self._ledger.blame(f"a watcher of {cursor.run} was told at {cursor.at} that this is the end")

    # ---- a run, over many connections ----

    def follow(self, rid: RunId, watch: Watch, pick: int, *, late: bool = False) -> None:
        story = self._ledger.stories.get(rid, _NOTHING)
        cursor = Cursor(rid, min(watch.after, len(story.entries)), late=late)
        self.following.append(cursor)
        self._tg.start_soon(self._follow, cursor, watch, pick)

    async def _follow(self, cursor: Cursor, watch: Watch, pick: int) -> None:
        limits: list[int | None] = list(reversed(watch.leaves))
        before: Node | None = None
        patience = 0.5
        while not cursor.ended and (cursor.late or not self.closing):
            node = self._world.live(pick)
            if node is not None:
                if before is not None:
                    self._ledger.situations["watcher came back"] += 1
                    self._ledger.situations["watcher at another node"] += node is not before
                before = node
                if not await self._come(node, cursor, limits.pop() if limits else None):
                    break
                pick += 1
            if not cursor.ended:
                await self._world.pause(watch.pause)
                await anyio.sleep(patience)
                patience = min(patience * 2, 8.0)
        if cursor.ended:
            self._ledger.situations["watched to the end"] += 1
        self.following.remove(cursor)

    async def _come(self, node: Node, cursor: Cursor, limit: int | None) -> bool:
        """One connection. Whether it makes sense to come back."""
        try:
            if await self.connect(node, partial(self.deliver, cursor=cursor, limit=limit)):
                self._ledger.situations["watcher let go"] += 1
        except GoneError:
            pass
        except StorageError as error:
            if not self._world.plan.troubled:
                self._ledger.blame(f"a watcher of {cursor.run}: storage failed though nothing failed: {error}")
        except (NotFoundError, JournalPrunedError):
            return False
        except CursorAheadError as error:
            story = self._ledger.stories.get(cursor.run, _NOTHING)
            if not story.purged:
                self._ledger.blame(f"a watcher of {cursor.run} at {cursor.at} of {len(story.entries)}: {error}")
            return False
        return True

    # ---- an attached run ----

    async def attach(self, pick: int, make: Callable[[Engine], Awaitable[Accepted]], leaves: After | None) -> Attached:
        """Send a turn that lives as long as its connection."""
        node = self._world.live(pick)
        if node is None:
            raise GoneError
        accepted = await self._world.call(node, make)
        attached = Attached(node, Cursor(accepted.run.id, 0))
        if leaves is not None:
            self._tg.start_soon(self._leave, attached, leaves)
        return attached

    async def be_attached(self, attached: Attached) -> None:
        """Be its connection until the end, or until the client leaves."""
        cursor = attached.cursor
        self.following.append(cursor)
        self._scopes.add(attached.scope)

        async def use(engine: Engine) -> None:
            async with engine.connections.attached(cursor.run):
                for _ in range(1000):
                    if not await self.deliver(engine, cursor, None):
                        break
                    await anyio.sleep(0.1)

        try:
            await self._world.call(attached.node, use, attached.scope)
        except JournalPrunedError:
            pass
        finally:
            cursor.ended = True  # from here on there is nothing to leave
            self.following.remove(cursor)
            self._scopes.discard(attached.scope)
            self._ledger.intended.setdefault(cursor.run, self._ledger.now())

    async def _leave(self, attached: Attached, after: After) -> None:
        await self._world.pause(after)
        cursor = attached.cursor
        run = self._ledger.runs.get(cursor.run)
        if cursor.ended or run is None or not run.is_open:
            return
        self._ledger.situations["attached client left"] += 1
        if run.status == "queued":
            self._ledger.situations["attached client left the queue"] += 1
        self._world.note(f"the client of {cursor.run} leaves")
        self._ledger.intended.setdefault(cursor.run, self._ledger.now())
        attached.scope.cancel()
