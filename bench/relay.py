"""A bare relay with Starlette and httpx, as the baseline: it forwards bytes, parses nothing and stores nothing.

`python -m bench.relay PORT UPSTREAM`
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from bench.worker_process import raise_limits


def build(upstream: str) -> Starlette:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    client = httpx.AsyncClient(timeout=None, limits=limits)

    async def relay(request: Request) -> Response:
        upstream_request = client.build_request(
            "POST",
            f"{upstream}/chat/completions",
            content=await request.body(),
            headers={"content-type": "application/json"},
        )
        answer = await client.send(upstream_request, stream=True)
        closing = BackgroundTask(answer.aclose)
        return StreamingResponse(answer.aiter_raw(), media_type="text/event-stream", background=closing)

    async def ready(request: Request) -> Response:
        return JSONResponse({})

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with client:
            yield

    routes = [Route("/v1/chat/completions", relay, methods=["POST"]), Route("/ready", ready)]
    return Starlette(routes=routes, lifespan=lifespan)


def main() -> None:
    raise_limits()
    port, upstream = int(sys.argv[1]), sys.argv[2]
    uvicorn.run(
        build(upstream),
        port=port,
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
        backlog=4096,
    )


if __name__ == "__main__":
    main()
