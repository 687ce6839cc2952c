"""`Wakeups` by LISTEN and NOTIFY. Hints that are added while a NOTIFY is under way are batched into the next, so
there is at most one per commit of the journal, and fewer the busier a node is.

Each process has one connection that listens and one that notifies, on a thread each.
"""

import itertools
from collections.abc import AsyncIterator, Collection, Generator, Iterable
from contextlib import asynccontextmanager, closing
from typing import Final

import psycopg

from holdfast.core.errors import StorageError
from holdfast.core.ids import NodeId
from holdfast.ports.wakeups import Wake
from holdfast.storage import wakeup_transport
from holdfast.storage.in_memory.wakeups import PendingHints
from holdfast.storage.postgres.connection import PostgresConfig, TimedConnection

_CHANNEL: Final = "holdfast"
_POLL: Final = 0.2
_POLLS_PER_CHECK: Final = 50


class PostgresWakeups:
    def __init__(self, config: PostgresConfig) -> None:
        self._config = config
        self._receiver = wakeup_transport.HintReceiver(
            "postgres-listener", self._receive, (psycopg.Error, StorageError), ready_within=config.answer_within
        )
        self._sender = config.worker("wakeups", _without_sync)
        self._outbox = wakeup_transport.HintOutbox(lambda wakes: self._sender.submit(lambda db: _notify(db, wakes)))

    @asynccontextmanager
    async def listen(self, node: NodeId) -> AsyncIterator[PendingHints]:
        pending = PendingHints()
        async with self._receiver.listen(pending):
            yield pending

    async def notify(self, node: NodeId, wakes: Collection[Wake]) -> None:
        self._outbox.put(wakes)

    async def close(self) -> None:
        await self._outbox.close()
        await self._sender.close()
        await self._receiver.close()

    def _receive(self) -> Generator[Collection[Wake], None, None]:
        with closing(self._config.connect()) as db:
            db.execute(f"LISTEN {_CHANNEL}")
            yield ()
            for n in itertools.count(1):
                if n % _POLLS_PER_CHECK == 0:
                    db.execute("SELECT 1")  # silence does not prove that the server is there
                found = db.notifies(timeout=_POLL, stop_after=1)
                yield [wake for notification in found for wake in wakeup_transport.from_text(notification.payload)]


def _without_sync(db: TimedConnection) -> None:
    """Hints need not survive a crash."""
    db.execute("SET synchronous_commit = off")


def _notify(db: TimedConnection, wakes: Iterable[Wake]) -> None:
    texts = list(wakeup_transport.to_texts(wakes))
    db.execute("SELECT count(pg_notify(%s, hints)) FROM unnest(%s::text[]) AS hints", (_CHANNEL, texts))
