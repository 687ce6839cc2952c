"""Worker threads for blocking calls: each runs one call after the other and owns one database connection.

asyncio only. It uses neither `to_thread` nor an executor: a commit takes about 25 µs, and a call through those as much
again.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from holdfast.core.errors import StorageError, StorageUnavailableError

T = TypeVar("T")

_Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class WorkerThread:
    """Runs calls in order. The queue is bounded by the callers, except for work whose caller was cancelled."""

    def __init__(self, name: str) -> None:
        self.waiting = 0  # The number of unfinished calls, including those whose caller was cancelled
        self._closed = False
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name=name, daemon=True)  # Started by the first call

    async def call(self, work: Callable[[], T]) -> T:
        """Return or raise what `work` does. A cancelled caller returns at once; `work` still runs to its end."""
        return await self.submit(work)

    async def close(self, last: Callable[[], None]) -> None:
        """Finish the calls so far, then `last`, then end the thread. Later calls are refused."""
        if self._closed:
            return
        done = self.submit(last)
        self._closed = True
        self._jobs.put(None)
        try:
            await done
        finally:
            if done.done() and not done.cancelled():
                self._thread.join()

    def submit(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """`call` for a caller that does not wait."""
        if self._closed:
            raise StorageUnavailableError("The storage is closed.")
        if self._thread.ident is None:
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self.waiting += 1
        self._jobs.put((loop, future, work))
        return future

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, future, work = job
            value, error = None, None
            try:
                value = work()
            except BaseException as raised:  # noqa: BLE001  a task boundary: it is raised in the caller
                error = raised
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(self._resolve, future, value, error)
            del job, loop, future, work, value, error  # an idle thread keeps nothing alive

    def _resolve(self, future: "asyncio.Future[Any]", value: object, error: BaseException | None) -> None:
        self.waiting -= 1
        resolve(future, value, error)


def resolve(future: "asyncio.Future[Any]", value: object, error: BaseException | None) -> None:
    """Give a caller what its work returned or raised, unless it was cancelled."""
    if future.done():
        return  # an exception set now would be logged as never retrieved
    if error is None:
        future.set_result(value)
    elif isinstance(error, StopIteration):  # a future does not accept this one
        future.set_exception(RuntimeError(f"the work raised {error!r}"))
    else:
        future.set_exception(error)


class Closable(Protocol):
    def close(self) -> object: ...


C = TypeVar("C", bound=Closable)


@dataclass(eq=False)
class ConnectionWorker(Generic[C]):
    """Connects at the first use, and again after the connection is lost. An attempt may take seconds, so a failed one
    fails every call that was made before it ended; only a later call makes the next attempt."""

    name: str
    _open: Callable[[], C]
    _error: type[Exception]
    translate: Callable[[Any], StorageError]  # Turns an `_error` of the library into a StorageError
    _is_usable: Callable[[C], bool] = lambda _: True  # Asked before and after each use
    _db: C | None = None  # The first connection, if there is one already

    def __post_init__(self) -> None:
        self._failed_at, self._failure = float("-inf"), ""
        self._worker = WorkerThread(self.name)

    @property
    def waiting(self) -> int:
        return self._worker.waiting

    async def run(self, work: Callable[[C], T]) -> T:
        called_at = monotonic()
        return await self._worker.call(lambda: self._run_connected(work, called_at))

    def submit(self, work: Callable[[C], T]) -> "asyncio.Future[T]":
        """`run` for a caller that does not wait."""
        called_at = monotonic()
        return self._worker.submit(lambda: self._run_connected(work, called_at))

    async def reconnect(self) -> None:
        await self._worker.call(self._connect)

    async def close(self) -> None:
        await self._worker.close(self.disconnect)

    def _run_connected(self, work: Callable[[C], T], called_at: float) -> T:
        db = self._db
        if db is None or not self._is_usable(db):
            if called_at < self._failed_at:
                raise StorageUnavailableError(self._failure)
            db = self._connect()
        try:
            return self._translated(lambda: work(db))
        except StorageUnavailableError:
            self.disconnect()
            raise
        finally:
            if self._db is not None and not self._is_usable(db):
                self.disconnect()

    def _connect(self) -> C:
        self.disconnect()
        try:
            db = self._db = self._translated(self._open)
        except StorageError as error:
            self._failed_at, self._failure = monotonic(), str(error)
            raise
        return db

    def _translated(self, call: Callable[[], T]) -> T:
        """Not a context manager, which would take a tenth of the time of a short transaction."""
        try:
            return call()
        except self._error as error:
            raise self.translate(error) from error

    def disconnect(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            with suppress(Exception):
                db.close()


class ConnectionPool(Generic[C]):
    """Work goes to the connection with the fewest callers."""

    def __init__(self, connections: Sequence[ConnectionWorker[C]]) -> None:
        self._connections = connections

    async def run(self, work: Callable[[C], T]) -> T:
        return await min(self._connections, key=lambda connection: connection.waiting).run(work)

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()
