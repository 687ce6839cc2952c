"""A scripted model server in OpenAI's chat format that uses little CPU: thousands of streams, one timer.

Streams wait for a start command and again before they end, so that the costs of opening, streaming and ending can be
told apart. It records when each connection was closed by the other side.
"""

import asyncio
import json
import re
import socket
import time
from dataclasses import dataclass
from typing import Any, Final, cast

import httptools
import uvloop

from bench import stamped_tokens
from bench.worker_process import serve_commands

HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
UNCHUNKED_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
NUMBERED: Final = re.compile(rb"stream (\d+)\b")
_LEAST_PAUSE: Final = 0.0005


@dataclass(frozen=True, slots=True)
class Script:
    tokens: int = 1
    rate: float | None = None
    """Tokens per second and stream; None: as fast as they are read."""
    together: bool = False
    """All streams send a token at the same moment, as a model server does that computes a batch; otherwise each at a
    moment of its own."""
    hold: bool = True
    """Wait for `go` to start, and for `finish` to end. Otherwise every stream starts when it arrives."""
    chunked: bool = True
    """Each token is an HTTP chunk of its own; otherwise the answer ends with its connection."""
    per_write: int = 64
    """Tokens in one write at full speed; 1 as a server that writes each token by itself."""
    stamp_every: int = 1
    """Of this many tokens one has the time, and the last one; the others have a word."""
    mixed: bool = False
    """Alternate between reasoning and text, so that neighbors cannot be merged."""


class Frames:
    """The bytes shared by all streams."""

    def __init__(self, script: Script) -> None:
        words, thoughts = stamped_tokens.around(), stamped_tokens.around("reasoning_content")
        self.head, self.end = UNCHUNKED_HEAD, stamped_tokens.END
        if script.chunked:
            words, thoughts, self.head = chunked(*words), chunked(*thoughts), HEAD
            self.end = b"%x\r\n%b\r\n0\r\n\r\n" % (len(stamped_tokens.END), stamped_tokens.END)
        self._kinds = [words, thoughts if script.mixed else words]
        self.total = script.tokens
        self._stamp_every = script.stamp_every

    def token(self, n: int, stamp: bytes) -> bytes:
        before, after = self._kinds[n % 2]
        if n % self._stamp_every and n + 1 < self.total:
            stamp = stamped_tokens.WORDS[n % len(stamped_tokens.WORDS)]
        return b"%b%b.%b %b" % (before, stamped_tokens.PLACES[n], stamp, after)

    def some(self, n: int, count: int, stamp: bytes) -> bytes:
        return b"".join([self.token(k, stamp) for k in range(n, min(n + count, self.total))])


def chunked(before: bytes, after: bytes) -> tuple[bytes, bytes]:
    size = len(before) + stamped_tokens.SIZE + len(after)
    return b"%x\r\n%b" % (size, before), after + b"\r\n"


