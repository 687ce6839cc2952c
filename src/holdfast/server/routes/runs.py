"""Runs: start, list, watch, cancel, continue, recover, retry, edit, and approve tool calls. What each does:
`engine.runs`."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Annotated, Final, get_args

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from holdfast.core.drafts import SentDraft
from holdfast.core.errors import InvalidInputError
from holdfast.core.ids import LOCAL, ApprovalId, RunId, SessionId
from holdfast.core.run import Run, RunStatus
from holdfast.engine.run_feed import RunSubscription
from holdfast.engine.transactions.accept import Accepted
from holdfast.ports.store import RunQuery
from holdfast.server import parameters as p
from holdfast.server import security_log
from holdfast.server.client_address import request_address
from holdfast.server.context import ApiContext
from holdfast.server.event_sources import RunSource, respond_with_run
from holdfast.server.event_stream import EventStream
from holdfast.server.reauthentication import require_recent_login
from holdfast.server.routing import STREAM_RESPONSE, Header, ResponseInfo, Router, json_response
from holdfast.server.schemas import runs as s
from holdfast.server.schemas.drafts import SentDraftRequest

router = Router("runs", "/api")
_STATUSES: Final = get_args(RunStatus)


def _respond(accepted: Accepted) -> Response:
    warnings = [state.message for state in accepted.over_budget]
    body = s.AcceptedRunResponse.from_run(accepted.run, accepted.message, warnings)
    return json_response(body, 202, {"Location": f"/api/runs/{accepted.run.id}"})


def _sent(draft: SentDraftRequest | None) -> SentDraft | None:
    return None if draft is None else SentDraft(draft.session_id, draft.version)


@router.post("/sessions/{sid}/runs", status=202, returns=s.AcceptedRunResponse, responses={200: STREAM_RESPONSE})
async def start_run(
    api: ApiContext, sid: p.SessionIdPath, body: s.StartRunRequest, key: p.IdempotencyKey = None
) -> Response:
    """Send a message. Detached: the response comes when the message is stored, and the run goes on without the client.
    Attached: the response is the run's event stream, and closing it cancels the run."""
    parts = await p.read_input(body.input, api.engine.attachments)
    if body.lifetime == "attached" and key is not None:
        await api.engine.ping()  # a stream that cannot be opened would use up the idempotency key
    accepted = await api.engine.runs.submit(
        sid, parts, key=key, draft=_sent(body.draft), **body.model_dump(exclude={"input", "draft"})
    )
    if accepted.run.lifetime == "detached":
        return _respond(accepted)
    location = [(b"location", f"/api/runs/{accepted.run.id}".encode())]
    starts_now = accepted.fresh and accepted.run.status == "running"
    return await respond_with_run(api, accepted, partial(_stream, api, location, starts_now=starts_now))


def _stream(
    api: ApiContext,
    headers: Sequence[tuple[bytes, bytes]],
    subscription: RunSubscription,
    connection: AsyncExitStack | None = None,
    *,
    starts_now: bool = False,
) -> Response:
    if subscription.at_end and connection is None:
        subscription.close()
        return Response(status_code=204)
    source = RunSource(subscription, attached=connection is not None, starts_now=starts_now)
    return EventStream(source, api.limits.streams, connection, headers)


@router.get("/runs")
async def list_runs(
    api: ApiContext,
    status: Annotated[str | None, Field(max_length=200, description="One or more, separated by commas.")] = None,
    session: Annotated[SessionId | None, Field(max_length=200)] = None,
    limit: p.Limit = 50,
    cursor: p.Cursor = None,
) -> s.RunListResponse:
    """List runs, newest first."""
    before = p.read_cursor(cursor, tuple[p.Moment, RunId])
    statuses = None if status is None else _read_statuses(status)
    found = await api.engine.runs.list(RunQuery(LOCAL, session, statuses, limit + 1, before))
    last = found[limit - 1] if len(found) > limit else None
    return s.RunListResponse(
        items=await _run_responses(api, found[:limit]),
        next=None if last is None else p.write_cursor(last.created_at, last.id),
    )


