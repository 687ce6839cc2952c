"""Client for OpenAI's chat completions: OpenAI, OpenRouter, Ollama, vLLM, llama.cpp, LM Studio, Groq, DeepSeek …
`ChatCompletionStream` parses and `RequestPolicy` decides on retries; this module waits and enforces the time limits."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial

import anyio
import anyio.lowlevel
import anyio.to_thread
from yarl import URL

from holdfast.models import openai_request
from holdfast.models.chat_completion_stream import MAX_ERROR_BODY, ChatCompletionStream, failed_body
from holdfast.models.http_client import HttpClient
from holdfast.models.http_connection import HttpError, HttpResponse
from holdfast.models.provider_config import ProviderConfig, base_url, dialect, request_headers
from holdfast.models.request_policy import RequestPolicy, parse_retry_after
from holdfast.models.upstream_errors import UpstreamError
from holdfast.ports.clock import Clock
from holdfast.ports.model import Delta, Media, ModelAnswer, ModelInfo, ModelRequest, Take, ToolCall, UserMessage

_HEADERS = {
    "Accept": "text/event-stream",
    "Accept-Encoding": "identity",  # a compressed stream arrives in larger pieces than it was sent in
    "Content-Type": "application/json",
}
_LARGE_MEDIA = 256 * 1024
_MANY_MESSAGES = 1000
_READS_PER_CHECKPOINT = 8


@dataclass(frozen=True, slots=True)
class OpenAIModel:
    info: ModelInfo
    config: ProviderConfig
    name: str  # The model's name at the server
    http: HttpClient
    clock: Clock
    policy: RequestPolicy = field(default_factory=RequestPolicy)

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[ModelAnswer]:
        return OpenAIAnswer(self, request)


class OpenAIAnswer:
    """One request and its answer. Nothing is asked again once a delta has been given out."""

    def __init__(self, model: OpenAIModel, request: ModelRequest) -> None:
        self._model = model
        self._request = request
        self._policy = model.policy
        self._timeouts = model.policy.timeouts
        self._attempt = 0
        self._stream = ChatCompletionStream()
        self._response: HttpResponse | None = None
        self._json_body: bytearray | None = None  # of an answer that is not a stream
        self._started = False  # a delta was given out
        self._error: UpstreamError | None = None  # arrived together with deltas, which go first
        self._timer: asyncio.TimerHandle | None = None
        self._timed_out: UpstreamError | None = None
        self._reading = False
        self._reads = 0
        self._waiting_since = self._last_delta_at = self._asked_at = 0.0
        self._finished_at: float | None = None

    @property
    def calls(self) -> Sequence[ToolCall]:
        return self._stream.calls

    @property
    def finish_reason(self) -> str | None:
        return self._stream.finish_reason

    async def __aenter__(self) -> "OpenAIAnswer":
        self._loop = asyncio.get_running_loop()
        self._body = await self._encode()
        await self._retry_until_open(await self._open())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close()

    def __aiter__(self) -> AsyncIterator[Sequence[Delta]]:
        return self

    async def __anext__(self) -> Sequence[Delta]:
        now = self._last_delta_at = self._loop.time()
        while True:
            if self._error is not None:
                error, self._error = self._error, None
                await self._retry_until_open(error)
            response = self._response
            if response is None:
                raise StopAsyncIteration
            self._reads += 1
            if self._reads % _READS_PER_CHECKPOINT == 0:
                # In a flood every read finds data already there, and anyio cancels only a task that waits.
                await anyio.lowlevel.checkpoint_if_cancelled()
            self._waiting_since = now
            self._reading = True
            try:
                data = await response.read()
            except HttpError as failed:
                deltas = self._end(failed.error)
            else:
                whole = None if data else self._json_body
                deltas = self._receive(data) if whole is None else await self._read_whole(whole)
            finally:
                self._reading = False
            if deltas:
                self._started = True
                return deltas
            now = self._loop.time()

    async def follow(self, take: Take) -> None:
        response = self._response
        if response is None or self._error is not None or self._json_body is not None:
            return
        self._reading = True
        try:
            await response.follow(partial(self._push, take), self._model.http.batcher)
        finally:
            self._reading = False

    def _push(self, take: Take, data: bytes) -> bool:
        self._waiting_since = now = self._loop.time()
        deltas = self._stream.feed_text(data)
        if deltas is not None:
            self._last_delta_at = now
            return take(deltas)
        deltas = self._receive(data)
        if deltas:  # a keep-alive proves that a proxy is alive, not that the model is
            self._last_delta_at = now
            self._started = True
        wants_more = take(deltas) if deltas else True
        return wants_more and self._error is None and self._response is not None

    # ---- receiving ----

    def _receive(self, data: bytes) -> Sequence[Delta]:
        if not data:
            return self._end(None)
        if self._json_body is not None:
            self._json_body += data
            if len(self._json_body) > self._policy.max_answer:
                self._error = UpstreamError("protocol", "the answer is too large")
            return ()
        stream = self._stream
        deltas = stream.feed(data)
        if stream.done:
            self._release()
        else:
            self._error = stream.error
            if stream.finish_reason is not None and self._finished_at is None:
                self._finished_at = self._loop.time()
                self._stop_timer()
                self._check_timeouts()
        return deltas

    async def _read_whole(self, body: bytearray) -> Sequence[Delta]:
        """The body of an answer that is not a stream has ended. It may be large, so it is read in a thread."""
        stream = self._stream
        deltas = await anyio.to_thread.run_sync(stream.read_whole, bytes(body), abandon_on_cancel=True)
        self._error = stream.error
        self._release()
        return deltas

    def _end(self, error: UpstreamError | None) -> Sequence[Delta]:
        """The body ended or broke. An answer that stated its finish reason is complete either way."""
        stream, error = self._stream, self._timed_out or error
        if error is None or stream.finish_reason is not None:
            deltas = stream.finish()
        else:
            deltas, self._error = (), error
        self._error = stream.error or self._error
        self._release()
        return deltas

    # ---- asking ----

    async def _encode(self) -> bytes:
        model = self._model
        encode = partial(openai_request.body, self._request, model.name, dialect(model.config))
        is_large = len(self._request.messages) >= _MANY_MESSAGES or any(
            isinstance(item, Media) and len(item.data) > _LARGE_MEDIA
            for message in self._request.messages
            if isinstance(message, UserMessage)
            for item in message.content
        )
        return await anyio.to_thread.run_sync(encode, abandon_on_cancel=True) if is_large else encode()

    async def _open(self) -> UpstreamError | None:
        """Sends the request. Nothing stays open after an error or a cancellation."""
        config, timeouts, policy = self._model.config, self._timeouts, self._policy
        self._attempt += 1
        self._asked_at = self._loop.time()
        try:
            async with asyncio.timeout(timeouts.first_token):
                url, headers = URL(base_url(config) + "/chat/completions"), request_headers(config, _HEADERS)
                response = await self._model.http.request(
                    "POST", url, headers, self._body, connect_timeout=timeouts.connect
                )
                try:
                    refusal = await _read_refusal(response, self._model.clock)
                except BaseException:
                    response.abort()
                    raise
        except TimeoutError:
            return UpstreamError("timeout", f"no answer within {timeouts.first_token:g} s")
        except HttpError as failed:
            return failed.error
        except ValueError:
            return UpstreamError("bad-request", "the base URL is not a valid address")
        if refusal is not None:
            response.abort()
            return refusal
        self._response = response
        self._json_body = bytearray() if response.content_type.endswith("json") else None
        self._stream = ChatCompletionStream(
            openai_request.call_ids(self._request), max_event=policy.max_event, max_answer=policy.max_answer
        )
        self._timed_out = self._finished_at = None
        self._check_timeouts()
        return None

    async def _retry_until_open(self, error: UpstreamError | None) -> None:
        """Asks again as long as that may help and nothing was given out yet; otherwise raises ModelError."""
        while error is not None:
            self._close()
            attempt = None if self._started else self._attempt
            await self._policy.wait_to_retry(
                error, attempt, self._model.config, self._model.name, self._request.on_retry
            )
            error = await self._open()

    # ---- timeouts ----

    def _check_timeouts(self) -> None:
        """One timer serves all timeouts. It is set again when it fires, not with every token, and fires at least as
        often as the shortest timeout, because which one applies may have changed."""
        timeouts, now = self._timeouts, self._loop.time()
        if self._finished_at is not None:
            due, reason = self._finished_at + timeouts.tail, "the end marker is missing"
        elif not self._started:
            due, reason = self._asked_at + timeouts.first_token, f"no answer within {timeouts.first_token:g} s"
        elif not self._reading:
            due, reason = now + timeouts.idle, ""
        else:
            idle, stalled = self._waiting_since + timeouts.idle, self._last_delta_at + timeouts.stalled
            due = min(idle, stalled)
            reason = f"no data for {timeouts.idle if idle <= stalled else timeouts.stalled:g} s"
        if now < due:
            check_at = min(due, now + timeouts.idle, now + timeouts.stalled)
            self._timer = self._loop.call_at(check_at, self._check_timeouts)
            return
        self._timed_out = UpstreamError("timeout", reason)
        if self._response is not None:
            self._response.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # ---- closing ----

    def _release(self) -> None:
        """Lets go of a complete answer. Its connection can be used again."""
        if self._response is not None:
            self._response.release()
        self._response = None
        self._close()

    def _close(self) -> None:
        response, self._response = self._response, None
        self._stop_timer()
        if response is not None:
            response.abort()


async def _read_refusal(response: HttpResponse, clock: Clock) -> UpstreamError | None:
    """What a response says that is not an answer; None for an answer."""
    if 200 <= response.status < 300:
        if "html" in response.content_type:
            return UpstreamError("protocol", f"it answered with a web page ({response.content_type})")
        return None
    if 300 <= response.status < 400:  # not followed, because the key must not be sent to another host
        target = response.headers.get("location", "another address")
        return UpstreamError("bad-request", f"it redirects to {target}; if that is right, set the base URL to it")
    body = b""
    while len(body) < MAX_ERROR_BODY and (piece := await response.read()):
        body += piece
    return failed_body(response.status, body, parse_retry_after(response.headers, clock.now()))
