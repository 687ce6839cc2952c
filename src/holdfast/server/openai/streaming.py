"""Sends a run to its client: as response events, as chat chunks, or as one response when it has ended. What a resumed
stream repeats: `response_events`. A run that fails before its first output is answered with an error status, later by
an event.

In all three cases the run of an attached call is cancelled as soon as the client disconnects.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Final

import anyio
from starlette.responses import Response

from holdfast.core.errors import HoldfastError
from holdfast.core.events import Entry, Failure
from holdfast.core.ids import RunId
from holdfast.core.run import Run
from holdfast.core.transcript import EMPTY, Transcript, fold
from holdfast.engine.run_feed import RunSubscription
from holdfast.server.context import ApiContext
from holdfast.server.event_sources import RunSource, next_entries, respond_with_run
from holdfast.server.event_stream import EventSource, EventStream, StreamLimits, Write
from holdfast.server.openai import errors
from holdfast.server.openai.chat_chunks import CUT_OFF, ChatChunks
from holdfast.server.openai.json_bytes import dump
from holdfast.server.openai.submit import ApiCall, submit_turn
from holdfast.server.openai.translator import Translator

Headers = Sequence[tuple[bytes, bytes]]
Respond = Callable[[Run, RunSubscription, AsyncExitStack | None], Response]
"""Makes the response of an accepted run. The stack, if any, is the connection of an attached run: closing it ends the
run."""
ConvertError = Callable[[Response], Response]
"""Makes the error response of another API from one in OpenAI's shape."""
_CANCEL_WAIT: Final = 5.0
FIRST_OUTPUT_WAIT: Final = 5.0
"""Seconds that a stream waits for its first output before it answers 200. Until then a failure has a status."""
OPENING: Final = b": a durable run\n\n"  # A comment, because some clients take anything else for an event


async def submit_and_respond(api: ApiContext, call: ApiCall, respond: Respond) -> Response:
    if call.lifetime == "attached" and call.key is not None:
        await api.engine.ping()  # a call that cannot be started must not use up its idempotency key
    accepted = await submit_turn(api, call)
    return await respond_with_run(api, accepted, partial(respond, accepted.run))


class DisconnectWatch:
    """Cancels a detached run whose client leaves before the response is complete. An attached run could not wait for an
    approval after its response."""

    def __init__(self, api: ApiContext, run: RunId) -> None:
        self._api = api
        self._run = run
        self.complete = False

    def connection(self) -> AsyncExitStack:
        stack = AsyncExitStack()
        stack.push_async_callback(self._close)
        return stack

    async def _close(self) -> None:
        if not self.complete:
            with anyio.move_on_after(_CANCEL_WAIT, shield=True), suppress(HoldfastError):
                await self._api.engine.runs.cancel(self._run, reason="disconnected")


class TranslatedSource(EventSource):
    """An event source that translates a run. While the client keeps up, `follow` writes events as soon as they are
    durable; frames that the connection does not accept at once are kept, and returned by `next`."""

    def __init__(
        self,
        subscription: RunSubscription,
        translator: Translator,
        opening: Sequence[bytes] = (),
        *,
        attached: bool,
        watch: DisconnectWatch | None = None,
    ) -> None:
        self._watch = watch
        self._subscription = subscription
        self._translator = translator
        self._attached = attached
        self._unsent = list(opening)
        self._translated = 0  # The last event that was translated; the cursor of the subscription may be behind it
        self._error: Exception | None = None

    @property
    def is_ready(self) -> bool:
        return bool(self._unsent)

    @property
    def at_end(self) -> bool:
        return self._translator.ended and not self._unsent and self._error is None

    def close(self) -> None:
        self._subscription.close()

    async def next(self) -> Sequence[bytes] | None:
        while not self._unsent:
            if self._error is not None:
                raise self._error
            if self._translator.ended:
                return None
            self._unsent += await self._read()
        unsent, self._unsent = self._unsent, []
        return unsent

    async def read_until(self, enough: Callable[[], bool]) -> None:
        """Read, and keep for `next`, until `enough` or the end."""
        while not enough() and not self._translator.ended:
            self._unsent += await self._read()

    async def _read(self) -> list[bytes]:
        entries = await next_entries(self._subscription, wait=self._attached)
        if entries is None:
            return self._translator.cut()
        if entries[0].seq <= self._translated:
            entries = [entry for entry in entries if entry.seq > self._translated]
        frames = self._translator.feed(entries)
        self._note_end()
        return frames

    def _note_end(self) -> None:
        if self._watch is not None and self._translator.ended:
            self._watch.complete = True

    async def follow(self, write: Write) -> None:
        if not self._unsent:
            await self._subscription.follow(partial(self._write, write))

    def _write(self, write: Write, entries: Sequence[Entry]) -> bool:
        """The last frames are left to `next`, so that the end of the stream goes with them."""
        try:
            frames = self._translator.feed(entries)
            self._note_end()
            if not self._translator.ended and (not frames or write(b"".join(frames))):
                return True
        except Exception as error:  # noqa: BLE001 - the boundary to the writer's task; `next` raises it in the stream's
            self._error = error
            return False
        self._unsent, self._translated = frames, entries[-1].seq
        return False


