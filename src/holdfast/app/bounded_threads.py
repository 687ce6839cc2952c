"""Calls in threads that may never end, as on a network file system that hangs: at most so many threads wait for it."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

T = TypeVar("T")


async def run_bounded(threads: CapacityLimiter, work: Callable[[], T]) -> T:
    """The result of `work`, when one of the `threads` is free. A call that is given up keeps its thread until it ends:
    anyio's own limit would count only the calls that somebody waits for."""
    loop, borrower = asyncio.get_running_loop(), object()
    begins = threading.Lock()  # Taken once: by the call, or by its end if it has not begun

    def run() -> T:
        if not begins.acquire(blocking=False):
            raise TimeoutError  # nobody waits for it
        try:
            return work()
        finally:
            with suppress(RuntimeError):  # the process ends: its loop is closed
                loop.call_soon_threadsafe(threads.release_on_behalf_of, borrower)

    await threads.acquire_on_behalf_of(borrower)
    try:
        return await to_thread.run_sync(run, abandon_on_cancel=True, limiter=CapacityLimiter(1))
    finally:
        if begins.acquire(blocking=False):
            threads.release_on_behalf_of(borrower)
