"""The OpenAI-compatible API below `/v1`: models, chat completions, responses (which are runs) and conversations (which
are sessions)."""

from contextlib import AsyncExitStack
from functools import partial
from typing import Annotated, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from holdfast.core.errors import NotFoundError
from holdfast.core.events import Failure
from holdfast.core.ids import ApprovalId
from holdfast.core.parts import Json
from holdfast.core.run import Run
from holdfast.core.transcript import Transcript, has_output
from holdfast.engine.run_feed import RunSubscription
from holdfast.ports.agent import AgentError
from holdfast.server.context import ApiContext
from holdfast.server.event_sources import respond_with_run
from holdfast.server.event_stream import EventStream
from holdfast.server.openai import (
    approvals,
    chat_chunks,
    ids,
    input_items,
    item_pages,
    json_bytes,
    model_names,
    parameters,
    response_object,
    streaming,
    submit,
)
from holdfast.server.openai import schemas as s
from holdfast.server.openai.errors import ParameterError
from holdfast.server.openai.input_items import TurnBuilder
from holdfast.server.openai.response_events import ResponseEvents
from holdfast.server.openai.submit import ApiCall
from holdfast.server.parameters import MAX_SEQ, IdempotencyKey
from holdfast.server.routing import STREAM_RESPONSE, Router, body_size, run_sized

router = Router("openai", "/v1", s.ERRORS)

ResponseId = Annotated[str, Field(max_length=200, description="Id of a response.")]
Include = Annotated[list[str] | None, Field(max_length=20)]
IncludeArray = Annotated[list[str] | None, Field(alias="include[]", max_length=20)]


# ---- models ----


async def _available_models(api: ApiContext) -> list[s.ModelObject]:
    models = [] if api.models is None else [model for model in await api.models.list() if model.available]
    names = [(model.id, model.provider) for model in models]
    programs = () if api.programs is None else await api.programs.list()
    agents = [name for name, *_ in api.agents if name != model_names.DIRECT]
    agents += [program.name for program in programs if program.available]
    names += [(f"{model_names.AGENT_PREFIX}{name}", "holdfast") for name in agents]
    return [s.ModelObject(id=name, object="model", created=0, owned_by=owner) for name, owner in names]


@router.get("/models")
async def openai_models(api: ApiContext) -> s.ModelObjectList:
    return s.ModelObjectList(object="list", data=await _available_models(api))


@router.get("/models/{model:path}")
async def openai_model(api: ApiContext, model: Annotated[str, Field(max_length=500)]) -> s.ModelObject:
    """One model, also named without its provider, as calls accept it."""
    available = await _available_models(api)
    found = [item for item in available if item.id == model]
    found += [item for item in available if item.id.partition("/")[2] == model]
    if not found:
        raise NotFoundError("model", model)
    return found[0]


@router.post("/embeddings", returns=s.EmbeddingList)
async def create_embeddings(api: ApiContext, body: s.EmbeddingRequest) -> Response:
    """Embeddings of the provider. Nothing is stored."""
    if api.models is None:
        raise NotFoundError("model", body.model)
    await api.models.knows(body.model)  # raises NotFoundError
    await api.engine.usage.require_budget()
    sent = {name: value for name, value in body if name not in ("model", "user") and value is not None}
    try:
        return streaming.json_response(200, await api.models.embed(body.model, sent))
    except AgentError as error:
        return streaming.failed_response(Failure(error.code, str(error)), ())


# ---- chat completions ----


@router.post("/chat/completions", returns=s.ChatCompletion, responses={200: STREAM_RESPONSE})
async def chat_completion(
    api: ApiContext,
    request: Request,
    body: s.ChatRequest,
    key: IdempotencyKey = None,
    lifetime: s.LifetimeHeader = None,
) -> Response:
    """Answer the last message. The run ends when the client disconnects, unless its lifetime is detached; headers
    of the response name the run."""
    target = await model_names.resolve_model(api, body.model)
    size = await body_size(request)
    settings, turns = await run_sized(partial(submit.read_chat, body, target), size)
    if body.store is False and lifetime == "detached":
        raise ParameterError("store", "A detached run must be stored. Omit 'store', or use the lifetime 'attached'.")
    call = ApiCall(body, target, settings, turns, key, lifetime or "attached", request.receive, size)

    def respond(run: Run, subscription: RunSubscription, connection: AsyncExitStack | None) -> Response:
        constant = chat_chunks.constant_fields(run, "chat.completion.chunk" if body.stream else "chat.completion")
        headers, server_tools = response_object.headers(run), response_object.has_server_tools(run)

        def render(ended: Transcript) -> Response:
            failure = chat_chunks.failure_of(ended)
            if failure is not None:
                return streaming.failed_response(failure, headers)
            return streaming.json_response(
                200, chat_chunks.render_completion(constant, ended, server_tools=server_tools), headers
            )

        if not body.stream:
            return streaming.whole_response(subscription, render, api.limits.streams, connection)
        usage = bool(body.stream_options and body.stream_options.include_usage)
        chunks = chat_chunks.ChatChunks(constant, include_usage=usage, server_tools=server_tools)
        return streaming.chat_stream(subscription, chunks, api.limits.streams, connection, headers)

    return await streaming.submit_and_respond(api, call, respond)