class Upstream:
    def __init__(self) -> None:
        self.script = Script()
        self.frames = Frames(self.script)
        self.streams: list[Stream] = []
        self._going = False
        self.closed: dict[int, float] = {}
        self.late: list[float] = []
        self._expected = 0
        self._all_there = asyncio.Event()
        self._begun = 0.0
        self._next = 0
        self._timer: asyncio.TimerHandle | None = None

    # ---- commands ----

    async def begin(self, **script: Any) -> None:
        self.script = Script(**script)
        self.frames = Frames(self.script)
        self.streams, self.closed, self.late = [], {}, []
        self._going = False
        if self._timer is not None:
            self._timer.cancel()
        self._expected = 0
        self._all_there.clear()

    async def gather(self, streams: int) -> None:
        """Wait until this many streams are connected."""
        self._expected = streams
        if len(self.streams) < streams:
            await self._all_there.wait()

    async def go(self) -> None:
        self._going = True
        if self.script.rate is None:
            for stream in self.streams:
                stream.flood()
        else:
            self._begun, self._next = asyncio.get_running_loop().time() + 0.05, 0
            self._tick()

    async def finish(self) -> None:
        for stream in self.streams:
            stream.finish()

    async def closings(self, streams: int) -> dict[str, Any]:
        """Wait until this many streams were closed by their clients; the time of each by the monotonic clock."""
        while len(self.closed) < streams:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.002)
        return {str(number): at for number, at in self.closed.items()}

    async def lateness(self) -> float:
        """How late this process itself was at p99, in milliseconds. If it is large, the machine is too busy to measure
        delays."""
        late = sorted(self.late)
        return late[int(len(late) * 0.99)] * 1000 if late else 0.0

    # ---- streams ----

    def arrive(self, stream: "Stream") -> None:
        if self._going:
            # Not part of the scenario: an idle server may send a request of its own.
            stream.finish()
            return
        self.streams.append(stream)
        if not self.script.hold:
            stream.start()
        elif len(self.streams) == self._expected:
            self._all_there.set()

    def _tick(self) -> None:
        """Send the tokens that are due. Every token of every stream has a scheduled time, in a fixed order."""
        loop = asyncio.get_running_loop()
        now, count = loop.time(), len(self.streams)
        assert self.script.rate is not None
        step, least = 1 / (self.script.rate * count), count if self.script.together else 1
        due = (int((now - self._begun) / step) // least + 1) * least
        due = min(due, count * self.script.tokens)
        stamp = b"%07d" % stamped_tokens.clock()
        for at in range(self._next, due):
            self.streams[at % count].send_token(at // count, stamp)
        if due > self._next:
            self.late.append(now - self._begun - self._next * step)
        self._next = max(self._next, due)
        if self._next < count * self.script.tokens:
            self._timer = loop.call_at(max(self._begun + self._next * step, now + _LEAST_PAUSE), self._tick)


class Stream(asyncio.Protocol):
    """One connection; its requests are served one after the other."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._n = 0
        self._paused = False
        self._open = False
        self._number = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpRequestParser(self)
        self._body = bytearray()
        self._path = b""

    def connection_lost(self, error: Exception | None) -> None:
        if self._open:
            self._upstream.closed[self._number] = time.monotonic()
        self._open = False

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    # ---- httptools ----

    def on_url(self, url: bytes) -> None:
        self._path = url
        self._body.clear()

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        if self._path.endswith(b"/models"):
            return self._answer({"object": "list", "data": [{"id": "bench", "object": "model"}]})
        if b"chat/completions" not in self._path:
            return self._answer({})
        if not json.loads(self._body).get("stream"):
            message = {"role": "assistant", "content": "Bench"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return self._answer({"object": "chat.completion", "choices": [choice]})
        self._n, self._open = 0, True
        found = NUMBERED.search(self._body)
        self._number = int(found[1]) if found else -1
        self._transport.write(self._upstream.frames.head)
        self._upstream.arrive(self)
        return None

    def _answer(self, value: object) -> None:
        body = json.dumps(value).encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)

    # ---- sending ----

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._open and self._upstream.script.rate is None:
            self.flood()

    def send_token(self, n: int, stamp: bytes) -> None:
        if self._open:
            self._transport.write(self._upstream.frames.token(n, stamp))

    def start(self) -> None:
        """Send everything without waiting for other streams."""
        if self._upstream.script.rate is None:
            self.flood()
        else:
            self._send_next(asyncio.get_running_loop().time())

    def _send_next(self, due: float) -> None:
        script = self._upstream.script
        assert script.rate is not None
        self.send_token(self._n, b"%07d" % stamped_tokens.clock())
        self._n += 1
        if self._n >= script.tokens:
            self.finish()
        elif self._open:
            due += 1 / script.rate
            asyncio.get_running_loop().call_at(due, self._send_next, due)

    def flood(self) -> None:
        """Write a batch, then let other streams write."""
        frames = self._upstream.frames
        if not self._open or self._paused or self._n >= frames.total:
            return
        self._transport.write(frames.some(self._n, self._upstream.script.per_write, b"%07d" % stamped_tokens.clock()))
        self._n += self._upstream.script.per_write
        if self._n < frames.total:
            if not self._paused:
                asyncio.get_running_loop().call_soon(self.flood)
        elif not self._upstream.script.hold:
            self.finish()

    def finish(self) -> None:
        if self._open:
            self._open = False
            self._transport.write(self._upstream.frames.end)
            if not self._upstream.script.chunked:
                self._transport.close()


async def main() -> None:
    upstream = Upstream()
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        listener.setblocking(False)
        server = await asyncio.get_running_loop().create_server(lambda: Stream(upstream), sock=listener, backlog=4096)
        port = listener.getsockname()[1]

        async def address() -> str:
            return f"http://127.0.0.1:{port}/v1"

        async with server:
            await serve_commands(
                {
                    "address": address,
                    "begin": upstream.begin,
                    "gather": upstream.gather,
                    "go": upstream.go,
                    "finish": upstream.finish,
                    "closings": upstream.closings,
                    "lateness": upstream.lateness,
                }
            )


if __name__ == "__main__":
    uvloop.run(main())
