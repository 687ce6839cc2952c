"""pydantic-ai's models, asked and read. Imported only when one of them is used."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import httpx2
from pydantic_ai import exceptions
from pydantic_ai.messages import (
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.models import StreamedResponse

from holdfast.agents.models.endpoint import Patience
from holdfast.agents.models.failures import Trouble, from_error
from holdfast.agents.models.port import Ability, Delta, Request, ToolCall
from holdfast.agents.models.provider_client import ANSWER, Client
from holdfast.agents.models.provider_wire import as_text, kept, messages, parameters, settings, signed
from holdfast.agents.models.toolcalls import parse_args
from holdfast.core.events import ReasoningDelta, TextDelta, ToolDelta, Usage

_FINISH = {"tool_call": "tool_calls"}


def make(kind: str, name: str, url: str, key: str, patience: Patience) -> tuple[LibraryModel[Any], Client]:
    """The library's model, and the client whose connections it uses."""
    client = Client(patience)
    if kind == "anthropic":
        from anthropic import AsyncAnthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        # Attempts are counted in one place, ours.
        sdk = AsyncAnthropic(api_key=key, base_url=url, http_client=client, max_retries=0)
        return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=sdk)), client
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(name, provider=GoogleProvider(api_key=key, base_url=url, http_client=client)), client


class Reader:
    """One request and its events. Troubles are values here; only cancellation passes through."""

    def __init__(
        self, model: LibraryModel[Any], client: Client, abilities: frozenset[Ability], taken: Collection[str]
    ) -> None:
        self._model = model
        self._client = client
        self._answer = client.new_answer()
        self._abilities = abilities
        self._taken = set(taken)
        self._block: AbstractAsyncContextManager[StreamedResponse] | None = None
        self._response: StreamedResponse | None = None
        self._events: AsyncIterator[ModelResponseStreamEvent] | None = None
        self._ids: dict[int, str] = {}  # by the part's index
        self._any = False
        self.calls: Sequence[ToolCall] = ()
        self.finish_reason: str | None = None

    async def open(self, request: Request) -> Trouble | None:
        chosen = settings(request, self._model.system)
        chosen["extra_headers"] = {ANSWER: self._answer}
        try:
            block = self._model.request_stream(messages(request, self._abilities), chosen, parameters(request))
            self._response = await block.__aenter__()
        except Exception as error:  # noqa: BLE001  a third party's exceptions stop at its adapter
            return trouble_of(error)
        self._block = block
        self._events = aiter(self._response)
        return None

    async def next(self) -> tuple[Sequence[Delta] | None, Trouble | None]:
        """The deltas of the next event, maybe none; None for them after the last."""
        if self._events is None:
            return None, None
        try:
            event = await anext(self._events, None)
        except Exception as error:  # noqa: BLE001  as above
            return None, trouble_of(error)
        if event is not None:
            deltas = self._deltas(event)
            self._any = self._any or bool(deltas)
            return deltas, None
        return self._end()

    async def close(self) -> None:
        """Close the upstream, whatever it is doing."""
        block, self._block = self._block, None
        with anyio.move_on_after(5, shield=True):
            try:
                await self._client.close_answer(self._answer)
                if block is not None:
                    await block.__aexit__(None, None, None)
            except Exception:  # noqa: BLE001  the connection is on its way out; how it goes does not matter
                return

    # ---- what arrives ----

    def _deltas(self, event: ModelResponseStreamEvent) -> Sequence[Delta]:
        match event:
            case PartStartEvent(index=index, part=ToolCallPart() as part):
                self._ids[index] = self._unique(part.tool_call_id)
                return [ToolDelta(self._ids[index], part.tool_name, as_text(part.args))]
            case PartStartEvent(part=TextPart(content=text)) if text:
                return [TextDelta(text)]
            case PartStartEvent(part=ThinkingPart(content=text)) if text:
                return [ReasoningDelta(text)]
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
                return [TextDelta(text)]
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))) if text:
                return [ReasoningDelta(text)]
            case PartDeltaEvent(index=index, delta=ToolCallPartDelta(args_delta=args)) if args and index in self._ids:
                return [ToolDelta(self._ids[index], None, as_text(args))]
            case PartEndEvent(part=ThinkingPart() as part) if signed(part):
                return [ReasoningDelta("", kept(part, self._get()))]
            case _:
                return ()

    def _end(self) -> tuple[Sequence[Delta] | None, Trouble | None]:
        if self._response is None or self._events is None:
            return None, None
        self._events = None
        response = self._get()
        self.finish_reason = _FINISH.get(response.finish_reason or "", response.finish_reason)
        calls = []
        for index, part in enumerate(response.parts):
            if isinstance(part, ToolCallPart) and index in self._ids:
                args, invalid = parse_args(as_text(part.args))
                calls.append(ToolCall(self._ids[index], part.tool_name, args, kept(part, response), invalid))
        self.calls = calls
        if not self._any:
            if response.finish_reason == "content_filter":
                return None, Trouble("refused", "its content filter stopped the answer")
            if response.finish_reason is None:
                return None, Trouble("protocol", "the answer ended without any content")
        usage = self._response.usage
        return [Usage(usage.input_tokens, usage.output_tokens)] if usage.has_values() else (), None

    def _get(self) -> ModelResponse:
        assert self._response is not None
        return self._response.get()

    def _unique(self, wanted: str) -> str:
        call_id, n = wanted, 1
        while call_id in self._taken:
            n += 1
            call_id = f"{wanted}-{n}"
        self._taken.add(call_id)
        return call_id


def trouble_of(error: Exception) -> Trouble:
    match error:
        case exceptions.ModelHTTPError():
            body = error.body
            found = body.get("error", body) if isinstance(body, dict) else body
            return from_error(found or f"status {error.status_code}", error.status_code, error.retry_after)
        case exceptions.ModelTimeoutError() | exceptions.ModelRequestTimeout() | TimeoutError():
            return Trouble("timeout", "it did not answer in time")
        case exceptions.ContentFilterError():
            return Trouble("refused", "its content filter stopped the answer")
        case exceptions.ModelAPIError() | httpx2.HTTPError():
            return Trouble("unavailable", "the connection failed or broke in the middle of the answer", retry=True)
        case exceptions.UnexpectedModelBehavior() | ValueError():
            return Trouble("protocol", f"{type(error).__name__}: its answer has another form than expected")
        case exceptions.UserError():
            return Trouble("bad-request", str(error))
        case _:
            return Trouble("unavailable", f"its client failed with {type(error).__name__}")
