"""The registry of what this process knows about runs and the store does not: which it executes, is ending, has
abandoned or has settled, and which attached clients are connected to it. Which node may execute a run: `core.lease`.

A lease of this node on a run that is in none of these states belongs to nobody, and recovery may take the run over.
"""

from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import anyio

from holdfast.core.ids import NodeId, RunId
from holdfast.core.run import Intent, Run
from holdfast.engine.signals import Notifier

_SETTLED_KEPT: Final = 10_000


class LocalRuns:
    def __init__(self, node: NodeId) -> None:
        self._node = node
        self.executing: set[RunId] = set()
        self.starting: set[RunId] = set()  # Being claimed in the transaction that accepts them
        # Separate from `executing`: a run that is requeued while others are being ended may start before they end.
        self._ending: set[RunId] = set()
        self._ended = Notifier()
        self._closed = False
        self._connected: set[RunId] = set()
        self._discarded: set[RunId] = set()  # Connected runs whose temporary session is deleted
        self._abandoned: dict[RunId, tuple[Run, Intent | None]] = {}
        self._settled: dict[RunId, None] = {}
        self._claim_lock = anyio.Lock()
        self._claiming = False

    # ---- claiming ----

    @asynccontextmanager
    async def claiming(self, claiming: bool = True) -> AsyncIterator[None]:
        """While this is held, a lease of this node that is not in the registry may belong to a claim in progress; with
        False, it is orphaned."""
        async with self._claim_lock:
            self._claiming = claiming
            try:
                yield
            finally:
                self._claiming = False

    # ---- ending ----

    @contextmanager
    def ending(self, rids: Collection[RunId]) -> Iterator[None]:
        """These runs are being taken over, recovered or settled by this process."""
        self._ending.update(rids)
        try:
            yield
        finally:
            self._ending.difference_update(rids)
            self._ended.notify()

    def close(self) -> None:
        """The node can write no more endings: a run that is to end from now on is left to the next start."""
        self._closed = True

    @property
    def can_end(self) -> bool:
        return not self._closed

    def is_ending(self, rid: RunId) -> bool:
        return rid in self._ending

    async def wait_until_none_ending(self) -> None:
        while self._ending:
            await self._ended.wait()

    def holds(self, rid: RunId) -> bool:
        """Whether this process executes or ends the run."""
        return rid in self.executing or rid in self.starting or rid in self._ending

    def may_hold(self, run: Run) -> bool:
        """The same, counting a claim that is under way. A pending or abandoned run is not being claimed."""
        if self.holds(run.id):
            return True
        return self._claiming and not run.is_pending and self.abandoned_run(run) is None

    # ---- attached clients ----

    def connect(self, rid: RunId) -> None:
        self._connected.add(rid)

    def disconnect(self, rid: RunId) -> None:
        self._connected.discard(rid)

    def discard_when_read(self, rid: RunId) -> bool:
        """The run's temporary session is deleted. False: no client is still reading, so it can be erased now."""
        if rid in self._connected:
            self._discarded.add(rid)
        return rid in self._connected

    def take_discarded(self, rids: Collection[RunId]) -> bool:
        """Whether a session of these runs can be erased, now that their client has left."""
        found = self._discarded.intersection(rids)
        self._discarded -= found
        return bool(found)

    @property
    def connected(self) -> frozenset[RunId]:
        """Attached runs whose client is connected to this process."""
        return frozenset(self._connected)

    def has_lost_client(self, run: Run) -> bool:
        """Whether the run was attached through this node and its client is gone."""
        ours = run.connection is not None and run.connection.holder == self._node
        return ours and run.id not in self._connected

    # ---- abandoned ----

    def abandon(self, run: Run, intent: Intent | None) -> None:
        """The run stopped here and could not be ended; `intent` is how recovery is to end it. `run`: as it was left,
        without `started_at` if nothing of it can be in the journal."""
        self._abandoned[run.id] = (run, intent)

    def abandoned(self) -> list[tuple[Run, Intent | None]]:
        return list(self._abandoned.values())

    def forget_abandoned(self, rid: RunId) -> None:
        """Call once the run's lease is released in the store."""
        self._abandoned.pop(rid, None)

    def abandoned_run(self, run: Run) -> tuple[Run, Intent | None] | None:
        """An abandoned run that nobody has claimed since, and how it is to end."""
        left = self._abandoned.get(run.id)
        return left if left is not None and left[0].epoch == run.epoch else None

    # ---- settled ----

    def note_settled(self, rids: Iterable[RunId]) -> None:
        """Call before the store publishes the end of these runs, so that subscribers find them here."""
        self._settled.update(dict.fromkeys(rids))
        while len(self._settled) > _SETTLED_KEPT:
            del self._settled[next(iter(self._settled))]

    def settled_here(self, rid: RunId) -> bool:
        """Whether this node settled the run lately, so that what follows from its end is this node's to do."""
        return rid in self._settled
