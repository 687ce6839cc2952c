"""Models behind OpenAI's chat format: OpenAI, OpenRouter, Ollama, vLLM, llama.cpp, LM Studio, Groq, DeepSeek, Mistral …

`ChatStream` understands the bytes, `RetryPolicy` decides about another attempt; here is only what has to wait.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import anyio.to_thread

from holdfast.agents.models import wire
from holdfast.agents.models.chatstream import ChatStream
from holdfast.agents.models.endpoint import Endpoint
from holdfast.agents.models.failures import Trouble, explain
from holdfast.agents.models.following import Following, left_over
from holdfast.agents.models.http import (
    Ask,
    Http,
    abort,
    ask,
    network_errors,
    unreachable,
    wake_when_lost,
)
from holdfast.agents.models.port import Answer, Delta, Media, ModelInfo, Request, Take, ToolCall, UserSaid
from holdfast.core.values import dataclass
from holdfast.ports import Clock

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_LARGE = 256 * 1024
_LOOK_UP = 8


@dataclass(frozen=True, slots=True)
class OpenAIModel:
    info: ModelInfo
    endpoint: Endpoint
    http: Http
    clock: Clock
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    chance: Callable[[], float] = random.random

    def stream(self, request: Request) -> AbstractAsyncContextManager[Answer]:
        return ChatAnswer(self, request)


class ChatAnswer:
    """One request and its answer. Nothing is asked again once a delta has been given out."""

    def __init__(self, model: OpenAIModel, request: Request) -> None:
        self._model = model
        self._request = request
        self._patience = model.endpoint.patience
        self._attempt = 0
        self._stream = ChatStream()
        self._response: ClientResponse | None = None
        self._json: list[bytes] | None = None  # the pieces of an answer that is no stream
        self._begun = False
        self._held: Trouble | None = None  # came with deltas, which go first
        self._watch: asyncio.TimerHandle | None = None
        self._reading = False
        self._waiting_since = self._quiet_since = self._asked_at = 0.0
        self._reads = 0
        self._finished_at: float | None = None
        self._expired: Trouble | None = None

    @property
    def calls(self) -> Sequence[ToolCall]:
        return self._stream.calls

    @property
    def finish_reason(self) -> str | None:
        return self._stream.finish_reason

    async def __aenter__(self) -> "ChatAnswer":
        self._loop = asyncio.get_running_loop()
        self._ask = await self._prepare()
        trouble = await self._open()
        if trouble is not None:
            await self._again(trouble)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def __aiter__(self) -> AsyncIterator[Sequence[Delta]]:
        return self

    async def __anext__(self) -> Sequence[Delta]:
        now = self._quiet_since = self._loop.time()
        while self._held is None:
            response = self._response
            if response is None:
                raise StopAsyncIteration
            self._reads += 1
            if self._reads % _LOOK_UP == 0:
                # In a flood every read finds its data there already, and anyio cancels only a task that waits.
                await anyio.lowlevel.checkpoint_if_cancelled()
            self._waiting_since = now
            self._reading = True
            try:
                data = await response.content.readany()
            except network_errors() as error:
                deltas = self._broke(unreachable(error), left_over(response))
            else:
                deltas = self._received(data)
            finally:
                self._reading = False
            if deltas:
                self._begun = True
                return deltas
            await self._again(self._take_held())
            now = self._loop.time()
        raise self._failed(self._held)

    async def follow(self, take: Take) -> None:
        response = self._response
        if response is None or self._held is not None or self._json is not None:
            return
        self._reading = True
        try:
            await Following(response, self._loop, self._model.http.rounds, partial(self._pushed, take)).run()
        finally:
            self._reading = False

    def _pushed(self, take: Take, data: bytes) -> bool:
        self._waiting_since = now = self._loop.time()
        deltas = self._stream.say(data)
        if deltas is not None:
            self._quiet_since = now
            return take(deltas)
        deltas = self._received(data)
        if deltas:  # a keep-alive proves that a proxy lives, not that a model does
            self._quiet_since = now
        more = take(deltas) if deltas else True
        return more and self._held is None and self._response is not None

    def _take_held(self) -> Trouble | None:
        held, self._held = self._held, None
        return held

    # ---- what arrives ----

    def _received(self, data: bytes) -> Sequence[Delta]:
        if not data:
            return self._ended(None)
        if self._json is not None:
            self._json.append(data)
            if sum(map(len, self._json)) > self._model.endpoint.max_answer:
                self._held = Trouble("protocol", "the answer is too large")
            return ()
        stream = self._stream
        deltas = stream.feed(data)
        if stream.done:
            self._release()
        else:
            self._held = stream.trouble
            if stream.finish_reason is not None and self._finished_at is None:
                self._finished_at = self._loop.time()
                self._unwatch()
                self._look()
        return deltas

    def _broke(self, trouble: Trouble, left: bytes) -> Sequence[Delta]:
        said = self._received(left) if left else ()
        if self._held is not None or self._response is None:
            return said
        return [*said, *self._ended(trouble)]

    def _ended(self, trouble: Trouble | None) -> Sequence[Delta]:
        """The body is at its end, or broke. An answer that had said how it finished is complete all the same."""
        stream, trouble = self._stream, self._expired or trouble
        if self._json is not None and trouble is None:
            deltas = stream.whole(b"".join(self._json))
        elif trouble is None or stream.finish_reason is not None:
            deltas = stream.finish()
        else:
            deltas, self._held = (), trouble
        self._held = stream.trouble or self._held
        self._release()
        return deltas

    # ---- asking ----

    async def _prepare(self) -> Ask:
        endpoint = self._model.endpoint

        def build() -> bytes:
            return wire.body(self._request, endpoint.model, endpoint.dialect, self._model.info.abilities)

        large = any(
            isinstance(item, Media) and len(item.data) > _LARGE
            for said in self._request.messages
            if isinstance(said, UserSaid)
            for item in said.content
        )
        body = await anyio.to_thread.run_sync(build, abandon_on_cancel=True) if large else build()
        try:
            url = endpoint.url
        except ValueError:
            raise self._failed(Trouble("bad-request", "the base URL is not a valid address")) from None
        return Ask(url, endpoint.all_headers(), body, self._patience, self._model.clock)

    async def _open(self) -> Trouble | None:
        endpoint = self._model.endpoint
        self._attempt += 1
        self._asked_at = self._loop.time()
        got = await ask(self._model.http, self._ask)
        if isinstance(got, Trouble):
            return got
        self._response = got
        wake_when_lost(got)
        self._json = [] if got.content_type.endswith("json") else None
        self._stream = ChatStream(
            wire.call_ids(self._request), max_event=endpoint.max_event, max_answer=endpoint.max_answer
        )
        self._expired = None
        self._finished_at = None
        self._look()
        return None

    async def _again(self, trouble: Trouble | None) -> None:
        """Another attempt, if that may help and nothing was given out yet; otherwise ModelFailed."""
        while trouble is not None:
            self._close()
            model = self._model
            policy = model.endpoint.retry
            wait = None if self._begun else policy.wait(trouble, self._attempt, model.chance())
            if wait is None:
                raise self._failed(trouble)
            await model.sleep(wait)
            trouble = await self._open()

    def _failed(self, trouble: Trouble) -> Exception:
        self._close()
        failed = explain(trouble, self._model.endpoint.who())
        failed.__suppress_context__ = True  # the library's errors carry headers, and so the key
        return failed

    # ---- patience ----

    def _look(self) -> None:
        """One timer for all time-outs, set anew when it rings and not with every token. It rings at least as often as
        the shortest of them: which one counts may have changed."""
        patience, now = self._patience, self._loop.time()
        if self._finished_at is not None:
            due, what = self._finished_at + patience.tail, "no end mark came"
        elif not self._begun:
            due, what = self._asked_at + patience.first_token, f"no answer within {patience.first_token:g} s"
        elif not self._reading:
            due, what = now + patience.idle, ""
        else:
            idle, stalled = self._waiting_since + patience.idle, self._quiet_since + patience.stalled
            due = min(idle, stalled)
            what = f"nothing came for {patience.idle if idle <= stalled else patience.stalled:g} s"
        if now < due:
            self._watch = self._loop.call_at(min(due, now + patience.idle, now + patience.stalled), self._look)
            return
        self._expired = Trouble("timeout", what)
        if self._response is not None:
            abort(self._response)

    # ---- the end ----

    def _release(self) -> None:
        response, self._response = self._response, None
        self._unwatch()
        if response is not None:
            self._model.http.linger(response)

    def _close(self) -> None:
        response, self._response = self._response, None
        self._unwatch()
        if response is not None:
            abort(response)

    def _unwatch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
