"""The threads that block for the event loop."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator

import anyio
import pytest

from holdfast.core.errors import StorageUnavailableError
from holdfast.storage.worker_thread import WorkerThread
from holdfast.testing.contracts.samples import GUARD

pytestmark = pytest.mark.anyio


def nothing() -> None:
    pass


@pytest.fixture
async def worker() -> AsyncIterator[WorkerThread]:
    worker = WorkerThread("test")
    yield worker
    await worker.close(nothing)


async def test_work_is_done_in_order_on_one_thread(worker: WorkerThread) -> None:
    """What is asked for first is done first, all of it on the same thread, and every caller gets its own answer."""
    threads: list[int] = []

    def work() -> int:
        threads.append(threading.get_ident())
        return len(threads)

    with anyio.fail_after(GUARD):
        assert await asyncio.gather(*(worker.call(work) for _ in range(100))) == list(range(1, 101))
    assert len({*threads, threading.get_ident()}) == 2


@pytest.mark.parametrize("error", [ValueError("no"), StopIteration()])
async def test_what_the_work_raises_is_the_callers(worker: WorkerThread, error: Exception) -> None:
    """Any exception reaches whoever asked, and the thread goes on."""

    def fail() -> None:
        raise error

    with pytest.raises((type(error), RuntimeError)), anyio.fail_after(GUARD):
        await worker.call(fail)
    assert await worker.call(lambda: "still there") == "still there"


async def test_a_worker_is_busy_until_its_work_is_done(worker: WorkerThread) -> None:
    """L6: callers that leave do not make a thread idle which is still at their work: others would queue behind it."""
    go = threading.Event()
    with anyio.move_on_after(0.0):
        await worker.call(lambda: go.wait(GUARD))
    assert worker.waiting == 1
    go.set()
    with anyio.fail_after(GUARD):
        assert await worker.call(lambda: "next") == "next"
    assert worker.waiting == 0


async def test_a_cancelled_call_is_done_to_its_end_and_leaves_no_complaint() -> None:
    """The caller goes at once, the work does not stop halfway, and its late exception is nobody's."""
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    worker, begun, may_end = WorkerThread("test"), threading.Event(), threading.Event()
    ended: list[str] = []

    def work() -> None:
        begun.set()
        assert may_end.wait(GUARD)
        ended.append("first")
        raise ValueError

    with anyio.fail_after(GUARD):
        first = asyncio.ensure_future(worker.call(work))
        second = asyncio.ensure_future(worker.call(lambda: ended.append("second")))
        await anyio.to_thread.run_sync(begun.wait)
        first.cancel()
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        assert (first.cancelled(), second.cancelled(), ended) == (True, True, [])
        may_end.set()
        await worker.close(nothing)
    assert ended == ["first", "second"]
    del first, second
    gc.collect()
    assert complaints == []


async def test_closing_does_what_was_asked_for_and_refuses_the_rest() -> None:
    """Work that was taken is done before the last word; later calls are refused; closing twice is harmless."""
    worker = WorkerThread("test")
    done: list[str] = []
    with anyio.fail_after(GUARD):
        call = asyncio.ensure_future(worker.call(lambda: done.append("asked")))
        await anyio.lowlevel.checkpoint()
        await worker.close(lambda: done.append("last"))
        await call
        await worker.close(lambda: done.append("again"))
    assert done == ["asked", "last"]
    with pytest.raises(StorageUnavailableError):
        await worker.call(nothing)
    assert "test" not in {thread.name for thread in threading.enumerate()}


def test_a_loop_that_is_closed_meanwhile_is_no_trouble() -> None:
    """An answer that comes after its loop has gone is dropped, and the thread serves the next loop."""
    worker, begun, may_end = WorkerThread("test"), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert may_end.wait(GUARD)

    async def ask_and_leave() -> None:
        call = asyncio.ensure_future(worker.call(work))
        await anyio.to_thread.run_sync(begun.wait)
        call.cancel()

    async def ask_again() -> str:
        answer = await worker.call(lambda: "here")
        await worker.close(nothing)
        return answer

    asyncio.run(ask_and_leave())
    may_end.set()
    assert asyncio.run(ask_again()) == "here"