def _read_statuses(text: str) -> list[str]:
    found = [item.strip() for item in text.split(",") if item.strip()]
    for item in found:
        if item not in _STATUSES:
            raise InvalidInputError("status", f"{item!r} is not a valid status; expected one of {', '.join(_STATUSES)}")
    return found


@router.get("/runs/{rid}")
async def read_run(api: ApiContext, rid: p.RunIdPath) -> s.RunResponse:
    (response,) = await _run_responses(api, [await api.engine.runs.get(rid)])
    return response


async def _run_responses(api: ApiContext, runs: Sequence[Run]) -> list[s.RunResponse]:
    waits_for = await api.engine.runs.waits_for(runs)
    found = map(s.RunResponse.model_validate, runs)
    return [response.model_copy(update={"waits_for": waits_for.get(RunId(response.id))}) for response in found]


@router.get(
    "/runs/{rid}/events",
    responses={
        200: STREAM_RESPONSE,
        204: ResponseInfo("The run has ended and has no events after the cursor.", media_types=()),
    },
)
async def watch_run(
    api: ApiContext,
    rid: p.RunIdPath,
    after: Annotated[int | None, Field(ge=0, le=p.MAX_SEQ, description="Send the events after this number.")] = None,
    last_event_id: Annotated[
        str | None,
        Header("Last-Event-ID"),
        Field(max_length=100, description="Browsers send it when they reconnect. It overrides `after`."),
    ] = None,
) -> Response:
    """Stream all events after the cursor, then live ones, until the terminal event."""
    cursor = after or 0
    if last_event_id is not None and last_event_id.strip():
        text = last_event_id.strip()
        if not (text.isascii() and text.isdigit() and len(text) < 17 and int(text) <= p.MAX_SEQ):
            raise InvalidInputError("Last-Event-ID", f"{text!r} is not an event id; event ids are numbers")
        cursor = int(text)
    return _stream(api, (), await api.engine.subscriptions.subscribe(rid, cursor))


@router.get("/runs/{rid}/events/page", returns=s.RunEventListResponse)
async def list_events(
    api: ApiContext, rid: p.RunIdPath, after: Annotated[int, Field(ge=0, le=p.MAX_SEQ)] = 0
) -> Response:
    """A page of the events after the cursor, for clients that cannot receive event streams."""
    entries = await api.engine.subscriptions.read_page(rid, after)
    items = b",".join(entry.json() for entry in entries)
    following = b'"%d"' % entries[-1].seq if entries else b"null"
    return Response(b'{"items":[%b],"next":%b}' % (items, following), media_type="application/json")


@router.patch("/runs/{rid}")
async def edit_queued_run(api: ApiContext, rid: p.RunIdPath, body: s.EditQueuedRunRequest) -> s.AcceptedRunResponse:
    """Change the message of a queued run."""
    accepted = await api.engine.runs.edit_queued(rid, await p.read_input(body.input, api.engine.attachments))
    return s.AcceptedRunResponse.from_run(accepted.run, accepted.message)


@router.post("/runs/{rid}/cancel")
async def cancel_run(api: ApiContext, rid: p.RunIdPath) -> s.RunResponse:
    """Cancel the run; its output so far is kept. The response comes when that is saved, or after two seconds."""
    return s.RunResponse.model_validate(await api.engine.runs.cancel(rid))


@router.post("/runs/{rid}/steer", status=202, returns=s.AcceptedRunResponse)
async def steer_run(api: ApiContext, rid: p.RunIdPath, body: s.SteerRequest, key: p.IdempotencyKey = None) -> Response:
    """Add text to an active run: its model reads it at the next step. The text is stored as a queued message, whose run
    has `steers`. If the run ends before its next step, has ended, or has an agent that cannot be steered, it is sent as
    the next message. When it has been added, the queued run ends as `cancelled` with the reason `steered`."""
    return _respond(await api.engine.runs.steer(rid, body.text, key=key, draft=_sent(body.draft)))


