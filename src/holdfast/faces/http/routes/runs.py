"""Turns: send, retry, edit, continue, watch, stop, answer."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Annotated, Any

from fastapi import Header, Query
from starlette.responses import JSONResponse, Response

from holdfast.core.errors import Invalid
from holdfast.core.ids import LOCAL, ApprovalId, MessageId, RunId, SessionId
from holdfast.engine.book.accept import Accepted
from holdfast.faces.http import answers, cursors
from holdfast.faces.http import descriptions as d
from holdfast.faces.http.api import Api, Cursor, IfMatch, Key, Limit, Rid, Sid, read_input, version
from holdfast.faces.http.cursors import MAX_SEQ
from holdfast.faces.http.requests import ContinueRun, Decide, Edit, EditQueued, NewRun, Retry
from holdfast.faces.http.routing import Router
from holdfast.faces.http.sources import RunSource
from holdfast.faces.http.stream import EventStream

STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "The events of the run.", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
}


def accepted(taken: Accepted) -> JSONResponse:
    body = {"run": answers.run(taken.run), "message": answers.message(taken.message)}
    return JSONResponse(body, 202, {"Location": f"/api/runs/{taken.run.id}"})


def routes(api: Api) -> Router:
    router = Router("runs", "/api")
    service = api.service

    @router.post("/sessions/{sid}/runs", status_code=202, response_model=d.AcceptedOut, responses=STREAM)
    async def send(sid: Sid, body: NewRun, key: Key = None) -> Response:
        """Send a message. Detached: answered when it is stored; the run goes on without you. Attached: the answer is
        the event stream itself, and leaving it stops the run."""
        parts = await read_input(body.input, api.library)
        if body.lifetime == "attached":
            await service.ping()  # a stream that could not be opened would use up the key
        taken = await service.submit(
            SessionId(sid),
            parts,
            key=key,
            agent=body.agent,
            model=body.model,
            settings=body.settings,
            lifetime=body.lifetime,
            on_busy=body.on_busy,
        )
        if taken.run.lifetime == "detached":
            return accepted(taken)
        held: AsyncExitStack | None = None
        if taken.fresh:  # entered without an await in between: from here on the run is its connection
            held = AsyncExitStack()
            await held.enter_async_context(service.attached(taken.run.id))
        location = [(b"location", f"/api/runs/{taken.run.id}".encode())]
        try:
            return await _stream(taken.run.id, 0, held, location)
        except BaseException:
            if held is not None:
                await held.aclose()
            raise

    async def _stream(
        rid: RunId, after: int, held: AsyncExitStack | None = None, headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> Response:
        subscription = await service.subscribe(rid, after)
        if subscription.at_end and held is None:
            subscription.close()
            return Response(status_code=204)
        source = RunSource(subscription, attached=held is not None)
        return EventStream(source, api.limits.line, held, headers, follow=source.follow)

    @router.get("/runs", response_model=d.Runs)
    async def list_runs(
        status: Annotated[str | None, Query(max_length=200, description="One or several, with commas.")] = None,
        session: Annotated[str | None, Query(max_length=200)] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        """The newest first."""
        before = None
        if cursor is not None:
            at, rid = cursors.read(cursor, float, str)
            before = (float(at), RunId(rid))
        wanted = None if status is None else _statuses(status)
        sid = None if session is None else SessionId(session)
        found = await service.runs(LOCAL, status=wanted, sid=sid, limit=limit + 1, before=before)
        more = found[limit - 1] if len(found) > limit else None
        return JSONResponse(
            {
                "items": [answers.run(run) for run in found[:limit]],
                "next": None if more is None else cursors.write(more.created_at, more.id),
            }
        )

    @router.get("/runs/{rid}", response_model=d.RunOut)
    async def read_run(rid: Rid) -> Response:
        return JSONResponse(answers.run(await service.run(RunId(rid))))

    @router.get(
        "/runs/{rid}/events",
        response_class=Response,
        responses={**STREAM, 204: {"description": "Nothing comes after this cursor: the run has ended."}},
    )
    async def watch(
        rid: Rid,
        after: Annotated[int | None, Query(ge=0, le=MAX_SEQ, description="The last seq you have.")] = None,
        last_event_id: Annotated[
            str | None, Header(max_length=100, description="The same, as browsers say it.")
        ] = None,
    ) -> Response:
        """Everything after the cursor, then live; ends after the terminal event."""
        cursor = after or 0
        if last_event_id is not None and last_event_id.strip():
            text = last_event_id.strip()
            if not (text.isascii() and text.isdigit() and int(text[:17]) <= MAX_SEQ and len(text) < 17):
                raise Invalid("Last-Event-ID", f"{text!r} is not the id of an event; ids are numbers")
            cursor = int(text)
        return await _stream(RunId(rid), cursor)

    @router.patch("/runs/{rid}", response_model=d.AcceptedOut)
    async def edit_queued(rid: Rid, body: EditQueued) -> Response:
        """Change a message that still waits in the queue."""
        taken = await service.edit_queued(RunId(rid), await read_input(body.input, api.library))
        return JSONResponse({"run": answers.run(taken.run), "message": answers.message(taken.message)})

    @router.post("/runs/{rid}/cancel", response_model=d.RunOut)
    async def cancel(rid: Rid) -> Response:
        """Stop it; what it has said is kept. Answered when that is saved, or after two seconds."""
        return JSONResponse(answers.run(await service.cancel(RunId(rid))))

    @router.post("/runs/{rid}/continue", status_code=202, response_model=d.AcceptedOut)
    async def continue_run(rid: Rid, body: ContinueRun | None = None, key: Key = None) -> Response:
        """Go on where it stopped, without doing again what it has done."""
        model = None if body is None else body.model
        return accepted(await service.continue_run(RunId(rid), key=key, model=model))

    @router.post("/runs/{rid}/recover", response_model=d.RunOut)
    async def recover(rid: Rid) -> Response:
        """Look once more for the output of a run whose journal could not be read."""
        return JSONResponse(answers.run(await service.recover(RunId(rid))))

    @router.post("/runs/{rid}/approvals/{aid}", response_model=d.RunOut)
    async def decide(rid: Rid, aid: Rid, body: Decide) -> Response:
        """Answer a tool that asks. The first answer counts."""
        return JSONResponse(answers.run(await service.decide(RunId(rid), ApprovalId(aid), body.decision)))

    @router.post("/sessions/{sid}/retry", status_code=202, response_model=d.AcceptedOut)
    async def retry(sid: Sid, body: Retry, key: Key = None, if_match: IfMatch = None) -> Response:
        """Another answer to the same message, beside the earlier ones."""
        mid = MessageId(body.message_id)
        return accepted(
            await service.retry(SessionId(sid), mid, key=key, model=body.model, if_version=version(if_match))
        )

    @router.post("/sessions/{sid}/edit", status_code=202, response_model=d.AcceptedOut)
    async def edit(sid: Sid, body: Edit, key: Key = None, if_match: IfMatch = None) -> Response:
        """Say it differently, as a branch of its own."""
        parts = await read_input(body.input, api.library)
        mid = MessageId(body.message_id)
        return accepted(
            await service.edit(SessionId(sid), mid, parts, key=key, model=body.model, if_version=version(if_match))
        )

    return router


_STATUSES = ("queued", "running", "waiting", "complete", "cancelled", "failed", "interrupted")


def _statuses(text: str) -> list[str]:
    found = [item.strip() for item in text.split(",") if item.strip()]
    for item in found:
        if item not in _STATUSES:
            raise Invalid("status", f"{item!r} is none; there are {', '.join(_STATUSES)}")
    return found
