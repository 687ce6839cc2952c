"""A thread that runs blocking calls one after the other: each database connection belongs to one.

asyncio only. Not `to_thread` or an executor: a commit takes about 25 µs, and those cost as much again.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from holdfast.core.errors import StorageUnavailableError

T = TypeVar("T")

_Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class WorkerThread:
    """Runs calls in order. The queue is bounded by the number of callers: each waits for its call."""

    def __init__(self, name: str) -> None:
        self.waiting = 0
        """The number of unfinished calls, including those whose caller was cancelled."""
        self._closed = False
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name=name, daemon=True)
        """Started by the first call."""

    async def call(self, work: Callable[[], T]) -> T:
        """Return or raise what `work` does. A cancelled caller returns at once; `work` still runs to its end."""
        if self._closed:
            raise StorageUnavailableError("The storage is closed.")
        return await self.submit(work)

    async def close(self, last: Callable[[], None]) -> None:
        """Finish the calls so far, then `last`, then end the thread. Later calls are refused."""
        if self._closed:
            return
        self._closed = True
        done = self.submit(last)
        self._jobs.put(None)
        try:
            await done
        finally:
            if done.done() and not done.cancelled():
                self._thread.join()

    def submit(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """`call` for a caller that does not wait."""
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
        if future.done():
            return  # cancelled; an exception set now would be logged as never retrieved
        if error is None:
            future.set_result(value)
        elif isinstance(error, StopIteration):  # a future does not accept this one
            future.set_exception(RuntimeError(f"the work raised {error!r}"))
        else:
            future.set_exception(error)
