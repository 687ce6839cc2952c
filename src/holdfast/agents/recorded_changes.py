"""Runs programs between two looks at the files that they may change."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from anyio import to_thread

from holdfast.ports.tool import ChangeRecorder

T = TypeVar("T")


async def run_recorded(recorder: ChangeRecorder | None, work: Callable[[], Awaitable[T]]) -> T:
    """The second look is taken also when the work fails or is cancelled; its time is limited by the recorder."""
    if recorder is None:
        return await work()
    await to_thread.run_sync(recorder.before_program)
    try:
        return await work()
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(recorder.after_program)