# ---- responses ----


@router.post("/responses", returns=s.ResponseObject, responses={200: STREAM_RESPONSE})
async def create_response(
    api: ApiContext,
    request: Request,
    body: s.ResponseRequest,
    key: IdempotencyKey = None,
    lifetime: s.LifetimeHeader = None,
) -> Response:
    """Answer the input. The run ends when the client disconnects, unless it is in the background. A tool of an agent
    that needs approval completes the response with an `mcp_approval_request`; an `mcp_approval_response` continues
    it."""
    answers = approvals.find_responses(body)
    if answers:
        run, decided = await approvals.decide(api, body, answers)
        return await _continue_response(api, run, decided, body)
    call = await _read_call(api, request, body, key, lifetime)
    pauses = call.target.agent != model_names.DIRECT and call.lifetime == "detached"
    accepted = await submit.submit_turn(api, call) if body.background or pauses else None
    if accepted is None:
        return await streaming.submit_and_respond(api, call, partial(_respond, api, body))
    if body.background and not body.stream:
        return await _current(api, accepted.run)
    leaves = accepted.fresh and pauses and not body.background and lifetime is None
    watch = streaming.DisconnectWatch(api, accepted.run.id) if leaves else None
    show = partial(_respond, api, body, accepted.run, pauses=pauses and accepted.run.is_open, watch=watch)
    return await respond_with_run(api, accepted, show)


async def _continue_response(api: ApiContext, run: Run, decided: ApprovalId, body: s.ResponseRequest) -> Response:
    """The response of a run from the answer to an approval on."""
    watch = None if response_object.is_background(run) else streaming.DisconnectWatch(api, run.id)
    subscription = await api.engine.subscriptions.subscribe(run.id)
    return _respond(api, body, run, subscription, None, pauses=True, watch=watch, decided=decided)


def _respond(
    api: ApiContext,
    body: s.ResponseRequest,
    run: Run,
    subscription: RunSubscription,
    connection: AsyncExitStack | None,
    *,
    pauses: bool = False,
    watch: streaming.DisconnectWatch | None = None,
    decided: ApprovalId | None = None,
) -> Response:
    def render(ended: Transcript) -> Response:
        headers = response_object.headers(run)
        if ended.status == "failed" and ended.error is not None and not has_output(ended.parts):
            return streaming.failed_response(ended.error, headers)
        return streaming.json_response(200, response_object.render_ended(run, ended), headers)

    def is_complete(transcript: Transcript) -> bool:
        question = transcript.approval
        return transcript.ended or (pauses and question is not None and question.approval_id != decided)

    if watch is not None:
        connection = watch.connection()
    if not body.stream:
        return streaming.whole_response(subscription, render, api.limits.streams, connection, is_complete, watch)
    choose_status = not body.background and decided is None
    return _stream(
        api, run, subscription, connection, choose_status=choose_status, pauses=pauses, watch=watch, resumes=decided
    )


async def _read_call(
    api: ApiContext, request: Request, body: s.ResponseRequest, key: str | None, lifetime: s.LifetimeHeader
) -> ApiCall:
    if body.previous_response_id is not None and body.conversation is not None:
        message = "'previous_response_id' and 'conversation' are mutually exclusive."
        raise ParameterError("previous_response_id", message, "mutually_exclusive_parameters")
    target = await model_names.resolve_model(api, body.model)
    may_ask = target.agent != model_names.DIRECT and body.store is not False  # an attached run cannot wait afterwards
    lifetime = lifetime or ("detached" if body.background or may_ask else "attached")
    if body.store is False and (lifetime == "detached" or body.conversation is not None):
        message = "A background run, and a response in a conversation, must be stored. Omit 'store'."
        raise ParameterError("store", message)
    previous = session = None
    turns = TurnBuilder("input")
    if body.previous_response_id is not None:
        previous = await submit.previous_run(api, body.previous_response_id)
        turns.calls |= await submit.earlier_calls(api, previous.message_id)
    elif body.conversation is not None:
        named = body.conversation if isinstance(body.conversation, str) else body.conversation.id
        found = await submit.conversation_session(api, named)
        session = found.id
        if found.head is not None:
            turns.calls |= await submit.earlier_calls(api, found.head)
    referenced = await submit.referenced_parts(api, body.input, "input")
    size = await body_size(request)
    settings = await run_sized(partial(parameters.settings_of_response, body, target), size)
    await run_sized(partial(input_items.read_input, body.input, turns, referenced), size)
    return ApiCall(body, target, settings, turns, key, lifetime, request.receive, size, previous, session)


