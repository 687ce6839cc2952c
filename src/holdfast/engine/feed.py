"""Reading a run from a cursor, then following it. A subscriber is a cursor: it costs nothing while it does not read.

Runs that are executed here have a bounded tail of their newest events in memory, and what it no longer holds is read
from the journal. Runs of other nodes are read from the journal on a hint, or after a while without one.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence

from holdfast.core.errors import CursorAhead, Invalid, JournalPruned
from holdfast.core.events import Entry
from holdfast.core.ids import RunId
from holdfast.engine.bell import Bell
from holdfast.engine.hub import Signals, wait
from holdfast.engine.settings import Settings
from holdfast.ports import Journal

log = logging.getLogger("holdfast.engine")

_PAGE = 1000

Take = Callable[[Sequence[Entry]], bool]
"""Takes all of the events, or none of them: False."""


class Tail:
    """The newest events of a run that is executed here."""

    __slots__ = ("bell", "broken", "closed", "entries", "followers", "last_seq", "sealed", "size")

    def __init__(self, last_seq: int, sealed: bool) -> None:
        self.entries: list[Entry] = []
        self.size = 0
        self.last_seq = last_seq
        self.sealed = sealed
        self.closed = False
        """The run is no longer executed here."""
        self.broken = False
        """Its output cannot be kept just now: streams end without a terminal event, and clients come back."""
        self.bell = Bell()
        self.followers: list[Follower] = []

    def add(self, entries: Sequence[Entry], seals: bool, limit: int) -> None:
        self.entries += entries
        self.last_seq += len(entries)
        self.sealed = seals
        size = self.size
        for _, frame in entries:
            size += len(frame)
        self.size = size
        if size > 2 * limit:  # trimmed by halves, so that the cost per event does not grow
            self._trim(limit)
        for follower in self.followers:
            follower.push(entries)
        if seals:
            self.wake()
        elif self.bell.awaited:
            self.bell.ring()

    def wake(self) -> None:
        """Something other than a new event: whoever waits has to look."""
        self.bell.ring()
        followers, self.followers = self.followers, []
        for follower in followers:
            follower.end()

    def _trim(self, limit: int) -> None:
        at = 0
        while self.size > limit and at < len(self.entries) - 1:
            self.size -= len(self.entries[at].frame)
            at += 1
        del self.entries[:at]

    def after(self, cursor: int) -> Sequence[Entry] | None:
        """What follows the cursor; None if part of it is no longer here."""
        missing = self.last_seq - cursor
        if missing <= 0:
            return ()
        return self.entries[-missing:] if missing <= len(self.entries) else None


class Feed:
    def __init__(
        self, journal: Journal, signals: Signals, settings: Settings, over: Callable[[RunId], Awaitable[bool]]
    ) -> None:
        """`over`: whether the store says that nothing more will come of a run."""
        self._journal = journal
        self._over = over
        self._signals = signals
        self._settings = settings
        self._tails: dict[RunId, Tail] = {}
        self.stopping = False
        self.poll = settings.poll
        self.subscribers = 0

    # ---- the writing side ----

    def open(self, run: RunId, last_seq: int, *, sealed: bool = False) -> None:
        """The run is executed here from now on."""
        self._tails[run] = Tail(last_seq, sealed)
        self._signals.fire(("appended", run))

    def has(self, run: RunId) -> bool:
        """Whether the run is executed here."""
        return run in self._tails

    def is_sealed(self, run: RunId) -> bool:
        """Whether watchers of a run that is executed here have seen its end, which the store may not know yet."""
        tail = self._tails.get(run)
        return tail is not None and tail.sealed

    def publish(self, run: RunId, entries: Sequence[Entry], seals: bool) -> None:
        """Only ever called with what the journal has committed."""
        tail = self._tails.get(run)
        if tail is None:
            self._signals.fire(("appended", run))
        elif entries[0].seq == tail.last_seq + 1:
            tail.add(entries, seals, self._settings.tail)
        # Otherwise it was committed before this tail was opened, and is told late: it is in the journal already.

    def close(self, run: RunId, *, broken: bool = False) -> None:
        """The run is no longer executed here. Subscribers follow its journal, or are let go if it is broken."""
        tail = self._tails.pop(run, None)
        if tail is not None:
            tail.closed, tail.broken = True, broken
            tail.wake()

    def stop(self) -> None:
        """End every subscription, so that clients reconnect elsewhere or later."""
        self.stopping = True
        for tail in self._tails.values():
            tail.wake()
        self._signals.fire_all()

    # ---- the reading side ----

    async def subscribe(self, run: RunId, after: int) -> "Subscription":
        """To be closed. Raises CursorAhead, JournalPruned or StorageError before anything is delivered."""
        if after < 0:
            raise Invalid("after", "is a cursor and cannot be negative; 0 is the beginning")
        tail = self._tails.get(run)
        if tail is not None:
            last, sealed = tail.last_seq, tail.sealed
        else:
            over = await self._over(run)  # asked first: what is over does not grow
            head = (await self._journal.heads([run]))[run]
            if over and not head.sealed:  # given up; unless somebody has told it to look again meanwhile
                over = await self._over(run)
            last, sealed = head.last_seq, head.sealed or over
            if head.pruned:
                await self._journal.read(run, after, 1)  # says that it is pruned
        if after > last and tail is not None:  # committed, and not published yet
            last = (await self._journal.heads([run]))[run].last_seq
        if after > last:
            raise CursorAhead(run, after, last)
        self.subscribers += 1
        return Subscription(self, run, after, at_end=sealed and after == last)


class Follower:
    """A subscription that has everything and is handed what comes, in the moment it is durable. A task that is woken
    for each event costs as much as the event's whole way to it."""

    __slots__ = ("_bell", "_ended", "_subscription", "_take")

    def __init__(self, subscription: "Subscription", take: Take) -> None:
        self._subscription = subscription
        self._take = take
        self._bell = Bell()
        self._ended = False

    def push(self, entries: Sequence[Entry]) -> None:
        if self._ended:
            return
        try:
            taken = self._take(entries)
        except Exception:
            log.exception("a watcher of run %s could not be handed what came", self._subscription.run)
            taken = False  # the writer's task calls this, and one watcher's trouble is not every run's
        if taken:
            self._subscription.cursor = entries[-1].seq
        else:
            self.end()

    def end(self) -> None:
        self._ended = True
        self._bell.ring()

    async def wait(self) -> None:
        if not self._ended:
            await self._bell.wait()