def chat_stream(
    subscription: RunSubscription,
    chunks: ChatChunks,
    limits: StreamLimits,
    connection: AsyncExitStack | None,
    headers: Headers,
) -> EventStream:
    """A stream that chooses its status when the first output or a failure arrives."""
    source = TranslatedSource(subscription, chunks, attached=connection is not None)
    failure = failure_before_output(source, chunks, partial(failed_response, headers=headers))
    return EventStream(source, limits, connection, headers, OPENING, failure)


def failure_before_output(
    source: TranslatedSource,
    translator: Translator,
    respond: Callable[[Failure], Response],
    convert_error: ConvertError = lambda response: response,
) -> Callable[[], Awaitable[Response | None]]:
    """The error response of a run that fails before its first output; waits for either, for a while."""

    async def failure() -> Response | None:
        with anyio.move_on_after(FIRST_OUTPUT_WAIT):
            await source.read_until(lambda: translator.begun)
        failed = None if translator.begun else translator.failed
        return None if failed is None else respond(failed)

    return _or_error_response(failure, convert_error)


def _or_error_response(
    work: Callable[[], Awaitable[Response | None]], convert_error: ConvertError
) -> Callable[[], Awaitable[Response | None]]:
    """The framework's error handlers do not see what is raised in a response that is under way."""

    async def respond() -> Response | None:
        try:
            return await work()
        except HoldfastError as error:
            return convert_error(errors.response_of(error))

    return respond


def failed_response(failure: Failure, headers: Headers) -> Response:
    """The error of a failed run. The engine has retried where that can help, so the client is told not to."""
    status, body = errors.of_failure(failure)
    return json_response(status, dump(body), [*headers, (b"x-should-retry", b"false")])


def json_response(status: int, body: bytes, headers: Headers = ()) -> Response:
    response = Response(body, status, media_type="application/json")
    response.raw_headers += headers
    return response


def whole_response(
    subscription: RunSubscription,
    render: Callable[[Transcript], Response],
    limits: StreamLimits,
    connection: AsyncExitStack | None,
    is_complete: Callable[[Transcript], bool] = lambda transcript: transcript.ended,
    watch: DisconnectWatch | None = None,
    convert_error: ConvertError = lambda response: response,
) -> EventStream:
    """One response instead of a stream, when the run has ended or `is_complete`."""

    async def collect() -> Response | None:
        transcript = EMPTY
        while (entries := await next_entries(subscription, wait=connection is not None)) is not None:
            transcript = fold(entries, transcript)
            if is_complete(transcript):
                break
        if not is_complete(transcript):
            return convert_error(errors.error_response(503, CUT_OFF.message, "stream_cut", None, {"Retry-After": "2"}))
        if watch is not None:
            watch.complete = True
        return render(transcript)

    return EventStream(
        RunSource(subscription), limits, connection, response_instead=_or_error_response(collect, convert_error)
    )
