"""Anthropic's messages below `/v1`."""

import json
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from holdfast.core.events import Failure
from holdfast.core.run import Run
from holdfast.core.transcript import Transcript
from holdfast.engine.run_feed import RunSubscription
from holdfast.server.anthropic import errors, message_events
from holdfast.server.anthropic import schemas as a
from holdfast.server.anthropic.chat_request import chat_request, messages
from holdfast.server.context import ApiContext
from holdfast.server.event_stream import EventStream
from holdfast.server.openai import model_names, response_object, streaming
from holdfast.server.openai.chat_chunks import failure_of
from holdfast.server.openai.json_bytes import dump
from holdfast.server.openai.submit import ApiCall, read_chat
from holdfast.server.parameters import IdempotencyKey
from holdfast.server.routing import STREAM_RESPONSE, ResponseInfo, Responses, Router, body_size, run_sized

_ERROR: Final = ResponseInfo("The request was refused or failed.", a.AnthropicError)
_ERRORS: Final[Responses] = {"4XX": _ERROR, "5XX": _ERROR}
_BYTES_PER_TOKEN: Final = 4

router = Router("anthropic", "/v1", _ERRORS)


@router.post("/messages", returns=a.MessageObject, responses={200: STREAM_RESPONSE})
async def create_message(
    api: ApiContext, received: Request, body: a.MessagesRequest, key: IdempotencyKey = None
) -> Response:
    """Answer the last message. The run ends when the client disconnects."""
    size = await body_size(received)
    request, ignored = await run_sized(partial(chat_request, body), size)
    target = await model_names.resolve_model(api, request.model)
    if "max_tokens" not in target.accepts:  # the format requires it, so it cannot be refused
        request, ignored = request.model_copy(update={"max_tokens": None}), [*ignored, "max_tokens"]
    settings, turns = await run_sized(partial(read_chat, request, target), size)
    settings.ignored.extend(ignored)

    def respond(run: Run, subscription: RunSubscription, connection: AsyncExitStack | None) -> Response:
        headers, server_tools = response_object.headers(run), response_object.has_server_tools(run)

        def failed(failure: Failure) -> Response:
            status, error = errors.of_failure(failure)
            return streaming.json_response(status, dump(error), [*headers, (b"x-should-retry", b"false")])

        def render(ended: Transcript) -> Response:
            failure = failure_of(ended)
            if failure is not None:
                return failed(failure)
            return streaming.json_response(
                200, message_events.render_message(run, ended, server_tools=server_tools), headers
            )

        if not body.stream:
            return streaming.whole_response(
                subscription, render, api.limits.streams, connection, convert_error=errors.convert
            )
        events = message_events.MessageEvents(message_events.message_fields(run), server_tools=server_tools)
        source = streaming.TranslatedSource(subscription, events, attached=connection is not None)
        failure = streaming.failure_before_output(source, events, failed, errors.convert)
        return EventStream(source, api.limits.streams, connection, headers, streaming.OPENING, failure)

    call = ApiCall(request, target, settings, turns, key, "attached", received.receive, size)
    return await streaming.submit_and_respond(api, call, respond)


@router.post("/messages/count_tokens")
async def count_message_tokens(received: Request, body: a.CountTokensRequest) -> a.TokenCount:
    """An estimate: four bytes count as one token, an image or a file by its size."""

    def measure() -> int:
        tools = [tool.model_dump(exclude_none=True) for tool in body.tools or ()]
        return len(json.dumps([messages(body), tools], ensure_ascii=False).encode("utf-8", "replace"))

    size = await run_sized(measure, await body_size(received))
    return a.TokenCount(input_tokens=-(-size // _BYTES_PER_TOKEN))
