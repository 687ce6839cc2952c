"""How a run is sent to its client: as events, as chunks, or as one answer when it has ended. All three are held by the
guard when the framework has returned, and notice at once that the client has left."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Final, Protocol

import anyio
from anyio.abc import TaskGroup
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.core.events import Entry, Failure
from holdfast.core.transcript import Transcript, fold
from holdfast.engine.feed import Subscription
from holdfast.faces.http.sources import next_entries
from holdfast.faces.http.stream import STREAM, EventStream, Line, Write
from holdfast.faces.openai import errors, frames
from holdfast.faces.openai.chunks import CUT, ChatChunks

Headers = Sequence[tuple[bytes, bytes]]
_HEAD_WAIT: Final = 5.0
"""Seconds that a chat stream waits for its first word before it answers 200. Until then a failure has a status."""


class Translator(Protocol):
    """A run's events in another wire format; pure."""

    @property
    def ended(self) -> bool:
        """Nothing comes any more."""

    def feed(self, entries: Sequence[Entry]) -> list[bytes]: ...
    def cut(self) -> list[bytes]:
        """What is sent where the stream ends without an end. It has ended then."""


class TranslatedSource:
    """What comes while the client has everything is translated and written in the moment it is durable; what its line
    does not take then is kept, and sent by `next`."""

    def __init__(
        self, subscription: Subscription, translator: Translator, opening: Sequence[bytes] = (), *, attached: bool
    ) -> None:
        self._subscription = subscription
        self._translator = translator
        self._attached = attached
        self._held = list(opening)
        self._seen = 0  # the last event that was translated; the subscription's cursor may be behind it
        self._wrong: Exception | None = None

    def start(self, tasks: TaskGroup) -> None:
        pass

    def close(self) -> None:
        self._subscription.close()

    async def next(self) -> Sequence[bytes] | None:
        while not self._held:
            if self._wrong is not None:
                raise self._wrong
            if self._translator.ended:
                return None
            self._held += await self._more()
        held, self._held = self._held, []
        return held

    async def wait(self, enough: Callable[[], bool]) -> None:
        """Until there is enough, which `next` then gives, or the end."""
        while not enough() and not self._translator.ended:
            self._held += await self._more()

    async def _more(self) -> list[bytes]:
        entries = await next_entries(self._subscription, patient=self._attached)
        if entries is None:
            return self._translator.cut()
        if entries[0].seq <= self._seen:
            entries = [entry for entry in entries if entry.seq > self._seen]
        return self._translator.feed(entries)

    async def follow(self, write: Write) -> None:
        if not self._held:
            await self._subscription.follow(partial(self._written, write))

    def _written(self, write: Write, entries: Sequence[Entry]) -> bool:
        try:
            refused = write_translated(write, self._translator, entries)
        except Exception as error:  # noqa: BLE001 - the boundary to the writer's task; `next` raises it in the stream's
            self._wrong = error
            return False
        if refused is None:
            return True
        self._held, self._seen = refused, entries[-1].seq
        return False


def write_translated(write: Write, translator: Translator, entries: Sequence[Entry]) -> list[bytes] | None:
    """What the line did not take."""
    found = translator.feed(entries)
    return None if not found or write(found[0] if len(found) == 1 else b"".join(found)) else found


OPENING: Final = b": a durable run\n\n"
"""A comment: some clients take anything else that stands alone for an event."""


class TranslatedStream(EventStream):
    def __init__(self, source: TranslatedSource, line: Line, held: AsyncExitStack | None, headers: Headers) -> None:
        super().__init__(source, line, held, headers, source.follow, OPENING)


class ChatStream(TranslatedStream):
    """A stream whose status is known only when its first word is."""

    def __init__(
        self,
        source: TranslatedSource,
        translator: ChatChunks,
        line: Line,
        held: AsyncExitStack | None,
        headers: Headers,
    ) -> None:
        super().__init__(source, line, held, headers)
        self._words = source
        self._chunks = translator
        self._named = headers

    async def refusal(self) -> Response | None:
        chunks = self._chunks
        with anyio.move_on_after(_HEAD_WAIT):
            await self._words.wait(lambda: chunks.begun)
        return None if chunks.begun or chunks.failed is None else failed_run(chunks.failed, self._named)


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
            return errors.answer(503, CUT.message, "stream_cut", None, {"Retry-After": "2"})
        return self._render(told)


async def _watch(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
