"""Group commit of the store: transactions that wait at the same time are committed together, each in a savepoint of its
own, and acknowledged after the one commit. One that fails is rolled back alone. That of the journal:
`engine.group_commit`.

There is no timer: a transaction that is alone is committed at once; those that arrive meanwhile go together next.
"""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from holdfast.core.errors import StorageUnavailableError
from holdfast.ports.store import Tx
from holdfast.storage.sqlite import database
from holdfast.storage.worker_thread import ConnectionWorker, resolve

T = TypeVar("T")

_MAX_BATCH: Final = 100  # Transactions in one commit: the first one waits for the others


class _Transaction(NamedTuple):
    work: Callable[[Tx], Any]
    future: "asyncio.Future[Any]"


_Outcome = tuple["asyncio.Future[Any]", Any, BaseException | None]
_Deliver = Callable[[Sequence[_Outcome]], None]


class StoreGroupCommit:
    """For one event loop."""

    def __init__(self, worker: ConnectionWorker[sqlite3.Connection], begin: Callable[[sqlite3.Connection], Tx]) -> None:
        self._worker = worker
        self._begin = begin
        self._waiting: deque[_Transaction] = deque()
        self._scheduled = False

    async def transact(self, work: Callable[[Tx], T]) -> T:
        """Return or raise what `work` does, once it is committed. A cancelled caller returns at once."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._waiting.append(_Transaction(work, future))
        if not self._scheduled:
            self._scheduled = True
            try:
                self._schedule(loop)
            except BaseException:  # no job was queued, and nobody came in between
                self._scheduled = False
                self._waiting.pop()
                raise
        return await future

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        taken: list[_Transaction] = []

        def deliver(outcomes: Sequence[_Outcome]) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(_resolve, outcomes)

        def commit(db: sqlite3.Connection) -> None:
            taken.extend(self._take())
            for at in range(0, len(taken), _MAX_BATCH):
                self._commit(db, taken[at : at + _MAX_BATCH], deliver)

        def done(job: "asyncio.Future[None]") -> None:
            error = job.exception()
            if error is not None:  # the connection or the commit failed
                _resolve([(each.future, None, error) for each in taken or self._take()])

        self._worker.submit(commit).add_done_callback(done)

    def _take(self) -> list[_Transaction]:
        self._scheduled = False  # first: whoever comes while the rest is taken schedules again
        taken: list[_Transaction] = []
        while self._waiting:
            taken.append(self._waiting.popleft())
        return taken

    def _commit(self, db: sqlite3.Connection, batch: Sequence[_Transaction], deliver: _Deliver) -> None:
        """Raises sqlite3.Error if the connection is of no more use; those that are not delivered have failed."""
        outcomes = self._run_together(db, batch) if len(batch) > 1 else None
        if outcomes is not None:
            db.execute("COMMIT")
            deliver(outcomes)
            return
        for each in batch:
            try:
                deliver([self._commit_alone(db, each)])
            except sqlite3.Error as error:
                translated = self._worker.translate(error)
                deliver([(each.future, None, translated)])
                if isinstance(translated, StorageUnavailableError):
                    raise

    def _run_together(self, db: sqlite3.Connection, batch: Sequence[_Transaction]) -> list[_Outcome] | None:
        """Runs the transactions and returns their outcomes, to be committed; None if SQLite reports an error. One of
        them may have caused it, so everything is rolled back, and the caller runs each by itself."""
        outcomes: list[_Outcome] = []
        try:
            db.execute("BEGIN IMMEDIATE")
            for work, future in batch:
                db.execute("SAVEPOINT one")
                try:
                    outcomes.append((future, work(self._begin(db)), None))
                except sqlite3.Error:
                    raise
                except BaseException as error:  # noqa: BLE001 - it is raised in the caller
                    db.execute("ROLLBACK TO one")
                    outcomes.append((future, None, error))
                db.execute("RELEASE one")
        except sqlite3.Error:
            database.roll_back(db)
            return None
        return outcomes

    def _commit_alone(self, db: sqlite3.Connection, one: _Transaction) -> _Outcome:
        try:
            with database.transaction(db):
                value = one.work(self._begin(db))
        except sqlite3.Error:
            raise
        except BaseException as error:  # noqa: BLE001 - it is raised in the caller
            return one.future, None, error
        return one.future, value, None


def _resolve(outcomes: Sequence[_Outcome]) -> None:
    for outcome in outcomes:
        resolve(*outcome)
