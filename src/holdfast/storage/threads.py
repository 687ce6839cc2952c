"""A thread that does one thing after another, for code that must block: an SQLite connection belongs to one such
thread.

asyncio only. Neither `to_thread` nor an executor: a commit is some 25 µs of work, and those cost as much again.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any, TypeVar

from holdfast.core.errors import StorageUnavailable

T = TypeVar("T")

_Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class Worker:
    """Runs what it is given in order. Its queue is as long as there are callers waiting, and no longer."""

    def __init__(self, name: str) -> None:
        self.waiting = 0
        """What was asked for and is not done yet, or not answered yet. Of a caller that went away, too."""
        self._closed = False
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name=name, daemon=True)
        """Started by the first call."""

    def idle(self) -> bool:
        """Whether its thread does nothing, and will not before somebody asks for something: on the event loop, what
        belongs to it may be touched until the next `await`."""
        return not self.waiting and not self._closed

    async def call(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises. A caller that is cancelled goes at once; `work` is done to its end all the
        same."""
        if self._closed:
            raise StorageUnavailable("The storage was closed.")
        return await self.submit(work)

    async def close(self, last: Callable[[], None]) -> None:
        """Do what was asked for so far, then `last`, then end the thread. Calls after this are refused."""
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
        """The same for a caller that does not wait."""
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
            except BaseException as raised:  # noqa: BLE001  a task boundary: it is raised where the work was asked for
                error = raised
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(self._answer, future, value, error)
            del job, loop, future, work, value, error  # an idle thread keeps nothing alive

    def _answer(self, future: "asyncio.Future[Any]", value: object, error: BaseException | None) -> None:
        self.waiting -= 1
        if future.done():
            return  # cancelled; an exception set now would be reported as never retrieved
        if error is None:
            future.set_result(value)
        elif isinstance(error, StopIteration):  # a future refuses this one
            future.set_exception(RuntimeError(f"the work raised {error!r}"))
        else:
            future.set_exception(error)


class Away:
    """That a server could not be reached, and until when. Where bytes go nowhere an attempt takes seconds: who asked
    before one failed is told with it, and only who asks later makes the next. Of one thread."""

    def __init__(self) -> None:
        self._until = float("-inf")
        self._why = ""

    def check(self, asked_at: float) -> None:
        if asked_at < self._until:
            raise StorageUnavailable(self._why)

    def note(self, why: Exception) -> None:
        self._until, self._why = monotonic(), str(why)
