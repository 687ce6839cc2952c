"""Load generator: many clients on bare sockets that check the order of tokens and record how late each arrives."""

import asyncio
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, cast

import httptools
import uvloop

from bench import stamped_tokens
from bench.worker_process import BenchError, serve_commands


class StreamClient(asyncio.Protocol):
    """One request and its streamed answer."""

    def __init__(self, request: bytes, expected: int, full: Callable[[], None], over: Callable[[], None]) -> None:
        """`full` is called when all expected tokens have arrived, `over` when the answer has ended."""
        self._request = request
        self._expected = expected
        self._full = full
        self._over = over
        self._tail = b""
        self.sent_at = self.first_byte_at = self.first_token_at = self.all_at = self.done_at = math.nan
        self.tokens = 0
        self.bytes = 0
        self.in_order = True
        self.ended = False
        self.status = 0
        self.said = b""
        self.late: list[float] = []
        """Delay of each token that has a time, in milliseconds."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpResponseParser(self)
        self.sent_at = time.monotonic()
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        if not self.bytes:
            self.first_byte_at = time.monotonic()
            self.said = body[:300]
        self.bytes += len(body)
        body = self._tail + body
        found = stamped_tokens.TOKEN.findall(body)
        if found:
            self._count(found)
            end = body.rfind(b"%b.%b " % found[-1]) + stamped_tokens.SIZE
            self._tail = body[max(end, len(body) - stamped_tokens.SIZE + 1) :]
        else:
            self._tail = body[-stamped_tokens.SIZE + 1 :]
        if not self.ended and any(mark in body for mark in stamped_tokens.ENDINGS):
            self.ended = True

    def _count(self, found: Sequence[tuple[bytes, bytes]]) -> None:
        if not self.tokens:
            self.first_token_at = time.monotonic()
        now = stamped_tokens.clock()
        stamps = (text for _, text in found if stamped_tokens.is_stamp(text))
        self.late += [stamped_tokens.delay_ms(stamp, now) for stamp in stamps]
        last = self.tokens + len(found)
        self.in_order = self.in_order and [place for place, _ in found] == stamped_tokens.PLACES[self.tokens : last]
        self.tokens = last
        if last >= self._expected and self.all_at != self.all_at:
            self.all_at = time.monotonic()
            self._full()

    def on_message_complete(self) -> None:
        self.done_at = time.monotonic()
        self.transport.close()
        self._over()

    def connection_lost(self, error: Exception | None) -> None:
        if self.done_at != self.done_at:
            self.done_at = time.monotonic()
            self._over()

    @property
    def over(self) -> bool:
        return self.done_at == self.done_at

    @property
    def whole(self) -> bool:
        return self.in_order and self.tokens == self._expected and self.ended and self.status == 200

    @property
    def describe(self) -> str:
        """Describes what is missing."""
        count = f"{self.tokens} of {self._expected} tokens"
        return f"{count}, in order: {self.in_order}, ended: {self.ended}, status {self.status}"


class LoadGenerator:
    def __init__(self) -> None:
        self._clients: list[StreamClient] = []
        self._news = asyncio.Event()
        self._expected = self._full = self._over = 0

    async def open(self, port: int, requests: Sequence[str], tokens: int) -> None:
        """Send all requests; the answers are read in the background."""
        self.drop()
        self._clients, self._expected, self._full, self._over = [], tokens, 0, 0
        for request in requests:
            self._clients.append(
                await connect(port, StreamClient(request.encode(), tokens, self._one_full, self._one_over))
            )

    def _one_full(self) -> None:
        self._full += 1
        self._news.set()

    def _one_over(self) -> None:
        self._over += 1
        self._news.set()

    def drop(self) -> None:
        for client in self._clients:
            if not client.over:
                client.transport.abort()

    async def tokens(self) -> None:
        """Wait until every stream has received all its tokens."""
        while self._full < len(self._clients):
            if self._over:
                for client in self._clients:
                    if client.over and client.tokens < self._expected:
                        text = client.said[:200].decode("utf-8", "replace")
                        raise BenchError(f"a stream ended after {client.tokens} tokens ({client.status}): {text}")
            await self._more()

    async def begun(self) -> None:
        """Wait until every stream has begun."""
        while not all(client.bytes > 0 for client in self._clients):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.005)

    async def end(self) -> None:
        while self._over < len(self._clients):
            await self._more()

    async def _more(self) -> None:
        self._news.clear()
        await self._news.wait()

    async def leave(self, pause: float) -> dict[str, Any]:
        """Close the connections one after the other; the time of each by the monotonic clock."""
        left = {}
        for number, client in enumerate(self._clients):
            left[str(number)] = time.monotonic()
            client.transport.abort()
            await asyncio.sleep(pause)
        return left

    async def ask(self, port: int, requests: Sequence[str], pause: float) -> list[dict[str, float]]:
        """Send requests one after the other; of each the time it was sent, and milliseconds to its first byte, first
        token and end. Open streams continue."""
        times = []
        for request in requests:
            done = asyncio.Event()
            client = await connect(port, StreamClient(request.encode(), -1, done.clear, done.set))
            await done.wait()
            if not 200 <= client.status < 300:
                raise BenchError(f"{request.splitlines()[0]}: {client.status} {client.said.decode('utf-8', 'replace')}")
            first, whole = (client.first_byte_at - client.sent_at) * 1e3, (client.done_at - client.sent_at) * 1e3
            token = (client.first_token_at - client.sent_at) * 1e3
            times.append(
                {"sent": client.sent_at, "first": first, "token": token, "whole": whole, "bytes": client.bytes}
            )
            await asyncio.sleep(pause)
        return times

    async def send_all(self, port: int, requests: Sequence[str], tokens: int, clients: int) -> dict[str, float]:
        """Send all requests, each client the next one as soon as its answer has ended; how many answers came whole, and
        within how many seconds."""
        began, whole, rest = time.monotonic(), 0, iter(requests)

        async def client() -> None:
            nonlocal whole
            for request in rest:
                done = asyncio.Event()
                answer = await connect(port, StreamClient(request.encode(), tokens, done.clear, done.set))
                await done.wait()
                whole += answer.whole

        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(client())
        return {"whole": whole, "seconds": time.monotonic() - began}

    async def times(self) -> list[dict[str, float]]:
        """For streams that do not end: milliseconds to the first byte and to the last token."""
        return [
            {"first": (client.first_byte_at - client.sent_at) * 1e3, "whole": (client.all_at - client.sent_at) * 1e3}
            for client in self._clients
        ]

    async def result(self) -> dict[str, Any]:
        clients = self._clients
        for why, count in Counter(client.describe for client in clients if not client.whole).items():
            print(f"not whole: {count} streams: {why}", file=sys.stderr, flush=True)
        middle, end, first = [], [], []
        for client in clients:
            count = len(client.late)
            middle += client.late[count // 4 : max(count * 3 // 4, count // 4 + 1)]
            end += client.late[-1:]
            first.append((client.first_token_at - client.sent_at) * 1e3)
        begun = min(client.first_token_at for client in clients)
        wall = max(client.all_at for client in clients) - begun
        return {
            "whole": sum(client.whole for client in clients),
            "mid_ms": spread(middle),
            "end_ms": spread(end),
            "first_ms": spread(first),
            "wall": wall,
        }


async def connect(port: int, client: StreamClient) -> StreamClient:
    try:
        await asyncio.get_running_loop().create_connection(lambda: client, "127.0.0.1", port)
    except OSError as error:
        raise BenchError(f"connection failed: {error.strerror}") from None
    return client


def spread(values: Sequence[float]) -> list[float]:
    """The median and the 99th percentile."""
    ordered = sorted(values)
    if not ordered:
        return [math.nan, math.nan]
    return [ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, math.floor(len(ordered) * 0.99))]]


async def main() -> None:
    load = LoadGenerator()

    async def drop() -> None:
        load.drop()

    await serve_commands(
        {
            "open": load.open,
            "tokens": load.tokens,
            "begun": load.begun,
            "end": load.end,
            "leave": load.leave,
            "ask": load.ask,
            "send_all": load.send_all,
            "times": load.times,
            "result": load.result,
            "drop": drop,
        }
    )


if __name__ == "__main__":
    uvloop.run(main())