@router.post("/responses/input_tokens")
async def count_input_tokens(api: ApiContext, request: Request, body: s.InputTokensRequest) -> s.InputTokens:
    """An estimate of the input's tokens: four bytes of its JSON count as one."""
    sent: list[Json] = [body.instructions or "", body.input, body.tools]
    if body.previous_response_id is not None:
        run = await submit.previous_run(api, body.previous_response_id)
        sent.append(input_items.list_items(await api.engine.messages.path(run.message_id)))
    size = len(await run_sized(partial(json_bytes.dump, sent), await body_size(request)))
    return s.InputTokens(object="response.input_tokens", input_tokens=-(-size // 4))


@router.get("/responses/{response_id}", returns=s.ResponseObject, responses={200: STREAM_RESPONSE})
async def retrieve_response(
    api: ApiContext,
    response_id: ResponseId,
    stream: bool = False,
    starting_after: Annotated[
        int | None, Field(ge=0, le=MAX_SEQ, description="The last `sequence_number` that the client has.")
    ] = None,
    include: Include = None,
    include_array: IncludeArray = None,
    include_obfuscation: bool | None = None,
) -> Response:
    """The response as it is now; with `stream` its events, all of them or those after a number, then live."""
    run = await _run(api, response_id)
    if not stream:
        return await _current(api, run)
    subscription = await api.engine.subscriptions.subscribe(run.id)
    after = -1 if starting_after is None else starting_after
    return _stream(api, run, subscription, None, after, pauses=response_object.asks_client(run))


@router.post("/responses/{response_id}/cancel", returns=s.ResponseObject)
async def cancel_response(api: ApiContext, response_id: ResponseId) -> Response:
    """Cancel the run; its output so far is kept."""
    run = await _run(api, response_id)
    return await _current(api, await api.engine.runs.cancel(run.id))


@router.delete("/responses/{response_id}")
async def delete_response(api: ApiContext, response_id: ResponseId) -> s.DeletedObject:
    """Erase the turn; with the last turn of a conversation, the conversation."""
    run = await _run(api, response_id)
    await api.engine.runs.erase(run.id)
    return s.DeletedObject(id=response_id, object="response", deleted=True)


@router.get("/responses/{response_id}/input_items", returns=s.InputItemList)
async def response_input_items(
    api: ApiContext,
    response_id: ResponseId,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
    after: Annotated[str | None, Field(max_length=200, description="List what follows this id.")] = None,
    include: Include = None,
    include_array: IncludeArray = None,
) -> Response:
    """List what the model was shown, including the earlier conversation."""
    run = await _run(api, response_id)
    return await item_pages.list_branch(api, run.session_id, run.user_message_id, limit, order, after)


def _stream(
    api: ApiContext,
    run: Run,
    subscription: RunSubscription,
    connection: AsyncExitStack | None,
    after: int = -1,
    *,
    choose_status: bool = False,
    pauses: bool = False,
    watch: streaming.DisconnectWatch | None = None,
    resumes: ApprovalId | None = None,
) -> Response:
    """`choose_status`: a run that fails before its first output has an error status instead of a stream."""
    events = ResponseEvents(
        run.id,
        response_object.constant_fields(run),
        queued=response_object.is_background(run),
        server_tools=response_object.has_server_tools(run),
        after=after,
        tools=response_object.client_tools(run),
        pauses=pauses,
        resumes=resumes,
    )
    headers = response_object.headers(run)
    attached = connection is not None
    source = streaming.TranslatedSource(subscription, events, events.open(), attached=attached, watch=watch)
    failed = partial(streaming.failed_response, headers=headers)
    failure = streaming.failure_before_output(source, events, failed) if choose_status else None
    return EventStream(source, api.limits.streams, connection, headers, streaming.OPENING, failure)


async def _run(api: ApiContext, response_id: str) -> Run:
    try:
        return await api.engine.runs.get(ids.run_id(response_id))
    except NotFoundError:
        raise NotFoundError("response", response_id) from None


async def _current(api: ApiContext, run: Run) -> Response:
    run = await api.engine.runs.get(run.id)  # read before its message: a run that has ended has all its output
    if response_object.asks_client(run):
        return streaming.whole_response(
            await api.engine.subscriptions.subscribe(run.id),
            lambda found: streaming.json_response(
                200, response_object.render_ended(run, found), response_object.headers(run)
            ),
            api.limits.streams,
            None,
            lambda found: found.ended or found.approval is not None,
        )
    message = (await api.engine.messages.get(run.message_id)).message
    return streaming.json_response(200, response_object.render_current(run, message), response_object.headers(run))
