"""Downloads: streams the output of a generator as a file that browsers save."""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Final
from urllib.parse import quote

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.server.disconnects import wait_for_disconnect
from holdfast.server.event_stream import abort_connection

_PIECE: Final = 256 * 1024


class Download(Response):
    """Closes the generator in any case, and as soon as the client is gone or does not read. An error before the first
    chunk is an error response; a later one breaks the response off, so that no client mistakes it for complete."""

    def __init__(
        self, chunks: AsyncIterator[bytes], file_name: str, headers: Mapping[str, str], write_deadline: float
    ) -> None:
        """`write_deadline`: seconds in which a client must take each piece."""
        disposition = f"attachment; filename*=UTF-8''{quote(file_name, safe='')}"
        self.status_code = 200
        self.background = None
        self.init_headers({**headers, "Content-Disposition": disposition})
        self._chunks = chunks
        self._write_deadline = write_deadline

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._chunks) as chunks:  # type: ignore[type-var]
            first = await anext(chunks, b"")
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait_for_disconnect, receive, tasks.cancel_scope)
                try:
                    await self._send(send, first)
                    async for chunk in chunks:
                        await self._send(send, chunk)
                    await self._send(send, b"", more=False)
                except TimeoutError:
                    abort_connection(scope)
                tasks.cancel_scope.cancel()

    async def _send(self, send: Send, chunk: bytes, *, more: bool = True) -> None:
        """Raises TimeoutError if the client does not read."""
        for at in range(0, len(chunk) or 1, _PIECE):
            with anyio.fail_after(self._write_deadline):
                await send({"type": "http.response.body", "body": chunk[at : at + _PIECE], "more_body": more})
