"""Reads event streams, and follows a run's events across lost connections, without gaps or repeats."""

import json
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio

from holdfast.cli.exit_codes import ConnectionLostError, ServerRefusedError
from holdfast.cli.server_connection import RECONNECT_TIMEOUT, ServerConnection, api_path
from holdfast.core.events import TERMINAL_TYPES
from holdfast.core.sse_parser import EventTooLongError, SseParser

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_PAUSE: Final = 0.5


class FollowedEvent(NamedTuple):
    seq: int  # 0 in streams that cannot be resumed
    type: str
    data: dict[str, Any]


async def follow_run(
    connection: ServerConnection, rid: str, on_event: Callable[[FollowedEvent], bool | None], after: int = 0
) -> None:
    """Calls `on_event` once for each event until the run ends or `on_event` returns True. Raises ConnectionLostError if
    the server does not come back."""
    idle = 0.0
    while True:
        before = after
        reason = ConnectionLostError("The server closed the stream.")
        try:
            path = api_path("runs", rid, "events")
            async with connection.client.stream("GET", path, params={"after": after}) as response:
                if response.status == 204:
                    return
                async for event in read_events(response):
                    if event.seq > after:
                        after = event.seq
                        if on_event(event) or event.type in TERMINAL_TYPES:
                            return
        except ConnectionLostError as error:
            reason = error
        except ServerRefusedError as error:
            if error.status != 503:
                raise
            reason = ConnectionLostError(str(error))
        idle = 0.0 if after > before else idle + _PAUSE
        if idle > RECONNECT_TIMEOUT:
            raise reason
        await anyio.sleep(_PAUSE)
        await connection.reconnect(reason)


async def read_events(response: "ClientResponse") -> AsyncIterator[FollowedEvent]:
    parser = SseParser()
    async for chunk in response.content.iter_any():
        try:
            received = parser.feed(chunk)
        except EventTooLongError as error:
            raise ConnectionLostError(str(error)) from None
        for event in received:
            yield FollowedEvent(int(event.id or 0), event.event, json.loads(event.data))