@router.post("/sessions/{sid}/cancel")
async def cancel_session_run(
    api: ApiContext, sid: p.SessionIdPath, body: s.CancelSessionRequest | None = None
) -> s.CancelledRunResponse:
    """Cancel the active run, or with `key` the run that was sent with this idempotency key. If no run has the key yet,
    a request with it is refused for ten minutes. Queued messages are sent then."""
    key = None if body is None else body.key
    run = await api.engine.runs.cancel_in_session(sid, key=key)
    return s.CancelledRunResponse(run=None if run is None else s.RunResponse.model_validate(run))


@router.post("/runs/{rid}/continue", status=202, returns=s.AcceptedRunResponse)
async def continue_run(
    api: ApiContext, rid: p.RunIdPath, body: s.ContinueRunRequest | None = None, key: p.IdempotencyKey = None
) -> Response:
    """Start a run that continues where this one stopped, without repeating finished work."""
    body = body or s.ContinueRunRequest()
    allow = frozenset(body.allow)
    return _respond(await api.engine.runs.continue_run(rid, key=key, model=body.model, allow=allow))


@router.post("/runs/{rid}/recover")
async def recover_run(api: ApiContext, rid: p.RunIdPath) -> s.RunResponse:
    """Try again to read the output of a run whose journal could not be read."""
    return s.RunResponse.model_validate(await api.engine.runs.recover(rid))


@router.post("/runs/{rid}/approvals/{aid}")
async def decide_approval(
    api: ApiContext, request: Request, rid: p.RunIdPath, aid: p.IdPath, body: s.ApprovalDecisionRequest
) -> s.RunResponse:
    """Allow or deny a tool call that waits for approval. The first decision wins. `always` needs a recent login."""
    if body.decision == "always":
        require_recent_login(request, "always allow a tool")
    run = await api.engine.runs.decide(rid, ApprovalId(aid), body.decision, option=body.option)
    if body.decision == "always":
        security_log.record("tool always allowed", address=request_address(request, api.trusted_proxies), run=rid)
    return s.RunResponse.model_validate(run)


@router.post("/runs/{rid}/inputs/{request_id}")
async def answer_input(
    api: ApiContext, rid: p.RunIdPath, request_id: p.IdPath, body: s.InputAnswerRequest
) -> s.RunResponse:
    """Answer what the model asks with `ask_user`, whose answer is `content.answer`, or what the server of a running
    tool asks: fill in its form, or let it use the model. The first answer wins; `decline` lets the run go on without
    one."""
    run = await api.engine.runs.answer_input(rid, ApprovalId(request_id), body.action, body.content)
    return s.RunResponse.model_validate(run)


@router.post("/sessions/{sid}/retry", status=202, returns=s.AcceptedRunResponse)
async def retry(
    api: ApiContext,
    sid: p.SessionIdPath,
    body: s.RetryRequest,
    key: p.IdempotencyKey = None,
    if_match: p.IfMatch = None,
) -> Response:
    """Generate another answer to the same message; earlier answers are kept as siblings."""
    version, mid = p.expected_version(if_match), body.message_id
    return _respond(await api.engine.runs.retry(sid, mid, key=key, model=body.model, if_version=version))


@router.post("/sessions/{sid}/edit", status=202, returns=s.AcceptedRunResponse)
async def edit_message(
    api: ApiContext,
    sid: p.SessionIdPath,
    body: s.EditMessageRequest,
    key: p.IdempotencyKey = None,
    if_match: p.IfMatch = None,
) -> Response:
    """Send a changed version of a user message, as a branch of its own."""
    parts = await p.read_input(body.input, api.engine.attachments)
    version, mid = p.expected_version(if_match), body.message_id
    return _respond(await api.engine.runs.edit(sid, mid, parts, key=key, model=body.model, if_version=version))
