"""Reads answers from pydantic-ai's models. Imported only when one of them is used. Retries: `models.request_policy`."""

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import httpx2
from pydantic_ai import exceptions
from pydantic_ai import messages as pai
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.models import StreamedResponse

from holdfast.core.events import ReasoningDelta, TextDelta, ToolDelta, Usage
from holdfast.http_limits import limited_hooks
from holdfast.models.http_connection import HttpError
from holdfast.models.openai_request import call_ids
from holdfast.models.provider_config import ProviderConfig, base_url
from holdfast.models.pydantic_ai_messages import messages, parameters, provider_data, settings
from holdfast.models.pydantic_ai_models import LibraryClient, PydanticAIModel
from holdfast.models.request_policy import Timeouts
from holdfast.models.tool_call_assembler import ArgsMeasure, args_text, claim_id, parse_args
from holdfast.models.upstream_errors import UpstreamError, from_error
from holdfast.models.usage import is_token_count, known_token_count
from holdfast.ports.model import Delta, ModelRequest, Take, ToolCall

_ANSWER_HEADER = "x-holdfast-answer"
"""A request header with the id of the answer. It is removed before the request is sent."""
_FINISH = {"tool_call": "tool_calls"}
_MAX_EVENT = 4 * 1024 * 1024  # Bytes; the libraries copy an event again with each piece of it


class ClosableHttpClient(httpx2.AsyncClient):
    """Can close the response of one answer by id. The libraries above it wrap responses in generators that a
    cancellation leaves to the garbage collector."""

    def __init__(self, timeouts: Timeouts) -> None:
        limits = httpx2.Timeout(timeouts.first_token, connect=timeouts.connect)
        super().__init__(timeout=limits, event_hooks=limited_hooks(_MAX_EVENT))
        self._open: dict[str, httpx2.Response] = {}
        self.answer_ids = map(str, itertools.count(1))

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        answer = request.headers.pop(_ANSWER_HEADER, None)
        response = await super().send(request, **options)
        if answer is not None:
            self._open[answer] = response
        return response

    async def close_answer(self, answer: str) -> None:
        """Closes the connection of this answer, if it still has one."""
        response = self._open.pop(answer, None)
        if response is not None:
            await response.aclose()


def create_model(config: ProviderConfig, name: str, timeouts: Timeouts) -> tuple[LibraryModel[Any], ClosableHttpClient]:
    """Creates the library's model and the client whose connections it uses."""
    client, url, key = ClosableHttpClient(timeouts), base_url(config), config.api_key or ""
    if config.kind == "anthropic":
        from anthropic import AsyncAnthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        # Retries are counted in one place, ours.
        sdk = AsyncAnthropic(api_key=key, base_url=url, http_client=client, max_retries=0)
        return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=sdk)), client
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(name, provider=GoogleProvider(api_key=key, base_url=url, http_client=client)), client


