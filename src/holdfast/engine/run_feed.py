"""The feed of a run's events: read from a cursor, then follow live. A subscriber is only a position in the journal;
nothing is queued for it. How a reader on another node learns of new events: hints of `ports.wakeups`, and a read every
`poll_interval` seconds in case they are lost.

A run that this node executes has a bounded tail of its newest events in memory; a subscriber that lags behind the tail
reads the journal. Runs of other nodes are read from the journal when woken, and at intervals.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final

import anyio

from holdfast.core.errors import CursorAheadError, InvalidInputError, JournalPrunedError
from holdfast.core.events import Entry
from holdfast.core.ids import RunId
from holdfast.engine.node_context import NodeContext
from holdfast.engine.signals import Notifier, wait_for

log = logging.getLogger("holdfast.engine")

_PAGE: Final = 1000
_PAGE_BYTES: Final = 512 * 1024  # What a subscriber that does not read keeps in memory

EventSink = Callable[[Sequence[Entry]], bool]  # Takes all of the events, or none of them and returns False


class RunTail:
    """The newest events of a run that this node executes."""

    __slots__ = ("broken", "closed", "entries", "followers", "grown", "last_seq", "sealed", "size")

    def __init__(self, last_seq: int, sealed: bool) -> None:
        self.entries: list[Entry] = []
        self.size = 0
        self.last_seq = last_seq
        self.sealed = sealed
        self.closed = False  # This node no longer executes the run
        self.broken = False  # Its output cannot be stored: streams end without a terminal event, and clients reconnect
        self.grown = Notifier()
        self.followers: list[RunSubscription] = []

    def add(self, entries: Sequence[Entry], seals: bool, limit: int) -> None:
        self.entries += entries
        self.last_seq += len(entries)
        self.sealed = seals
        size = self.size
        for _, frame in entries:
            size += len(frame)
        self.size = size
        if size > 2 * limit:  # trimmed by halves, so that the cost per event is constant
            self._trim(limit)
        for follower in self.followers:
            follower.push(entries)
        if seals:
            self.wake()
        elif self.grown.awaited:
            self.grown.notify()

    def wake(self) -> None:
        """The tail was sealed or closed, or the feed stops: every subscriber has to look."""
        self.grown.notify()
        followers, self.followers = self.followers, []
        for follower in followers:
            follower.end_following()

    def _trim(self, limit: int) -> None:
        at = 0
        while self.size > limit and at < len(self.entries) - 1:
            self.size -= len(self.entries[at].frame)
            at += 1
        del self.entries[:at]

    def after(self, cursor: int) -> Sequence[Entry] | None:
        """The events after the cursor; None if some of them are no longer in memory."""
        missing = self.last_seq - cursor
        if missing <= 0:
            return ()
        return self.entries[-missing:] if missing <= len(self.entries) else None


class RunFeed:
    def __init__(self, node: NodeContext) -> None:
        self._node = node
        self.signals = node.hub.signals
        self._tails: dict[RunId, RunTail] = {}
        self.stopping = False
        self.poll_interval = node.settings.poll_interval
        self.subscribers = 0

    # ---- the writing side ----

    def open(self, run: RunId, last_seq: int, *, sealed: bool = False) -> None:
        """This node executes the run from now on."""
        self._tails[run] = RunTail(last_seq, sealed)
        self.signals.fire(("appended", run))

    def is_sealed(self, run: RunId) -> bool:
        """Whether subscribers of a run executed here have its terminal event, before the store has it."""
        tail = self._tails.get(run)
        return tail is not None and tail.sealed

    def publish(self, run: RunId, entries: Sequence[Entry], seals: bool) -> None:
        """Deliver events that the journal has committed."""
        tail = self._tails.get(run)
        if tail is None:
            self.signals.fire(("appended", run))
        elif entries[0].seq == tail.last_seq + 1:
            tail.add(entries, seals, self._node.settings.live_tail_bytes)
        # Otherwise they were committed before this tail was opened, which has counted them.

    def close(self, run: RunId, *, broken: bool = False) -> None:
        """This node no longer executes the run. Subscribers go on with its journal, or end if it is broken."""
        tail = self._tails.pop(run, None)
        if tail is not None:
            tail.closed, tail.broken = True, broken
            tail.wake()

    def stop(self) -> None:
        """End every subscription, so that clients reconnect elsewhere or later."""
        self.stopping = True
        for tail in self._tails.values():
            tail.wake()
        self.signals.fire_all()

    # ---- the reading side ----

    async def subscribe(self, run: RunId, after: int) -> "RunSubscription":
        """A subscription, to be closed. Raises CursorAheadError, JournalPrunedError or StorageError."""
        if after < 0:
            raise InvalidInputError("after", "must not be negative; 0 starts at the first event")
        tail = self._tails.get(run)
        if tail is not None:
            last, sealed = tail.last_seq, tail.sealed
        else:
            over = await self.is_over(run)  # read first, because the journal of an ended run does not grow
            head = (await self._node.journal.heads([run]))[run]
            if over and not head.sealed:  # given up; but its recovery may have been restarted meanwhile
                over = await self.is_over(run)
            last, sealed = head.last_seq, head.sealed or over
            if head.pruned:
                await self._node.journal.read(run, after, 1)  # raises JournalPrunedError
        if after > last and tail is not None:  # it may be committed and not published yet
            last = (await self._node.journal.heads([run]))[run].last_seq
        if after > last:
            raise CursorAheadError(run, after, last)
        self.subscribers += 1
        return RunSubscription(self, run, after, at_end=sealed and after == last)

    def subscribe_new(self, run: RunId) -> "RunSubscription":
        """`subscribe` from the start to a run that was just accepted, of which nothing has to be read."""
        self.subscribers += 1
        return RunSubscription(self, run, 0, at_end=False)

    async def is_over(self, run: RunId) -> bool:
        """Whether, by the store, the run will produce nothing more."""
        row = await self._node.store.read(lambda tx: tx.run(run))
        return row is None or not (row.is_open or row.is_pending)

    def tail(self, run: RunId) -> RunTail | None:
        """The newest events of a run that this node executes."""
        return self._tails.get(run)

    async def read_journal(self, run: RunId, after: int) -> Sequence[Entry]:
        try:
            return await self._node.journal.read(run, after, _PAGE, _PAGE_BYTES)
        except JournalPrunedError:  # erased after the subscription began
            return ()


class RunSubscription:
    """A cursor into one run's events, for one reader."""

    __slots__ = ("_feed", "_followed", "_sink", "_tail", "at_end", "cursor", "run")

    def __init__(self, feed: RunFeed, run: RunId, cursor: int, *, at_end: bool) -> None:
        self._feed = feed
        self.run = run
        self.cursor = cursor
        self.at_end = at_end  # The cursor is at the terminal event: nothing more will come
        self._tail = feed.tail(run)
        self._sink: EventSink | None = None  # of the call to `follow` that is under way
        self._followed = Notifier()

    @property
    def has_next(self) -> bool:
        """Whether this node has events after the cursor in memory; it may not know of others."""
        return self._tail is not None and self._tail.last_seq > self.cursor

    def close(self) -> None:
        self._feed.subscribers -= 1

    async def next(self) -> Sequence[Entry] | None:
        """The next events; None after the terminal event, if the output cannot be stored, or if the server stops."""
        while not self.at_end:
            tail = self._tail
            if tail is None:
                tail = self._tail = self._feed.tail(self.run)
            signal: anyio.Event | None = None
            found: Sequence[Entry] | None
            if tail is None:
                signal = self._feed.signals.event_for(("appended", self.run))
                found = await self._feed.read_journal(self.run, self.cursor)
            else:
                found = tail.after(self.cursor)
                if found is None:
                    found = await self._feed.read_journal(self.run, self.cursor)
            if found:
                self.cursor = found[-1].seq
                self.at_end = tail.sealed and self.cursor == tail.last_seq if tail is not None else found[-1].ends
                return found
            if self._feed.stopping:
                return None
            if tail is None:
                assert signal is not None
                if await self._feed.is_over(self.run):
                    return await self._read_last()
                await wait_for(signal, self._feed.poll_interval)
            elif tail.sealed:  # `follow` has delivered the terminal event
                self.at_end = True
            elif tail.broken:
                return None
            elif tail.closed:
                self._tail = None
            else:
                await tail.grown.wait()
        return None

    async def follow(self, sink: EventSink) -> None:
        """Call `sink` with events as they become durable, in the writer's task, so it must be quick. Returns once the
        sink refuses or raises (`next` returns those events) or `next` has something else."""
        tail = self._tail
        if tail is None or tail.closed or tail.sealed or self._feed.stopping or tail.last_seq != self.cursor:
            return
        self._sink = sink
        tail.followers.append(self)
        try:
            while self._sink is not None:
                await self._followed.wait()
        finally:
            self._sink = None
            if self in tail.followers:
                tail.followers.remove(self)

    def push(self, entries: Sequence[Entry]) -> None:
        """Hand events to the sink. In the writer's task: waking a task per event would double the event's cost."""
        if self._sink is None:
            return
        try:
            accepted = self._sink(entries)
        except Exception:
            log.exception("events of run %s could not be sent to a client", self.run)
            accepted = False  # this is the writer's task: one subscriber's error must not stop every run
        if accepted:
            self.cursor = entries[-1].seq
        else:
            self.end_following()

    def end_following(self) -> None:
        self._sink = None
        self._followed.notify()

    async def _read_last(self) -> Sequence[Entry] | None:
        """Reads the rest of a run that is over, with or without a terminal event in its journal; then returns None."""
        found = await self._feed.read_journal(self.run, self.cursor)
        self.at_end = not found or found[-1].ends
        self.cursor = found[-1].seq if found else self.cursor
        return found or None
