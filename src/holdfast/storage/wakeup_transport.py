"""How wake-ups travel between nodes over PostgreSQL or Redis: their text format, the outbox that batches them, and the
thread that receives them. What they mean: `ports.wakeups`; who sends and awaits them: `engine.signals`."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any, Final, Literal, Protocol

from holdfast.core.ids import NodeId, RunId
from holdfast.ports.wakeups import Wake
from holdfast.storage.in_memory.wakeups import MAX_PENDING, PendingHints

log = logging.getLogger("holdfast.storage")

Kind = Literal["queue", "control", "appended", "changed"]
_LETTERS: Final[Mapping[Kind, str]] = {"queue": "q", "control": "c", "appended": "a", "changed": "h"}
_KINDS: Final[Mapping[str, Kind]] = {letter: kind for kind, letter in _LETTERS.items()}
_MAX_TEXT: Final = 7_000  # Bytes; a notification of PostgreSQL has at most 8,000
_RETRY_DELAY: Final = 1.0

ALL_HINTS: Final = (Wake("queue"), Wake("control"), Wake("appended"), Wake("changed"))
"""What a listener gets after hints were lost."""


def to_texts(wakes: Iterable[Wake]) -> Iterator[str]:
    """Texts with a line per hint: the letter of its kind and its run."""
    lines: list[str] = []
    size = 0
    for wake in wakes:
        line = _LETTERS[wake.kind] + (wake.run or "")
        size += len(line.encode()) + 1
        if size > _MAX_TEXT:
            yield "\n".join(lines)
            lines, size = [], len(line.encode()) + 1
        lines.append(line)
    if lines:
        yield "\n".join(lines)


def from_text(text: str) -> Iterator[Wake]:
    for line in text.split("\n"):
        kind = _KINDS.get(line[:1])
        if kind is not None:  # a newer version may have more kinds
            yield Wake(kind, RunId(line[1:]) or None)


class PeerNotifier(Protocol):
    """`ports.Wakeups` that can be closed, and whose listeners accept hints from another transport."""

    def listen(self, node: NodeId) -> contextlib.AbstractAsyncContextManager[PendingHints]: ...
    async def notify(self, node: NodeId, wakes: Collection[Wake]) -> None: ...
    async def close(self) -> None: ...


class HintOutbox:
    """Sends hints in batches: those that are added during a send go with the next one. A hint that cannot be sent is
    lost, as hints may be; so is the oldest of more than MAX_PENDING."""

    def __init__(self, send: Callable[[Iterable[Wake]], "asyncio.Future[Any]"]) -> None:
        self._send = send
        self._unsent: dict[Wake, None] = {}
        self._sending: asyncio.Future[Any] | None = None
        self._closed = False

    def put(self, wakes: Collection[Wake]) -> None:
        for wake in wakes:
            self._unsent[wake] = None
            if len(self._unsent) > MAX_PENDING:
                del self._unsent[next(iter(self._unsent))]
        if self._unsent and self._sending is None and not self._closed:
            self._send_batch()

    def _send_batch(self) -> None:
        batch, self._unsent = self._unsent, {}
        self._sending = self._send(batch)
        self._sending.add_done_callback(self._on_sent)

    def _on_sent(self, done: "asyncio.Future[Any]") -> None:
        self._sending = None
        if not done.cancelled():
            done.exception()  # retrieved, so that asyncio does not log it
        if self._unsent and not self._closed:
            self._send_batch()

    async def close(self) -> None:
        self._closed = True
        if self._sending is not None:
            with contextlib.suppress(Exception):
                await asyncio.shield(self._sending)


@dataclass(slots=True, eq=False)
class HintReceiver:
    """The listeners of a process, and the thread that receives hints for them. It reconnects after an error, and then
    tells the listeners that hints may be lost."""

    name: str
    receive: Callable[[], Generator[Collection[Wake], None, None]]
    """Connects, yields once, and then yields the hints of every poll, if any. It may raise one of `errors`."""
    errors: tuple[type[Exception], ...]
    ready_within: float  # Seconds that the first listener waits for the connection
    lost: Collection[Wake] = ALL_HINTS  # The hints after a reconnection
    _listeners: set[PendingHints] = field(default_factory=set)
    _thread: Thread | None = None
    _closing: Event = field(default_factory=Event)

    @asynccontextmanager
    async def listen(self, pending: PendingHints) -> AsyncIterator[None]:
        """`pending` gets hints from the moment this is entered, if the server answers in time."""
        self._listeners.add(pending)
        try:
            if self._thread is None:
                ready = asyncio.Event()
                arguments = (asyncio.get_running_loop(), ready)
                self._thread = Thread(target=self._run, args=arguments, name=self.name, daemon=True)
                self._thread.start()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(ready.wait(), self.ready_within)
            yield
        finally:
            self._listeners.discard(pending)

    async def close(self) -> None:
        self._closing.set()
        if self._thread is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def _run(self, loop: asyncio.AbstractEventLoop, ready: asyncio.Event) -> None:
        delay, reconnects = 0.0, False
        while not self._closing.wait(delay):
            delay = _RETRY_DELAY
            try:
                with contextlib.closing(self.receive()) as polls:
                    next(polls)
                    _call(loop, ready.set)
                    if reconnects:
                        self._pass_on(loop, self.lost)
                    while not self._closing.is_set():
                        wakes = next(polls)
                        delay = 0.0  # a connection that worked is replaced at once: hints are lost meanwhile
                        if wakes:
                            self._pass_on(loop, wakes)
            except self.errors:
                log.info("%s: the connection for notifications failed; reconnecting", self.name, exc_info=True)
                reconnects = True

    def _pass_on(self, loop: asyncio.AbstractEventLoop, wakes: Collection[Wake]) -> None:
        def add() -> None:
            for pending in self._listeners:
                pending.add(wakes)

        _call(loop, add)


def _call(loop: asyncio.AbstractEventLoop, work: Callable[[], object]) -> None:
    """Run `work` on the loop, from another thread."""
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
        loop.call_soon_threadsafe(work)
