"""The body of an answer, handed over as it arrives: no task is woken for a piece, and where many streams have something
at once, they are read in rounds."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import aiohttp
    from aiohttp import ClientResponse

log = logging.getLogger("holdfast.agents")

_EACH: Final = 0.0001
"""Seconds between two rounds for each stream of the first: somewhat more than a piece costs, from its model to its
client."""
_LEAST, _MOST = 0.001, 0.1
"""Seconds: a shorter time between rounds is none, for a timer is no finer; a longer one would be seen."""


class Rounds:
    """The streams of one event loop that have something to be read. If they are few, they are read at once. A round of
    many is followed by the next only after as long as a process can well do with that many pieces. What comes until
    then makes larger ones, of which there are fewer to decode, to commit and to send: in a process with more than
    10,000 pieces a second to do, tokens gather here and cost less, and there is time left for everything else. With
    less to do than that, rounds are small and follow one another at once."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], None]] = []
        self._next_at = 0.0

    def add(self, arrived: Callable[[], None], loop: asyncio.AbstractEventLoop) -> None:
        self._waiting.append(arrived)
        if len(self._waiting) == 1:
            if loop.time() < self._next_at:
                loop.call_at(self._next_at, self._read, loop)
            else:
                loop.call_soon(self._read, loop)  # not at once: more of the same read may be to come

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting, self._waiting = self._waiting, []
        pause = len(waiting) * _EACH
        if pause >= _LEAST:
            self._next_at = loop.time() + min(pause, _MOST)
        for arrived in waiting:
            try:
                arrived()
            except Exception:
                log.exception("a stream could not be read")  # and the others can


def left_over(response: "ClientResponse") -> bytes:
    """What had arrived when the connection broke: aiohttp's reader gives the error instead of it, and has no public
    way around that."""
    return left_over_of(response.content)


def left_over_of(content: "aiohttp.StreamReader") -> bytes:
    return content._read_nowait(-1) if content._buffer else b""


class Following:
    """Hands over a body as it arrives. aiohttp wakes one future when there is something to read; this stands in that
    future's place, and calls a function instead of waking a task. As with `left_over`, there is no public way to it."""

    def __init__(
        self,
        response: "ClientResponse",
        loop: asyncio.AbstractEventLoop,
        rounds: Rounds,
        take: Callable[[bytes], bool],
    ) -> None:
        """`take` says whether it wants more."""
        self._content = response.content
        self._loop = loop
        self._rounds = rounds
        self._take = take
        self._over: asyncio.Future[None] = loop.create_future()

    async def run(self) -> None:
        """Until `take` has had enough or raises; or there is an end or a break, which reading tells about."""
        if not self._listen():
            return
        try:
            await self._over
        finally:
            self._content._waiter = None

    def _listen(self) -> bool:
        content = self._content
        if content._buffer or content._eof or content._exception is not None or content._waiter is not None:
            return False
        content._waiter = self  # type: ignore[assignment]
        return True

    # What aiohttp calls of the future that it takes this for.

    def done(self) -> bool:
        return False

    def set_result(self, result: None) -> None:
        self._rounds.add(self._arrived, self._loop)

    def set_exception(self, error: BaseException) -> None:
        self._rounds.add(self._arrived, self._loop)

    def _arrived(self) -> None:
        if self._over.done():  # the task was cancelled
            return
        try:
            data = self._read()
            if (not data or self._take(data)) and self._listen():
                return
        except Exception as error:  # noqa: BLE001 - the loop calls this, so it is raised where somebody waits
            if not self._over.done():  # taking it may have had the task cancelled
                self._over.set_exception(error)
            return
        if not self._over.done():
            self._over.set_result(None)

    def _read(self) -> bytes:
        """`left_over_of` for the usual case, pieces that came while nothing was held back: aiohttp resumes a reading
        that was never paused with every piece that it gives out, and that is half of what reading costs."""
        content = self._content
        buffer, protocol = content._buffer, content._protocol
        if not buffer or content._buffer_offset or protocol._reading_paused or protocol._buffer_paused:
            return left_over_of(content)
        if len(buffer) == 1:
            data = buffer.popleft()
        else:
            data = b"".join(buffer)
            buffer.clear()
        content._size -= len(data)
        content._cursor += len(data)
        if content._http_chunk_splits:
            content._http_chunk_splits.clear()
        return data
