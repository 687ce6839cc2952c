"""Responses: made, looked at, followed from any event on, cancelled, deleted. A response is a run."""

from contextlib import AsyncExitStack
from typing import Annotated, Literal

from fastapi import Path, Query
from starlette.responses import JSONResponse, Response

from holdfast.core.errors import NotFound
from holdfast.core.ids import SessionId
from holdfast.core.run import Run
from holdfast.core.transcript import Transcript
from holdfast.engine.book.accept import Accepted
from holdfast.engine.feed import Subscription
from holdfast.faces.http.api import Api, Key
from holdfast.faces.http.cursors import MAX_SEQ
from holdfast.faces.http.routing import Router
from holdfast.faces.openai import described as d
from holdfast.faces.openai import frames, inputs, items, names, output, requests, standing, taking, targets, wishes
from holdfast.faces.openai.answering import TranslatedSource, TranslatedStream, WholeAnswer, as_json
from holdfast.faces.openai.errors import Wrong
from holdfast.faces.openai.events import ResponseEvents
from holdfast.faces.openai.holding import LifetimeHeader, answered, lifetime
from holdfast.faces.openai.requests import ResponseIn
from holdfast.faces.openai.said import Script
from holdfast.faces.openai.taking import Call

ResponseId = Annotated[str, Path(max_length=200, description="Id of a response.")]


def routes(api: Api) -> Router:
    router = Router("openai", "/v1/responses", d.ERRORS)
    service = api.service

    @router.post("", response_model=d.ResponseOut, responses={200: d.STREAM})
    async def create_response(body: ResponseIn, key: Key = None, lasts: LifetimeHeader = None) -> Response:
        """Ask. In the background it goes on without the client; otherwise it ends with it."""
        call = await _call(api, body, key, lasts)
        if body.background and not body.stream:
            taken = await taking.take(api, call)
            return await _shown(taken.run)

        def respond(taken: Accepted, subscription: Subscription, held: AsyncExitStack | None) -> Response:
            run = taken.run
            if body.stream:
                return _streamed(run, subscription, held)
            return WholeAnswer(subscription, lambda told: _ended(run, told), held)

        return await answered(api, call, respond)

    @router.get("/{response_id}", response_model=d.ResponseOut, responses={200: d.STREAM})
    async def retrieve_response(
        response_id: ResponseId,
        stream: bool = False,
        starting_after: Annotated[int | None, Query(ge=0, le=MAX_SEQ, description="The last number you have.")] = None,
        include: Annotated[list[str] | None, Query(max_length=20)] = None,
        include_array: Annotated[list[str] | None, Query(alias="include[]", max_length=20)] = None,
        include_obfuscation: bool | None = None,
    ) -> Response:
        """As it is now; with `stream` its events, all of them or those after a number, then live."""
        run = await _run(response_id)
        if not stream:
            return await _shown(run)
        subscription = await service.subscribe(run.id)
        return _streamed(run, subscription, None, -1 if starting_after is None else starting_after)

    @router.post("/{response_id}/cancel", response_model=d.ResponseOut)
    async def cancel_response(response_id: ResponseId) -> Response:
        """Stop it; what it has said is kept."""
        await _run(response_id)
        return await _shown(await service.cancel(names.run_of(response_id)))

    @router.delete("/{response_id}", response_model=d.Deleted)
    async def delete_response(response_id: ResponseId) -> Response:
        """Erase what was asked and answered; with the last response of a conversation, the conversation."""
        await _run(response_id)
        await service.erase_turn(names.run_of(response_id))
        return JSONResponse({"id": response_id, "object": "response", "deleted": True})

    @router.get("/{response_id}/input_items", response_model=d.InputItems)
    async def response_input_items(
        response_id: ResponseId,
        limit: Annotated[int, Query(ge=1, le=100)] = 20,
        order: Literal["asc", "desc"] = "desc",
        after: Annotated[str | None, Query(max_length=200, description="The last id you have.")] = None,
        include: Annotated[list[str] | None, Query(max_length=20)] = None,
        include_array: Annotated[list[str] | None, Query(alias="include[]", max_length=20)] = None,
    ) -> Response:
        """What the model was shown, the conversation before it included."""
        run = await _run(response_id)
        found = inputs.of_path(await service.path(run.user_message_id))
        return JSONResponse(inputs.page(found, limit, order, after))

    def _streamed(run: Run, subscription: Subscription, held: AsyncExitStack | None, after: int = -1) -> Response:
        queued, own_tools = standing.is_background(run), standing.own_tools(run)
        events = ResponseEvents(run.id, standing.base(run), queued=queued, own_tools=own_tools, after=after)
        source = TranslatedSource(subscription, events, events.open(), attached=held is not None)
        return TranslatedStream(source, api.limits.line, held, standing.headers(run))

    async def _run(response_id: str) -> Run:
        try:
            return await service.run(names.run_of(response_id))
        except NotFound:
            raise NotFound("response", response_id) from None

    async def _shown(run: Run) -> Response:
        run = await service.run(run.id)  # before its message: what has ended has all its output
        message = (await service.message(run.message_id)).message
        return as_json(200, standing.response(run, message), standing.headers(run))

    return router


