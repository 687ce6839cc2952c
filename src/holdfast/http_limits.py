"""Limits on the responses that libraries read through httpx2, whose clients have none: a whole body, one line of an
event stream, and no compression, because a megabyte can expand to a gigabyte."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final

import httpx2

MAX_BODY: Final = 32 * 1024 * 1024  # Bytes of a response that is not an event stream
MAX_QUOTES: Final = 400_000
"""Two for each name and string of a body, or of a line of an event stream. Libraries parse JSON on the event loop,
which takes a third of a second for so many; an image is a single string."""


def limited_hooks(max_line: int = MAX_BODY) -> dict[str, list[Any]]:
    """Event hooks of a client; they apply to redirects and to requests for signing in too. `max_line`: bytes of each
    line of an event stream."""
    return {"request": [_refuse_compression], "response": [partial(_limit, max_line)]}


async def _refuse_compression(request: httpx2.Request) -> None:
    request.headers["Accept-Encoding"] = "identity"


async def _limit(max_line: int, response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise httpx2.DecodingError("its answer is compressed, which was not asked for", request=response.request)
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    in_lines = response.headers.get("content-type", "").startswith("text/event-stream")
    limit = max_line if in_lines else MAX_BODY
    response.stream = _LimitedStream(response.stream, response.request, limit, in_lines=in_lines)


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, request: httpx2.Request, limit: int, *, in_lines: bool) -> None:
        self._stream = stream
        self._request = request
        self._limit = limit
        self._in_lines = in_lines

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = quotes = 0
        async for chunk in self._stream:
            size += len(chunk)
            quotes += chunk.count(b'"') - chunk.count(b'\\"')
            if quotes > MAX_QUOTES:
                raise httpx2.DecodingError("its answer has too many names and strings", request=self._request)
            if self._in_lines and (newline := chunk.rfind(b"\n")) >= 0:
                size, quotes = len(chunk) - newline - 1, chunk.count(b'"', newline)
            if size > self._limit:
                raise httpx2.DecodingError("its answer is too large", request=self._request)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
