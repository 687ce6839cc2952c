"""The change feed: a stream of changes to sessions, runs and approvals. What it contains, and what a late reader gets:
`engine.change_feed`."""

from typing import Annotated

from pydantic import Field

from holdfast.server.context import ApiContext
from holdfast.server.event_sources import ChangeSource
from holdfast.server.event_stream import FIRST_FRAME, EventStream
from holdfast.server.routing import STREAM_RESPONSE, Header, Router

router = Router("change feed", "/api")


@router.get("/events", responses={200: STREAM_RESPONSE})
async def watch_changes(
    api: ApiContext,
    after: Annotated[str | None, Field(max_length=200, description="Send the events after this id.")] = None,
    last_event_id: Annotated[
        str | None,
        Header("Last-Event-ID"),
        Field(max_length=200, description="Browsers send it when they reconnect. It overrides `after`."),
    ] = None,
) -> EventStream:
    """Stream changes to sessions, runs and approvals. After a `reset` event, read the lists again and go on."""
    cursor = (last_event_id or "").strip() or (after or "").strip() or None
    subscription = api.engine.subscriptions.watch_changes(cursor)
    position = await subscription.begin()
    # A client without a cursor gets an id first: it can reconnect even if it is cut off before the first change.
    first = FIRST_FRAME if cursor is not None else FIRST_FRAME + f"id: {position}\n\n".encode()
    return EventStream(ChangeSource(subscription), api.limits.streams, first_frame=first)
