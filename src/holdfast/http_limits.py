"""Limits for HTTP responses that libraries read through httpx2, whose clients have no limits of their own.
They bound a whole body and one event of an event stream, and refuse compression, because a megabyte can expand to a
gigabyte. Limits of requests to this server: `server.context.ServerLimits`; of models' answers:
`models.request_policy`."""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any, Final

import httpx2
from anyio.lowlevel import checkpoint

from holdfast.core.json_limits import JsonCounter

MAX_BODY: Final = 32 * 1024 * 1024  # Bytes of a response that is not an event stream
MAX_STRUCTURE: Final = 1024 * 1024
"""Bytes outside of strings, of a body or of an event. Libraries parse JSON on the event loop, which takes a third of a
second for so many; an image is a single string."""
MAX_STRINGS: Final = 200_000  # Of a body or of an event
_EVENT_ENDS: Final = (b"\n\n", b"\r\n\r\n")
"""All libraries take these for the end of an event, and some take nothing else. They collect lines until then."""
_PIECE: Final = 4096
"""Bytes of events after which everything else may run: libraries take up to 0.1 ms for the smallest event."""
_BORDER: Final = 3  # Bytes of a chunk that may belong to an end in the next one


def limited_hooks(max_event: int = MAX_BODY) -> dict[str, list[Any]]:
    """Event hooks of a client; they apply to redirects and to requests for signing in too. `max_event`: bytes of each
    event of an event stream."""
    return {"request": [_refuse_compression], "response": [partial(_limit, max_event)]}


async def _refuse_compression(request: httpx2.Request) -> None:
    request.headers["Accept-Encoding"] = "identity"


async def _limit(max_event: int, response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise httpx2.DecodingError("its answer is compressed, which was not asked for", request=response.request)
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    in_events = response.headers.get("content-type", "").startswith("text/event-stream")
    limit = max_event if in_events else MAX_BODY
    response.stream = _LimitedStream(response.stream, response.request, limit, in_events=in_events)


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, request: httpx2.Request, limit: int, *, in_events: bool) -> None:
        self._stream = stream
        self._request = request
        self._limit = limit
        self._in_events = in_events
        self._size, self._counter = 0, JsonCounter()  # Of the body or event that is being read

    async def __aiter__(self) -> AsyncIterator[bytes]:
        border = b""
        async for chunk in self._stream:
            end = 0
            if self._in_events:
                # Events that begin and end in this chunk count as one: a chunk is small beside the limits.
                end = max(_end_of_last_event(border + chunk) - len(border), 0)
                border = (border + chunk)[-_BORDER:]
            if end:
                self._count(chunk[:end])
                self._size, self._counter = 0, JsonCounter()
            self._count(chunk[end:])
            if len(chunk) <= _PIECE or not self._in_events:
                yield chunk
                continue
            for piece in _pieces(chunk):
                yield piece
                await checkpoint()

    def _count(self, data: bytes) -> None:
        self._size += len(data)
        self._counter.add(data)
        if self._size > self._limit:
            raise httpx2.DecodingError("its answer is too large", request=self._request)
        if self._counter.structure > MAX_STRUCTURE or self._counter.strings > MAX_STRINGS:
            raise httpx2.DecodingError("its answer is too large: it has too many values", request=self._request)

    async def aclose(self) -> None:
        await self._stream.aclose()


def _pieces(chunk: bytes) -> Iterator[bytes]:
    """The chunk, cut only between events: libraries copy an event again with each piece of it."""
    start = 0
    while True:
        ends = [at + len(end) for end in _EVENT_ENDS if (at := chunk.find(end, start + _PIECE)) >= 0]
        if not ends:
            break
        yield chunk[start : min(ends)]
        start = min(ends)
    if start < len(chunk):
        yield chunk[start:]


def _end_of_last_event(data: bytes) -> int:
    return max((at + len(end) for end in _EVENT_ENDS if (at := data.rfind(end)) >= 0), default=0)
