"""Wake-ups on their way between nodes: as text, and gathered while the last ones are still being sent."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, Protocol

from holdfast.core.ids import NodeId, RunId
from holdfast.ports import Wake
from holdfast.storage.memory.wakeups import Pending

Kind = Literal["queue", "control", "appended", "changed"]
_KINDS: Final[Mapping[Kind, str]] = {"queue": "q", "control": "c", "appended": "a", "changed": "h"}
_NAMES: Final[Mapping[str, Kind]] = {short: kind for kind, short in _KINDS.items()}
_LONGEST: Final = 7_000
"""Bytes of one text; PostgreSQL takes 8,000."""


MISSED: Final = (Wake("queue"), Wake("control"), Wake("appended"), Wake("changed"))
"""What a listener is told that could not hear for a while."""


def written(wakes: Iterable[Wake]) -> Iterator[str]:
    """Lines of a kind's letter and a run, as many to a text as fit."""
    lines: list[str] = []
    size = 0
    for wake in wakes:
        line = _KINDS[wake.kind] + (wake.run or "")
        size += len(line.encode()) + 1
        if size > _LONGEST:
            yield "\n".join(lines)
            lines, size = [], len(line.encode()) + 1
        lines.append(line)
    if lines:
        yield "\n".join(lines)


def read(text: str) -> Iterator[Wake]:
    for line in text.split("\n"):
        kind = _NAMES.get(line[:1])
        if kind is not None:  # a newer version may say more
            yield Wake(kind, RunId(line[1:]) or None)


class Others(Protocol):
    """`ports.Wakeups` of an adapter that is closed, and whose listeners can be given hints of another."""

    def listen(self, node: NodeId) -> contextlib.AbstractAsyncContextManager[Pending]: ...
    async def notify(self, node: NodeId, wakes: Collection[Wake]) -> None: ...
    async def close(self) -> None: ...


class Outbox:
    """What is put while something is being sent goes together with the next: the busier, the fewer. What cannot be sent
    is lost, as hints may be; over `limit` the oldest is."""

    def __init__(self, limit: int, send: Callable[[Iterable[Wake]], "asyncio.Future[Any]"]) -> None:
        self._limit = limit
        self._send = send
        self._unsaid: dict[Wake, None] = {}
        self._sending: asyncio.Future[Any] | None = None
        self._closed = False

    def put(self, wakes: Collection[Wake]) -> None:
        for wake in wakes:
            self._unsaid[wake] = None
            if len(self._unsaid) > self._limit:
                del self._unsaid[next(iter(self._unsaid))]
        if self._unsaid and self._sending is None and not self._closed:
            self._next()

    def _next(self) -> None:
        said, self._unsaid = self._unsaid, {}
        self._sending = self._send(said)
        self._sending.add_done_callback(self._sent)

    def _sent(self, done: "asyncio.Future[Any]") -> None:
        self._sending = None
        if not done.cancelled():
            done.exception()  # looked at, and lost
        if self._unsaid and not self._closed:
            self._next()

    async def close(self) -> None:
        self._closed = True
        if self._sending is not None:
            with contextlib.suppress(Exception):
                await asyncio.shield(self._sending)


def tell(loop: asyncio.AbstractEventLoop, work: Callable[[], object]) -> None:
    """From another thread."""
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
        loop.call_soon_threadsafe(work)
