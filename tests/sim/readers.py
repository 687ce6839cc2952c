"""Clients that read sessions, messages, runs and the change feed, and compare them with the journals."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import anyio

from holdfast.core.errors import HoldfastError, StorageError
from holdfast.core.ids import LOCAL, MessageId, SessionId
from holdfast.core.lease import is_live
from holdfast.core.run import Run
from holdfast.core.session import Message
from holdfast.core.transcript import fold
from holdfast.engine.engine import Engine
from holdfast.engine.messages import Page
from holdfast.engine.sessions import SessionView
from holdfast.ports.store import RunQuery, SessionQuery
from tests.sim.invariants import shows
from tests.sim.watchers import Watchers
from tests.sim.world import GoneError, World

T = TypeVar("T")


class Ask(Protocol):
    async def __call__(self, pick: int, use: Callable[[Engine], Awaitable[T]]) -> T: ...


class Readers:
    def __init__(self, world: World) -> None:
        self._world = world
        self._ledger = world.ledger

    # ---- sessions ----

    async def session(self, sid: SessionId, pick: int, ask: Ask) -> None:
        """X2: what was dead before somebody asked is not shown as running, unless storage failed meanwhile."""
        dead = await self._world.peek(lambda tx: [run for run in tx.open_runs(sid) if self._is_dead(run, tx.now)])
        trouble, asked_at = self._ledger.trouble_at, self._ledger.now()
        view = await ask(pick, lambda engine: engine.sessions.get(sid))
        self._check_view(view)
        if trouble != self._ledger.trouble_at or self._troubled() or trouble == asked_at:
            return
        for run in dead:
            shown = view.active_run
            if shown is not None and (shown.id, shown.epoch, shown.lease) == (run.id, run.epoch, run.lease):
                self._ledger.blame(f"{run.id} was dead and is shown as {shown.status}: {shown}")

    def _is_dead(self, run: Run, now: float) -> bool:
        """Its holder is gone for good. A node may take a claim of its own for granted for a moment."""
        if run.status != "running" or run.lease is None:
            return False
        alive = {node.engine.node for node in self._world.nodes}
        return run.lease.holder not in alive and (run.lease.until is None or not is_live(run.lease, None, now))

    def _troubled(self) -> bool:
        lines = [line for node in self._world.nodes for line in node.lines.values()]
        return any(line.cut or line.stalled for line in lines)

    def _check_view(self, view: SessionView) -> None:
        if view.session.deleted_at is not None:
            self._ledger.blame(f"{view.session.id} is deleted and shown")
        ranks = [run.rank for run, _ in view.queued]
        if ranks != sorted(ranks):
            self._ledger.blame(f"the queue of {view.session.id} is shown in disorder")
        for run, message in view.queued:
            if run.user_message_id != message.id or message.in_tree:
                self._ledger.blame(f"the queue of {view.session.id} shows {message.id} for {run.id}")

    async def sessions(self, pick: int, ask: Ask) -> None:
        views = await ask(pick, lambda engine: engine.sessions.list(SessionQuery(LOCAL)))
        times = [view.session.updated_at for view in views]
        if times != sorted(times, reverse=True):
            self._ledger.blame("the list of sessions is in disorder")
        for view in views:
            self._check_view(view)

    # ---- messages ----

    async def messages(self, sid: SessionId, pick: int, ask: Ask) -> list[Message]:
        """The shown branch, page by page; each answer is the fold of its journal as far as it says it goes."""
        found: list[Message] = []
        before = None
        while True:
            page = await ask(pick, partial(self._page, sid, before))
            found[:0] = [item.message for item in page.items]
            for item in page.items:
                self.check(item.message)
                if item.message.id not in item.siblings:
                    self._ledger.blame(f"{item.message.id} is not among its siblings {item.siblings}")
            before = page.items[0].message.id if page.items else None
            if page.next is None:
                return found
            if page.next != before:
                self._ledger.blame(f"the page of {sid} leads to {page.next}")
                return found

    async def _page(self, sid: SessionId, before: MessageId | None, engine: Engine) -> Page:
        return await engine.messages.page(sid, limit=3, before=before)

    def check(self, message: Message) -> None:
        if message.role == "user" or message.run_id is None or message.recovery in ("pending", "none"):
            return
        story = self._ledger.stories.get(message.run_id)
        told = fold(story.entries[: message.last_seq] if story else [])
        if not shows(message, told):
            self._ledger.blame(f"{message.id} is shown as {message}, and its journal says {told}")

    async def run(self, run: Run, pick: int, ask: Ask) -> None:
        shown = await ask(pick, lambda engine: engine.runs.get(run.id))
        if shown.epoch < run.epoch:
            self._ledger.blame(f"{run.id} was in epoch {run.epoch} and is shown in {shown.epoch}")
        await ask(pick, lambda engine: engine.runs.list(RunQuery(LOCAL, run.session_id)))

    # ---- the change feed ----

    async def follow_changes(self, watchers: Watchers, leaves: Sequence[int], away: float, pick: int) -> None:
        """Over all connections, what came between resets is one gapless piece of the feed."""
        reader = _FeedReader(self._ledger.feed, self._ledger.blame)
        limits = list(reversed(leaves))
        while not watchers.closing:
            node = self._world.live(pick)
            if node is not None:
                try:
                    limit = limits.pop() if limits else 1_000_000
                    await watchers.connect(node, partial(reader.read, limit=limit))
                except (GoneError, StorageError):
                    pass
                except HoldfastError as error:
                    self._ledger.blame(f"the change feed answered {error!r}")
                pick += 1
            if not watchers.closing:
                await anyio.sleep(away if limits else 1.0)
        self._ledger.situations["change feed followed"] += reader.count
        self._ledger.situations["change feed reset"] += reader.resets


class _FeedReader:
    def __init__(self, feed: Sequence[tuple[Any, ...]], blame: Callable[[str], None]) -> None:
        self._feed = feed
        self._blame = blame
        self._cursor: str | None = None
        self._last: int | None = None
        self.count = 0
        self.resets = 0

    async def read(self, engine: Engine, limit: int) -> bool:
        subscription = engine.subscriptions.watch_changes(self._cursor)
        for _ in range(limit):
            changes = await subscription.next()
            if changes is None:
                return True
            self._cursor = changes.cursor
            if changes.reset:
                self.resets += 1
                self._last = int(changes.cursor.rpartition("-")[2])
            for change in changes.items:
                if self._last is not None and change.n != self._last + 1:
                    self._blame(f"the change feed was at {self._last} and gave {change.n}")
                said = (change.kind, change.session_id, change.run_id, change.status)
                if self._feed[change.n - 1] != said:
                    self._blame(f"the change feed gave {change}; it was {self._feed[change.n - 1]}")
                self._last = change.n
                self.count += 1
        return False
