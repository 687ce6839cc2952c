"""Batches the reads of many streams, so that a busy process handles fewer and larger pieces."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

log = logging.getLogger("holdfast.models")

Deliver = Callable[[], int]  # Handles what a stream has received; returns how many bytes that were

_PAUSE_PER_STREAM: Final = 0.0001
"""Seconds between two batches for each stream in the first: slightly more than handling one piece costs."""
_PAUSE_PER_FULL_STREAM: Final = 0.0009
"""The same for a stream that sends faster than a person reads: fewer, larger pieces cost it nothing but fluency. One
alone never waits."""
_FULL_PIECE: Final = 2048  # Bytes in one piece that show this: about eight tokens
_MIN_PAUSE: Final = 0.001  # Timers are no finer than this
_MAX_PAUSE: Final = 0.1  # A longer pause would be visible
_READ_TIME: Final = 0.001  # Seconds before a batch in which the sockets are read that were left alone until then


class PausableSource(Protocol):
    """Where the data of a stream comes from. Both calls may be repeated, and do nothing once the stream has ended."""

    def pause(self) -> None:
        """Leave what arrives in the kernel."""

    def resume(self) -> None: ...


class ReadBatcher:
    """The streams of one event loop that have data to handle. A few streams are handled at once. After a batch of many
    the next one waits about as long as the process needs to handle that many pieces; data that arrives meanwhile makes
    larger pieces, which are cheaper to decode, commit and send. Pauses begin at about 10,000 pieces a second, or 1,000
    of streams at full speed.

    A stream that has to wait is not read until shortly before the batch: each read costs a turn of the event loop and
    an acknowledgment to the sender, however little it brings."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Deliver, PausableSource | None]] = []
        self._paused: list[PausableSource] = []
        self._next_at = 0.0

    def add(self, deliver: Deliver, loop: asyncio.AbstractEventLoop, source: PausableSource | None = None) -> None:
        self._waiting.append((deliver, source))
        now = loop.time()
        if source is not None:
            self._pause(source, loop, now)
        if len(self._waiting) == 1:
            if now < self._next_at:
                loop.call_at(self._next_at, self._deliver_all, loop)
            else:
                loop.call_soon(self._deliver_all, loop)  # not at once: the same poll may bring more streams

    def _deliver_all(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting, self._waiting = self._waiting, []
        now, pause = loop.time(), 0.0
        full: list[PausableSource] = []
        for deliver, source in waiting:
            try:
                is_full = deliver() >= _FULL_PIECE
            except Exception:  # one stream's failure must not stop the others
                log.exception("The data of a model's stream could not be handled")
                continue
            pause += _PAUSE_PER_FULL_STREAM if is_full else _PAUSE_PER_STREAM
            if is_full and source is not None:
                full.append(source)
        if pause >= _MIN_PAUSE:
            self._next_at = now + min(pause, _MAX_PAUSE)
            for source in full:
                self._pause(source, loop, now)

    def _pause(self, source: PausableSource, loop: asyncio.AbstractEventLoop, now: float) -> None:
        if now > self._next_at - 2 * _READ_TIME:  # it would be resumed at once
            return
        source.pause()
        self._paused.append(source)
        if len(self._paused) == 1:
            loop.call_at(self._next_at - _READ_TIME, self._resume_all)

    def _resume_all(self) -> None:
        paused, self._paused = self._paused, []
        for source in paused:
            source.resume()
