"""Streams over more than one run: the change feed, and compare."""

import json
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Annotated

from fastapi import Header, Query
from starlette.responses import Response

from holdfast.core.ids import RunId, SessionId
from holdfast.core.parts import Part
from holdfast.engine.book.accept import Accepted
from holdfast.engine.feed import Subscription
from holdfast.faces.http.api import Api, read_input
from holdfast.faces.http.requests import Compare, ComparedRun
from holdfast.faces.http.routes.runs import STREAM
from holdfast.faces.http.routing import Router
from holdfast.faces.http.sources import ChangeSource, MergedSource
from holdfast.faces.http.stream import EventStream


def routes(api: Api) -> Router:
    router = Router("streams", "/api")
    service = api.service

    @router.get("/events", response_class=Response, responses=STREAM)
    async def changes(
        after: Annotated[str | None, Query(max_length=200, description="The last id you have.")] = None,
        last_event_id: Annotated[
            str | None, Header(max_length=200, description="The same, as browsers say it.")
        ] = None,
    ) -> Response:
        """What happens to sessions, runs and approvals. `reset`: read the lists again, then go on."""
        cursor = (last_event_id or "").strip() or (after or "").strip() or None
        subscription = service.watch_changes(cursor)
        place = await subscription.begin()
        source = ChangeSource(subscription, place if cursor is None else None)
        return EventStream(source, api.limits.line)

    @router.post("/compare", response_class=Response, responses=STREAM)
    async def compare(body: Compare) -> Response:
        """Ask several models at once. One stream; each frame carries `run_id` and `seq`. Leaving it stops them all."""
        inputs = [await read_input(pane.input, api.library) for pane in body.runs]
        for pane in body.runs:  # before any is begun: a refused call leaves nothing behind
            if pane.session_id is not None:
                await service.session(SessionId(pane.session_id))
        await service.ping()
        held = AsyncExitStack()
        watched: list[Subscription] = []
        try:
            hold = await held.enter_async_context(service.connection())
            taken = [await _take(pane, parts, hold) for pane, parts in zip(body.runs, inputs, strict=True)]
            for one in taken:
                subscription = await service.subscribe(one.run.id)
                watched.append(subscription)
        except BaseException:
            for subscription in watched:
                subscription.close()
            await held.aclose()
            raise
        return EventStream(MergedSource(watched, _opening(taken)), api.limits.line, held)

    async def _take(pane: ComparedRun, parts: Sequence[Part], hold: Callable[[RunId], None]) -> Accepted:
        sid = pane.session_id
        if sid is None:
            sid = (await service.create_session(model=pane.model)).id
        taken = await service.submit(
            SessionId(sid), parts, agent=pane.agent, model=pane.model, settings=pane.settings, lifetime="attached"
        )
        hold(taken.run.id)
        return taken

    return router


def _opening(taken: list[Accepted]) -> bytes:
    runs = [
        {
            "run_id": one.run.id,
            "session_id": one.run.session_id,
            "message_id": one.run.message_id,
            "model": one.run.model,
        }
        for one in taken
    ]
    return f"event: compare.started\ndata: {json.dumps({'runs': runs}, separators=(',', ':'))}\n\n".encode()
