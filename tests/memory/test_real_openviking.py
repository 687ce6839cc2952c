"""Against a real OpenViking server: `make test-openviking`, which installs it apart (large, and under the AGPL)."""

import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web

from holdfast.core.ids import LOCAL, MessageId, RunId, SessionId
from holdfast.core.parts import TextPart
from holdfast.ports.memory import MemoryBatch, RememberedTurn
from tests.memory.fake_openviking import connected

pytestmark = [pytest.mark.anyio, pytest.mark.openviking, pytest.mark.timeout(600)]

SERVER = os.environ.get("HOLDFAST_OPENVIKING", "")
DIMENSION = 64
STARTS = 400.0


async def embed(request: web.Request) -> web.Response:
    asked = (await request.json())["input"]
    texts = asked if isinstance(asked, list) else [asked]
    data = [
        {"object": "embedding", "index": n, "embedding": [float((hash(str(t)) >> k) & 1) for k in range(DIMENSION)]}
        for n, t in enumerate(texts)
    ]
    return web.json_response(
        {"object": "list", "model": "m", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    )


async def chat(request: web.Request) -> web.Response:
    message = {"role": "assistant", "content": "{}"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return web.json_response(
        {"id": "1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    )


@asynccontextmanager
async def models() -> AsyncIterator[str]:
    """In place of paid ones."""
    app = web.Application()
    app.router.add_post("/v1/embeddings", embed)
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}/v1"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def openviking(directory: Path) -> AsyncIterator[str]:
    async with models() as upstream:
        model = {"provider": "openai", "api_base": upstream, "api_key": "x", "model": "m"}
        config: dict[str, Any] = {
            "storage": {"workspace": str(directory / "workspace")},
            "embedding": {"dense": {**model, "dimension": DIMENSION}},
            "vlm": model,
        }
        file = anyio.Path(directory / "ov.conf")
        await file.write_text(json.dumps(config))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [SERVER, "--host", "127.0.0.1", "--port", str(port), "--config", str(file)]
        environment = {**os.environ, "HOME": str(directory)}
        async with await anyio.open_process(command, stdout=None, stderr=None, env=environment) as process:
            try:
                yield f"http://127.0.0.1:{port}"
            finally:
                process.terminate()
                with anyio.move_on_after(10.0, shield=True) as waited:
                    await process.wait()
                if waited.cancelled_caught:
                    process.kill()


def batch(sid: SessionId, first: int, last: int) -> MemoryBatch:
    turns = [
        RememberedTurn(
            n, RunId(f"run_{n}"), MessageId(f"msg_{n}"), 1.0, (TextPart(f"I live in town {n}."),), (TextPart("I see."),)
        )
        for n in range(first, last + 1)
    ]
    return MemoryBatch(f"{sid}/{first}-{last}", LOCAL, sid, None, turns)


@pytest.mark.skipif(
    not SERVER, reason="HOLDFAST_OPENVIKING does not say where its server is; make test-openviking does"
)
async def test_a_real_server_takes_what_we_tell_it(tmp_path: Path) -> None:
    """M2, M5: a real server is well, takes commits of one session one after the other, a repeated one too, answers
    searches, and forgets."""
    sid = SessionId("ses_holdfast_1")
    async with openviking(tmp_path) as url, connected(url) as provider:
        with anyio.fail_after(STARTS):
            while await provider.health() is not None:  # noqa: ASYNC110 - another program: nobody sets an event
                await anyio.sleep(0.5)
        await provider.commit(batch(sid, 1, 2))
        await provider.release(sid)
        await provider.commit(batch(sid, 3, 60))
        await provider.commit(batch(sid, 3, 60))
        found = await provider.recall(LOCAL, sid, "Where do I live?")
        assert all(set(item) == {"text", "source"} for item in found)
        await provider.forget(LOCAL, sid)
        await provider.forget(LOCAL, sid)
