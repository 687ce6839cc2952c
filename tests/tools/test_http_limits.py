"""Limits on the answers of servers that libraries read, over a real connection."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Final

import anyio
import anyio.lowlevel
import httpx2
import pytest

from holdfast.http_limits import limited_hooks

pytestmark = pytest.mark.anyio
MB: Final = 1024 * 1024
LINE: Final = b"data: " + b"x" * 60_000


@contextmanager
def answering(kind: str, pieces: list[bytes]) -> Iterator[str]:
    """A server that answers with these pieces, each written at once; its address."""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            with suppress(ConnectionError):
                for piece in pieces:
                    self.wfile.write(piece)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as standing:
        Thread(target=standing.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{standing.server_port}/"
        standing.shutdown()


async def read(kind: str, pieces: list[bytes]) -> int:
    with answering(kind, pieces) as url:
        async with httpx2.AsyncClient(event_hooks=limited_hooks(MB)) as client:
            return len((await client.get(url)).content)


@pytest.mark.parametrize("value", [b"[],", b"1,", b"{},", b'"",'])
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_an_answer_with_too_many_values_is_refused(kind: str, value: bytes) -> None:
    """Parsing them would stop everything else for seconds, whatever they are."""
    with pytest.raises(httpx2.DecodingError, match="too large"):
        await read(kind, [b"data: [", *[value * 20_000] * 60])


async def test_a_large_string_is_no_more_than_one_value() -> None:
    """An image is allowed, with escaped quotation marks and in any number of pieces."""
    pieces = [b'{"image": "', *[b'[],\\"\\\\' * 10_000] * 30, b'"}', b" " * 2 * MB]
    assert await read("application/json", pieces) == sum(map(len, pieces))


async def test_an_event_has_a_limit_however_many_lines_it_has() -> None:
    """Libraries collect the lines of an event until an empty line."""
    with pytest.raises(httpx2.DecodingError, match="too large"):
        await read("text/event-stream", [LINE + b"\n"] * 20)
    with pytest.raises(httpx2.DecodingError, match="too large"):
        await read("text/event-stream", [LINE + b"\n\r\n"] * 20)  # not the end of an event for every library


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"])
async def test_events_together_have_no_limit(end: bytes) -> None:
    """The limits are those of one event, also when its end arrives in two pieces."""
    pieces = [b'data: "' + b"x" * 60_000 + b'"' + b"," * 60_000 + end[:1], end[1:]] * 40
    assert await read("text/event-stream", pieces) == sum(map(len, pieces))


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"])
async def test_many_small_events_let_everything_else_run(end: bytes) -> None:
    """L6: what has arrived is given to the library in pieces, which end between events; a large event is one piece."""
    large = b"data: " + b"x" * 50_000 + end
    events = (b"data: {}" + end) * 5_000 + large
    turns, pieces = 0, list[bytes]()

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    response = httpx2.Response(200, headers={"Content-Type": "text/event-stream"}, stream=Arrived(events))
    response.request = httpx2.Request("GET", "http://localhost/")
    (limit,) = limited_hooks(MB)["response"]
    await limit(response)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count_turns)
        async for piece in response.aiter_raw():
            pieces.append(piece)
        tasks.cancel_scope.cancel()
    assert b"".join(pieces) == events
    assert all(piece.endswith(end) for piece in pieces)
    assert max(map(len, pieces[:-1])) < 5_000
    assert pieces[-1].endswith(large)
    assert turns >= len(pieces) - 1


class Arrived(httpx2.AsyncByteStream):
    """A body that is all there."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data