def _ended(run: Run, told: Transcript) -> Response:
    how = frames.outcome(told.status, told.reason, told.finish_reason, told.error, told.usage)
    complete = told.status == "complete"
    found = output.items(run.id, told.parts, complete=complete, own_tools=standing.own_tools(run))
    return as_json(200, frames.response(standing.base(run), how, found), standing.headers(run))


async def _call(api: Api, body: ResponseIn, key: str | None, lasts: str | None) -> Call:
    ignored = requests.judge(body)
    if body.previous_response_id is not None and body.conversation is not None:
        told = "'previous_response_id' and 'conversation' exclude each other: both say what this goes on from."
        raise Wrong("previous_response_id", told, "mutually_exclusive_parameters")
    ends = lifetime(lasts, "detached" if body.background else "attached")
    if body.store is False and (ends == "detached" or body.conversation is not None):
        why = "has to be stored" if ends == "detached" else "is kept in its conversation"
        raise Wrong("store", f"What goes on without its client, or in a conversation, {why}. Leave out 'store'.")
    target = await targets.find(api, body.model)
    wished = wishes.of_response(body, target)
    below = None
    if body.previous_response_id is not None:
        below = await taking.run_before(api, body.previous_response_id)
    session = await _session(api, body)
    script = await _script(api, body, below)
    past, last = script.ended()
    system = "\n\n".join([*([body.instructions] if body.instructions else []), *script.system]) or None
    ignored += [*wished.ignored, *script.moved]
    settings = {**wished.settings, "instructions": system, "openai": standing.echo(body, target.name, ignored)}
    return Call(
        target,
        system,
        past,
        last,
        settings,
        ["response", body.model_dump(mode="json", exclude_unset=True)],
        key,
        ends,
        keep=body.store is not False,
        below=below,
        session=session,
    )


async def _session(api: Api, body: ResponseIn) -> SessionId | None:
    if body.conversation is None:
        return None
    given = body.conversation if isinstance(body.conversation, str) else body.conversation.id
    try:
        return (await api.service.session(names.session_of(given))).session.id
    except NotFound:
        raise Wrong(
            "conversation", f"Conversation with id '{given[:100]}' not found.", "conversation_not_found"
        ) from None


async def _script(api: Api, body: ResponseIn, below: Run | None) -> Script:
    script = Script("input")
    if below is not None:
        script.calls |= await taking.calls_before(api, below.message_id)
    elif body.conversation is not None and (session := await _session(api, body)) is not None:
        head = (await api.service.session(session)).session.head
        script.calls |= {} if head is None else await taking.calls_before(api, head)
    return items.read_input(body.input, script, await taking.referred(api, items.references(body.input)))
