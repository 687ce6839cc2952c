"""How a run is sent to its client: as events, as chunks, or as one answer when it has ended. All three are held by the
guard when the framework has returned, and notice at once that the client has left."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Final

import anyio
from anyio.abc import TaskGroup
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.core.events import Entry, Failure
from holdfast.core.transcript import Transcript, fold
from holdfast.engine.feed import Subscription
from holdfast.faces.http.sources import next_entries
from holdfast.faces.http.stream import STREAM, EventStream, Line
from holdfast.faces.openai import chunks, errors, frames
from holdfast.faces.openai.chunks import ChatChunks
from holdfast.faces.openai.events import ResponseEvents

Headers = Sequence[tuple[bytes, bytes]]
_HEAD_WAIT: Final = 5.0
"""Seconds that a chat stream waits for its first word before it answers 200. Until then a failure has a status."""
_CUT: Final = Failure("stream-cut", "The server let go of this stream. The run is kept: its id is in the headers.")


class ResponseSource:
    """Everything after the event number `after`; -1: from the start."""

    def __init__(self, subscription: Subscription, events: ResponseEvents, after: int = -1, *, attached: bool) -> None:
        self._subscription = subscription
        self._events = events
        self._after = after
        self._attached = attached
        self._opened = False

    def start(self, tasks: TaskGroup) -> None:
        pass

    def close(self) -> None:
        self._subscription.close()

    async def next(self) -> Sequence[bytes] | None:
        events = self._events
        if not self._opened:
            self._opened = True
            if self._after < 0:
                return events.open()
            events.open()
        while True:
            if events.ended:
                return None
            entries = await next_entries(self._subscription, patient=self._attached)
            if entries is None:
                return self._cut()
            before = events.number
            found = events.feed(entries)
            if before <= self._after:
                found = found[self._after + 1 - before :]
            if found:
                return found

    def _cut(self) -> Sequence[bytes]:
        """Ends the stream without an end: under the last number, so that it can be gone on from."""
        events, told = self._events, frames.dump(_CUT.message)
        events.ended = True
        data = (
            b'event: error\ndata: {"type":"error","code":"server_error","message":%s,"param":null,"sequence_number":%d}'
        )
        return [data % (told, events.number - 1) + b"\n\n"]


class ChatSource:
    def __init__(self, subscription: Subscription, translator: ChatChunks, *, attached: bool) -> None:
        self._subscription = subscription
        self._chunks = translator
        self._attached = attached
        self._held: list[bytes] = []

    def start(self, tasks: TaskGroup) -> None:
        pass

    def close(self) -> None:
        self._subscription.close()

    async def first(self) -> Failure | None:
        """Wait for the first word, for a while. A failure: it ended before it."""
        with anyio.move_on_after(_HEAD_WAIT):
            while not self._chunks.begun and not self._chunks.ended:
                self._held += await self._more() or []
        return None if self._chunks.begun else self._chunks.failed

    async def next(self) -> Sequence[bytes] | None:
        while True:
            if self._held:
                held, self._held = self._held, []
                return held
            if self._chunks.ended:
                return None
            self._held += await self._more()

    async def _more(self) -> list[bytes]:
        entries = await next_entries(self._subscription, patient=self._attached)
        if entries is not None:
            return self._chunks.feed(entries)
        self._chunks.ended = True
        return [chunks.broken(_CUT)]


OPENING: Final = b": a durable run\n\n"
"""A comment: some clients take anything else that stands alone for an event."""


class ResponseStream(EventStream):
    def __init__(self, source: ResponseSource, line: Line, held: AsyncExitStack | None, headers: Headers) -> None:
        super().__init__(source, line, held, headers, OPENING)


class ChatStream(EventStream):
    """A stream whose status is known only when its first word is."""

    def __init__(self, source: ChatSource, line: Line, held: AsyncExitStack | None, headers: Headers) -> None:
        super().__init__(source, line, held, headers, OPENING)
        self._chat = source
        self._named = headers

    async def refusal(self) -> Response | None:
        failed = await self._chat.first()
        return None if failed is None else failed_run(failed, self._named)


def failed_run(failed: Failure, headers: Headers) -> Response:
    """The engine has tried again where that could help: the client is not to."""
    status, body = errors.of_failure(failed)
    return as_json(status, frames.dump(body), [*headers, (b"x-should-retry", b"false")])


def as_json(status: int, body: bytes, headers: Headers = ()) -> Response:
    answer = Response(body, status, media_type="application/json")
    answer.raw_headers += headers
    return answer


class WholeAnswer(Response):
    """One answer, when the run has ended. The client that leaves before takes an attached run with it."""

    def __init__(
        self,
        subscription: Subscription,
        render: Callable[[Transcript], Response],
        held: AsyncExitStack | None,
    ) -> None:
        self.background = None
        self.status_code = 200
        self._subscription = subscription
        self._render = render
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[STREAM] = self

    async def run(self, scope: Scope, receive: Receive, send: Send, begin: Send) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_watch, receive, tasks.cancel_scope)
                answer = await self._collected()
                await answer(scope, receive, begin)
                tasks.cancel_scope.cancel()
        finally:
            self._subscription.close()
            if self._held is not None:
                await self._held.aclose()

    async def _collected(self) -> Response:
        found: list[Entry] = []
        while (entries := await next_entries(self._subscription, patient=self._held is not None)) is not None:
            found += entries
        told = fold(found)
        if not told.ended:
            return errors.answer(503, _CUT.message, "stream_cut", None, {"Retry-After": "2"})
        return self._render(told)


async def _watch(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