class PydanticAIAnswer:
    """One request and its answer. Nothing is asked again once a delta has been given out."""

    def __init__(self, asked: PydanticAIModel, client: LibraryClient, request: ModelRequest) -> None:
        self._config, self._name, self._policy = asked.config, asked.name, asked.models.policy
        self._model: LibraryModel[Any] = client.model
        self._client: ClosableHttpClient = client.http
        self._request = request
        self._answer_id = ""
        self._block: AbstractAsyncContextManager[StreamedResponse] | None = None
        self._response: StreamedResponse
        self.calls: Sequence[ToolCall] = ()
        self.finish_reason: str | None = None
        self._attempt = 0
        self._started = False  # a delta was given out
        self._used_ids: set[str] = set()
        self._ids: dict[int, str] = {}  # by the part's index

    async def close(self) -> None:
        """Closes the upstream, whatever it is doing."""
        block, self._block = self._block, None
        with anyio.move_on_after(5, shield=True):
            try:
                await self._client.close_answer(self._answer_id)
                if block is not None:
                    await block.__aexit__(None, None, None)
            except Exception:  # noqa: BLE001  the connection is being closed; how that fails does not matter
                return

    async def open(self) -> None:
        """Asks until there is an answer, or raises ModelError."""
        limit = self._policy.timeouts.first_token
        while True:
            self._attempt += 1
            self._answer_id = next(self._client.answer_ids)
            self._used_ids, self._ids = call_ids(self._request), {}
            options = settings(self._request, self._model.system)
            options["extra_headers"] = {_ANSWER_HEADER: self._answer_id}
            try:
                with anyio.fail_after(limit):
                    sent = messages(self._request)
                    block = self._model.request_stream(sent, options, parameters(self._request))
                    self._response = await block.__aenter__()
                    self._block = block
                    return
            except TimeoutError:
                error = UpstreamError("timeout", f"no answer within {limit:g} s")
            except Exception as failed:  # noqa: BLE001  the library's exceptions stop here
                error = classify_exception(failed)
            await self._wait_to_retry(error)

    async def _wait_to_retry(self, error: UpstreamError) -> None:
        """Waits until the next attempt. Raises ModelError if there is none, or if a delta was given out."""
        await self.close()
        attempt = None if self._started else self._attempt
        await self._policy.wait_to_retry(error, attempt, self._config, self._name, self._request.on_retry)

    async def follow(self, take: Take) -> None:
        pass

    async def __aiter__(self) -> AsyncIterator[Sequence[Delta]]:
        events, timeouts = aiter(self._response), self._policy.timeouts
        while True:
            limit = timeouts.idle if self._started else timeouts.first_token
            try:
                with anyio.fail_after(limit):
                    event = await anext(events, None)
                deltas = self._end() if event is None else self._deltas(event)
            except TimeoutError:
                error = UpstreamError("timeout", f"no data for {limit:g} s")
            except Exception as failed:  # noqa: BLE001  as above
                error = classify_exception(failed)
            else:
                if deltas:
                    self._started = True
                    yield deltas
                if event is None:
                    return
                continue
            await self._wait_to_retry(error)
            await self.open()
            events = aiter(self._response)

    # ---- events ----

    def _deltas(self, event: pai.ModelResponseStreamEvent) -> Sequence[Delta]:
        match event:
            case pai.PartStartEvent(index=index, part=pai.ToolCallPart() as part):
                self._ids[index] = claim_id(part.tool_call_id, self._used_ids)
                return [ToolDelta(self._ids[index], part.tool_name, args_text(part.args))]
            case pai.PartStartEvent(part=pai.TextPart(content=text)) if text:
                return [TextDelta(text)]
            case pai.PartStartEvent(part=pai.ThinkingPart(content=text)) if text:
                return [ReasoningDelta(text)]
            case pai.PartDeltaEvent(delta=pai.TextPartDelta(content_delta=text)) if text:
                return [TextDelta(text)]
            case pai.PartDeltaEvent(delta=pai.ThinkingPartDelta(content_delta=str(text))) if text:
                return [ReasoningDelta(text)]
            case pai.PartDeltaEvent(index=index, delta=pai.ToolCallPartDelta(args_delta=args)) if (
                args and index in self._ids
            ):
                return [ToolDelta(self._ids[index], None, args_text(args))]
            case pai.PartEndEvent(part=pai.ThinkingPart() as part) if (
                part.signature or part.id or part.provider_details
            ):
                return [ReasoningDelta("", provider_data(part, self._response.get()))]
            case _:
                return ()

    def _end(self) -> Sequence[Delta]:
        response = self._response.get()
        self.finish_reason = _FINISH.get(response.finish_reason or "", response.finish_reason)
        calls, measure = [], ArgsMeasure()
        for index, part in enumerate(response.parts):
            if isinstance(part, pai.ToolCallPart) and index in self._ids:
                args, invalid = parse_args(args_text(part.args), measure)
                calls.append(ToolCall(self._ids[index], part.tool_name, args, provider_data(part, response), invalid))
        self.calls = calls
        if not self._started:
            if response.finish_reason == "content_filter":
                raise exceptions.ContentFilterError("the answer is empty")
            if response.finish_reason is None:
                raise HttpError(UpstreamError("protocol", "the answer ended without any content"))
        usage = self._response.usage
        read, written = usage.input_tokens, usage.output_tokens
        if not usage.has_values() or not is_token_count(read) or not is_token_count(written):
            return ()
        reasoning = usage.details.get("reasoning_tokens", usage.details.get("thoughts_tokens"))
        cached = known_token_count(usage.cache_read_tokens) or None
        return [Usage(read, written, None, cached, known_token_count(reasoning))]


def classify_exception(error: Exception) -> UpstreamError:
    match error:
        case HttpError():
            return error.error
        case exceptions.ModelHTTPError():
            body = error.body
            found = body.get("error", body) if isinstance(body, dict) else body
            return from_error(found or f"status {error.status_code}", error.status_code, error.retry_after)
        case exceptions.ModelTimeoutError() | exceptions.ModelRequestTimeout() | TimeoutError():
            return UpstreamError("timeout", "it did not answer in time")
        case exceptions.ContentFilterError():
            return UpstreamError("refused", "its content filter stopped the answer")
        case exceptions.ModelAPIError() | httpx2.HTTPError():
            if (refused := _find_refusal(error)) is not None:
                return UpstreamError("protocol", str(refused))
            return UpstreamError(
                "unavailable",
                "the connection failed or broke in the middle of the answer",
                retry=True,
                source="connection",
            )
        case exceptions.UnexpectedModelBehavior() | ValueError():
            return UpstreamError("protocol", f"{type(error).__name__}: its answer has an unexpected format")
        case exceptions.UserError():
            return UpstreamError("bad-request", str(error))
        case _:
            return UpstreamError("unavailable", f"its client library failed with {type(error).__name__}")


def _find_refusal(error: BaseException | None) -> httpx2.DecodingError | None:
    """The reason of `http_limits`, which the libraries wrap in errors of their own."""
    while error is not None and not isinstance(error, httpx2.DecodingError):
        error = error.__cause__
    return error
