"""`Wakeups` by LISTEN and NOTIFY. What is said while a notification is under way goes out together with the next one,
so there is at most one for a commit of the journal and, the busier a node, the fewer.

Each process has one connection that listens and one that speaks, on a thread each. A hint that cannot be sent is lost.
"""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from threading import Event, Thread
from typing import Final

import psycopg

from holdfast.core.errors import StorageError
from holdfast.core.ids import NodeId
from holdfast.ports import Wake
from holdfast.storage import hints
from holdfast.storage.memory.wakeups import Pending
from holdfast.storage.postgres.lanes import Lane
from holdfast.storage.postgres.link import Place, TimedConnection, let_go

log = logging.getLogger("holdfast.storage")

_CHANNEL: Final = "holdfast"
_LOOK: Final = 0.2
_ASK: Final = 50
_PAUSE: Final = 1.0


class PostgresWakeups:
    """`limit`: how many different hints are held for one listener, and for sending."""

    def __init__(self, place: Place, *, limit: int = 10_000) -> None:
        self._place = place
        self._limit = limit
        self._listeners: set[Pending] = set()
        self._ear: Thread | None = None
        self._closing = Event()
        self._mouth = Lane("wakeups", place, _forget)
        self._out = hints.Outbox(limit, lambda wakes: self._mouth.submit(lambda db: _say(db, wakes)))

    @asynccontextmanager
    async def listen(self, node: NodeId) -> AsyncIterator[Pending]:
        """Is heard from the moment it is entered, if PostgreSQL answers at once."""
        pending = Pending(self._limit)
        self._listeners.add(pending)
        try:
            if self._ear is None:
                hears = asyncio.Event()
                self._ear = Thread(
                    target=self._hear, args=(asyncio.get_running_loop(), hears), name="wakeups-ear", daemon=True
                )
                self._ear.start()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(hears.wait(), self._place.answer_within)
            yield pending
        finally:
            self._listeners.discard(pending)

    async def notify(self, node: NodeId, wakes: Collection[Wake]) -> None:
        self._out.put(wakes)

    async def close(self) -> None:
        self._closing.set()
        await self._out.close()
        await self._mouth.close()
        if self._ear is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._ear.join)

    # ---- the listening thread ----

    def _hear(self, loop: asyncio.AbstractEventLoop, hears: asyncio.Event) -> None:
        pause, again = 0.0, False
        while not self._closing.wait(pause):
            db, pause = None, _PAUSE
            try:
                db = self._place.connect()
                db.execute(f"LISTEN {_CHANNEL}")
                hints.tell(loop, hears.set)
                if again:
                    self._pass_on(loop, hints.MISSED)
                for n in itertools.count():
                    if self._closing.is_set():
                        break
                    if n % _ASK == _ASK - 1:
                        db.execute("SELECT 1")  # nothing to hear and nobody there sound the same
                    heard = [
                        wake for said in db.notifies(timeout=_LOOK, stop_after=1) for wake in hints.read(said.payload)
                    ]
                    pause = 0.0  # a line that was good is replaced at once: the longer without, the more is missed
                    if heard:
                        self._pass_on(loop, heard)
            except (psycopg.Error, StorageError):
                log.info("PostgreSQL's notifications cannot be heard; tried again", exc_info=True)
                again = True
            finally:
                let_go(db)

    def _pass_on(self, loop: asyncio.AbstractEventLoop, wakes: Collection[Wake]) -> None:
        def add() -> None:
            for pending in self._listeners:
                pending.add(wakes)

        hints.tell(loop, add)


def _forget(db: TimedConnection) -> None:
    """Nothing that is said here has to outlive a crash."""
    db.execute("SET synchronous_commit = off")


def _say(db: TimedConnection, wakes: Iterable[Wake]) -> None:
    db.execute(
        "SELECT count(pg_notify(%s, said)) FROM unnest(%s::text[]) AS said", (_CHANNEL, list(hints.written(wakes)))
    )
