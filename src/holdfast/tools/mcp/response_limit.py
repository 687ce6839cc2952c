"""Limits what a remote MCP server can make this process keep in memory and parse."""

from collections.abc import AsyncIterator
from typing import Final

import httpx2

MAX_SIZE: Final = 8 * 1024 * 1024  # Bytes of a response, or of an event of a stream
MAX_QUOTES: Final = 400_000
"""Two for each name and string of a response. The SDK parses it on the event loop, which takes a third of a second for
so many; an image is a single string."""
IDENTITY: Final = {"Accept-Encoding": "identity"}


async def limit_response(response: httpx2.Response) -> None:
    """A response hook. Compressed responses are refused, because a small one can unpack to any size."""
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    has_events = response.headers.get("content-type", "").startswith("text/event-stream")
    compressed = response.headers.get("content-encoding", "identity").strip().lower() != "identity"
    response.stream = _LimitedStream(response.stream, has_events, compressed)


class _LimitedStream(httpx2.AsyncByteStream):
    """Raises StreamError, which the SDK reports as the failure of one request and not of the connection."""

    def __init__(self, inner: httpx2.AsyncByteStream, has_events: bool, compressed: bool) -> None:
        self._inner = inner
        self._has_events = has_events
        self._compressed = compressed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._compressed:
            raise httpx2.StreamError("The response is compressed, which was not asked for.")
        size = quotes = 0
        async for chunk in self._inner:
            size += len(chunk)
            quotes += chunk.count(b'"') - chunk.count(b'\\"')
            if size > MAX_SIZE and not self._has_events:  # the SDK limits an event to the same size
                raise httpx2.StreamError(f"The response is larger than {MAX_SIZE // 2**20} MB.")
            if quotes > MAX_QUOTES:
                raise httpx2.StreamError(f"The response has more than {MAX_QUOTES // 2} names and strings.")
            yield chunk
            if self._has_events and (end := max(map(chunk.rfind, (b"\n\n", b"\n\r\n", b"\r\r")))) >= 0:
                quotes = chunk.count(b'"', end)

    async def aclose(self) -> None:
        await self._inner.aclose()
