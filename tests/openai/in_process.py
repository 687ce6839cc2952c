"""The whole app in the process of the test, for what a test cannot arrange in another one."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.agents.scripted_agent import Action, Say
from holdfast.server.app import build
from holdfast.server.authenticator import Authenticator
from holdfast.server.context import ApiContext, ServerLimits
from holdfast.storage.file_store import FileStore
from holdfast.storage.key_file import KeyFile
from holdfast.tools.fetch.file_fetcher import FileFetcher
from tests.harness import Running, running


@asynccontextmanager
async def fetching(
    path: Path, *script: Action, **limits: Any
) -> AsyncIterator[tuple[Running, ASGIApp, httpx.AsyncClient]]:
    """The app with a scripted agent; it may fetch from this machine."""
    async with running(list(script) or [Say("x")], files=FileStore(path / "files")) as it:
        fetch = FileFetcher(allowed=lambda address: True).fetch
        gate = Authenticator(KeyFile(path), it.world.clock)
        inner = build(
            ApiContext(it.engine, gate, [("chat", True, True)], fetch_file=fetch, limits=ServerLimits(**limits))
        )

        async def own_user() -> int:
            return os.geteuid()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await inner({**scope, "extensions": {"holdfast.peer_user": own_user}}, receive, send)

        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            yield it, app, client