class Subscription:
    """A cursor into one run. Not safe for two readers at once; make two."""

    __slots__ = ("_feed", "_tail", "at_end", "cursor", "run")

    def __init__(self, feed: Feed, run: RunId, cursor: int, *, at_end: bool) -> None:
        self._feed = feed
        self.run = run
        self.cursor = cursor
        self.at_end = at_end
        """The terminal event is behind the cursor: there is nothing more to come."""
        self._tail = feed._tails.get(run)

    def close(self) -> None:
        self._feed.subscribers -= 1

    async def next(self) -> Sequence[Entry] | None:
        """The next events, at least one; None when the stream ends: after the terminal event, or when the server lets
        go."""
        while not self.at_end:
            tail = self._tail
            if tail is None:
                tail = self._tail = self._feed._tails.get(self.run)
            signal = None
            found: Sequence[Entry] | None
            if tail is None:
                signal = self._feed._signals.armed(("appended", self.run))
                found = await self._from_journal()
            else:
                found = tail.after(self.cursor)
                if found is None:
                    found = await self._from_journal()
            if found:
                self.cursor = found[-1].seq
                self.at_end = tail.sealed and self.cursor == tail.last_seq if tail is not None else found[-1].ends
                return found
            if self._feed.stopping:
                return None
            if tail is None:
                assert signal is not None
                if await self._feed._over(self.run):
                    return await self._last()
                await wait(signal, self._feed.poll)
            elif tail.sealed:  # seen while it was followed
                self.at_end = True
            elif tail.broken:
                return None
            elif tail.closed:
                self._tail = None
            else:
                await tail.bell.wait()
        return None

    async def follow(self, take: Take) -> None:
        """While the run is executed here and nothing is missing: `take` is called with events as they become durable,
        in the writer's task, so it must be quick; to raise is to refuse. Returns when it has refused some (they are the
        next ones still), or when `next` knows more; at once if there is nothing to follow."""
        tail = self._tail
        if tail is None or tail.closed or tail.sealed or self._feed.stopping or tail.last_seq != self.cursor:
            return
        follower = Follower(self, take)
        tail.followers.append(follower)
        try:
            await follower.wait()
        finally:
            if follower in tail.followers:
                tail.followers.remove(follower)

    async def _last(self) -> Sequence[Entry] | None:
        """The run has ended, with or without a terminal event in its journal: what is there, then nothing."""
        found = await self._from_journal()
        self.at_end = not found or found[-1].ends
        self.cursor = found[-1].seq if found else self.cursor
        return found or None

    async def _from_journal(self) -> Sequence[Entry]:
        try:
            return await self._feed._journal.read(self.run, self.cursor, _PAGE)
        except JournalPruned:  # erased under a reader who had come in time
            return ()
