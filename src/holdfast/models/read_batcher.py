"""Batches the reads of many streams, so that a busy process handles fewer and larger pieces."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

log = logging.getLogger("holdfast.models")

Deliver = Callable[[], int]  # Handles what a stream has received; returns how many bytes that were

_PAUSE_PER_STREAM: Final = 0.0001
"""Seconds between two batches for each stream in the first: slightly more than handling one piece costs."""
_PAUSE_PER_FULL_STREAM: Final = 0.0003
"""The same for a stream that sends faster than a person reads: fewer, larger pieces cost it nothing but fluency."""
_FULL_PIECE: Final = 2048  # Bytes in one piece that show this: about eight tokens
_MIN_PAUSE: Final = 0.001  # Timers are no finer than this
_MAX_PAUSE: Final = 0.1  # A longer pause would be visible


class ReadBatcher:
    """The streams of one event loop that have data to handle. A few streams are handled at once. After a batch of many
    the next one waits about as long as the process needs to handle that many pieces; data that arrives meanwhile makes
    larger pieces, which are cheaper to decode, commit and send. Pauses begin at about 10,000 pieces a second, or 3,000
    of streams at full speed."""

    def __init__(self) -> None:
        self._waiting: list[Deliver] = []
        self._next_at = 0.0

    def add(self, deliver: Deliver, loop: asyncio.AbstractEventLoop) -> None:
        self._waiting.append(deliver)
        if len(self._waiting) == 1:
            if loop.time() < self._next_at:
                loop.call_at(self._next_at, self._deliver_all, loop)
            else:
                loop.call_soon(self._deliver_all, loop)  # not at once: the same poll may bring more streams

    def _deliver_all(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting, self._waiting = self._waiting, []
        now, pause = loop.time(), 0.0
        for deliver in waiting:
            try:
                pause += _PAUSE_PER_STREAM if deliver() < _FULL_PIECE else _PAUSE_PER_FULL_STREAM
            except Exception:  # one stream's failure must not stop the others
                log.exception("Handling the data of a stream failed")
        if pause >= _MIN_PAUSE:
            self._next_at = now + min(pause, _MAX_PAUSE)
