"""Compare: several attached runs in one event stream. Closing the stream cancels all runs."""

import json
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final

from holdfast.core.ids import LOCAL, RunId, SessionId
from holdfast.core.parts import Json, Part, plain_text
from holdfast.core.session import COMPARE, Session
from holdfast.engine.run_feed import RunSubscription
from holdfast.engine.transactions.accept import Accepted, RunOptions
from holdfast.server.context import ApiContext
from holdfast.server.event_sources import MergedSource
from holdfast.server.event_stream import FIRST_FRAME, EventStream
from holdfast.server.parameters import read_input
from holdfast.server.routing import STREAM_RESPONSE, Router
from holdfast.server.schemas.runs import ComparedRunRequest, CompareRequest

router = Router("compare", "/api")

_MAX_TITLE: Final = 80


@router.post("/compare", responses={200: STREAM_RESPONSE})
async def compare(api: ApiContext, body: CompareRequest) -> EventStream:
    """Send a message to several models at once. In the one stream each frame has `run_id` and `seq`; closing the
    stream cancels all its runs."""
    inputs = [await read_input(item.input, api.engine.attachments) for item in body.runs]
    for item in body.runs:  # before any run starts: a rejected request leaves nothing behind
        if item.session_id is not None:
            await api.engine.sessions.get(item.session_id)
    await api.engine.ping()
    connection = AsyncExitStack()
    subscriptions: list[RunSubscription] = []
    try:
        attach = await connection.enter_async_context(api.engine.connections.open())
        settings = None if body.comparison is None else {"source": COMPARE, "comparison": body.comparison.model_dump()}
        items = zip(body.runs, inputs, strict=True)
        started = [await _start(api, item, parts, attach, settings) for item, parts in items]
        for accepted in started:
            subscription = await api.engine.subscriptions.subscribe(accepted.run.id)
            subscriptions.append(subscription)
    except BaseException:
        for subscription in subscriptions:
            subscription.close()
        await connection.aclose()
        raise
    runs = [
        {"run_id": run.id, "session_id": run.session_id, "message_id": run.message_id, "model": run.model}
        for run in (accepted.run for accepted in started)
    ]
    data = json.dumps({"runs": runs}, separators=(",", ":"))
    first = FIRST_FRAME + f"event: compare.started\ndata: {data}\n\n".encode()
    return EventStream(MergedSource(subscriptions), api.limits.streams, connection, first_frame=first)


async def _start(
    api: ApiContext,
    item: ComparedRunRequest,
    parts: Sequence[Part],
    attach: Callable[[RunId], None],
    settings: Json,
) -> Accepted:
    if item.session_id is not None:
        accepted = await api.engine.runs.submit(
            item.session_id, parts, agent=item.agent, model=item.model, settings=item.settings, lifetime="attached"
        )
    else:
        session = _new_session(api, item, parts, settings)
        options = RunOptions(None, agent=item.agent, model=item.model, settings=item.settings, lifetime="attached")
        accepted = await api.engine.runs.start_session(session, (), parts, options)
    attach(accepted.run.id)
    return accepted


def _new_session(api: ApiContext, item: ComparedRunRequest, parts: Sequence[Part], settings: Json) -> Session:
    title = "" if settings is None else plain_text(parts).strip().partition("\n")[0][:_MAX_TITLE]
    sid, now = SessionId(api.engine.ids.new("ses")), api.engine.clock.now()
    session = Session(sid, LOCAL, now, now, title, "person" if title else "nobody", model=item.model, settings=settings)
    return session if item.agent is None else replace(session, agent=item.agent)
