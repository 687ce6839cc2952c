"""Compares the CPU per token of our model client with httpx and the standard json module.

The upstream is a separate process that sends OpenAI's format. Each measurement runs in a fresh process.
"""

import argparse
import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import httpx
import uvloop

from bench.engine_streams import cpu_seconds
from holdfast.core.events import TextDelta
from holdfast.models.http_client import HttpClient
from holdfast.models.openai_client import OpenAIModel
from holdfast.models.provider_config import ProviderConfig
from holdfast.ports.model import Delta, ModelInfo, ModelRequest, UserMessage
from holdfast.system import SystemClock

REQUEST = ModelRequest(None, (UserMessage(("Hello",)),))
CLIENTS = ("holdfast", "httpx lines + json")


@dataclass(frozen=True, slots=True)
class ClientScenario:
    name: str
    streams: int
    tokens: int
    rate: float | None
    target: float
    """Highest acceptable ratio of ours to theirs."""


@dataclass(frozen=True, slots=True)
class ClientResult:
    scenario: str
    client: str
    cpu_us_per_token: float


SCENARIOS = (
    ClientScenario("1 stream, full speed", 1, 20_000, None, 1.0),
    ClientScenario("200 streams x 20/s", 200, 100, 20.0, 0.5),
)


def frame(n: int) -> bytes:
    choice = {"index": 0, "delta": {"content": f"t{n} "}, "logprobs": None, "finish_reason": None}
    chunk = {
        "id": "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG",
        "object": "chat.completion.chunk",
        "created": 1741570283,
        "model": "gpt-4o-2024-08-06",
        "service_tier": "default",
        "system_fingerprint": "fp_fc9f1d7035",
        "choices": [choice],
    }
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"


def middle(results: Sequence[ClientResult]) -> float:
    return median(r.cpu_us_per_token for r in results)


# ---- the upstream ----


async def upstream(tokens: int, rate: float | None, listener: socket.socket) -> None:
    frames = [_chunk(frame(n)) for n in range(tokens)]
    end = (
        _chunk(b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n') + b"0\r\n\r\n"
    )
    arrived = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal arrived
        arrived += 1
        turn = arrived
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
        await reader.readexactly(length)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        if rate is None:
            writer.write(b"".join(frames))
        else:
            loop = asyncio.get_running_loop()
            start = loop.time() + 0.5 + (turn % 100) / 100 / rate  # streams are not in step
            for n, data in enumerate(frames):
                await asyncio.sleep(start + n / rate - loop.time())
                writer.write(data)
        writer.write(end)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, sock=listener)
    async with server:
        await server.serve_forever()


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


# ---- the clients ----


async def ours(url: str, streams: int) -> int:
    http = HttpClient()
    info = ModelInfo("bench/model", "model", "bench")
    model = OpenAIModel(info, ProviderConfig(name="bench", base_url=url), "model", http, SystemClock())

    async def one() -> int:
        size = 0

        def take(deltas: Sequence[Delta]) -> bool:
            nonlocal size
            for delta in deltas:
                if type(delta) is TextDelta:
                    size += len(delta.text)
            return True

        async with model.stream(REQUEST) as answer:
            async for deltas in answer:
                take(deltas)
                await answer.follow(take)
        return size

    sizes = await asyncio.gather(*(one() for _ in range(streams)))
    await http.aclose()
    return sum(sizes)


async def theirs(url: str, streams: int) -> int:
    body: dict[str, Any] = {"model": "model", "messages": [{"role": "user", "content": "Hello"}], "stream": True}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=None, limits=limits) as client:

        async def one() -> int:
            size = 0
            async with client.stream("POST", f"{url}/chat/completions", json=body) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: ") and line != "data: [DONE]":
                        text = json.loads(line[6:])["choices"][0]["delta"].get("content")
                        if text:
                            size += len(text)
            return size

        return sum(await asyncio.gather(*(one() for _ in range(streams))))


def measure(scenario: ClientScenario, client: str) -> ClientResult:
    """Measure in this process, with the upstream in another."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        port = listener.getsockname()[1]
        arguments = [str(scenario.tokens), str(scenario.rate or 0), str(listener.fileno())]
        command = [sys.executable, "-m", "bench.model_client", "upstream", *arguments]
        with subprocess.Popen(command, pass_fds=[listener.fileno()]) as server:
            try:
                ask = ours if client == "holdfast" else theirs
                url = f"http://127.0.0.1:{port}/v1"
                uvloop.run(ask(url, 1 if scenario.rate is None else 2))  # warm up
                began = cpu_seconds()
                size = uvloop.run(ask(url, scenario.streams))
                used = cpu_seconds() - began
            finally:
                server.kill()
    expected = scenario.streams * sum(len(f"t{n} ") for n in range(scenario.tokens))
    assert size == expected, f"{client}: {size} characters arrived, {expected} were sent"
    return ClientResult(scenario.name, client, used / (scenario.streams * scenario.tokens) * 1e6)


def in_process(scenario: ClientScenario, client: str) -> ClientResult:
    command = [sys.executable, "-m", "bench.model_client", "measure", json.dumps(asdict(scenario)), client]
    return ClientResult(**json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.model_client")
    parser.add_argument("what", nargs="?", default="all", choices=["all", "measure", "upstream"])
    parser.add_argument("arguments", nargs="*")
    chosen = parser.parse_args()
    if chosen.what == "upstream":
        tokens, rate, descriptor = chosen.arguments
        uvloop.run(upstream(int(tokens), float(rate) or None, socket.socket(fileno=int(descriptor))))
    elif chosen.what == "measure":
        text, client = chosen.arguments
        print(json.dumps(asdict(measure(ClientScenario(**json.loads(text)), client))))
    else:
        for scenario in SCENARIOS:
            us, them = (in_process(scenario, client).cpu_us_per_token for client in CLIENTS)
            print(f"{scenario.name}: {us:.2f} against {them:.2f} µs per token, {us / them:.2f} (≤ {scenario.target})")


if __name__ == "__main__":
    main()
