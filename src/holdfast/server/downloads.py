"""Downloads: streams the output of a generator as a file that browsers save."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from urllib.parse import quote

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.core.errors import HoldfastError
from holdfast.server.access_rules import loggable_path
from holdfast.server.disconnects import wait_for_disconnect
from holdfast.server.event_stream import abort_connection

log = logging.getLogger(__name__)


class Download(Response):
    """Closes the generator in any case, and as soon as the client is gone: also if the server disconnects one that does
    not read (`uvicorn_server.HttpProtocol`). An error before the first
    chunk is an error response; a later one breaks the response off, so that no client mistakes it for complete."""

    def __init__(
        self,
        chunks: AsyncIterator[bytes],
        file_name: str,
        headers: Mapping[str, str],
        *,
        status: int = 200,
        inline: bool = False,
    ) -> None:
        """`chunks` raises EOFError if it ends too early. `inline`: browsers may display it."""
        disposition = f"{'inline' if inline else 'attachment'}; filename*=UTF-8''{quote(file_name, safe='')}"
        self.status_code = status
        self.background = None
        self.init_headers({**headers, "Content-Disposition": disposition})
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._chunks) as chunks:  # type: ignore[type-var]
            first = await anext(chunks, b"")
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait_for_disconnect, receive, tasks.cancel_scope)
                try:
                    await send({"type": "http.response.body", "body": first, "more_body": True})
                    async for chunk in chunks:
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
                    await send({"type": "http.response.body", "body": b""})
                except (EOFError, HoldfastError) as error:
                    log.warning("the download of %s broke off: %s", loggable_path(scope["path"]), error)
                    abort_connection(scope)
                tasks.cancel_scope.cancel()
