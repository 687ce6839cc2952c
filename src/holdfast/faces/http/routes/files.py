"""Files that people attach. What a client says about a file is a hint: its type is seen in its content, its name is a
label, and neither becomes part of a path."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote

from anyio import to_thread
from fastapi import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from holdfast.core.ids import FileId
from holdfast.faces.http import answers
from holdfast.faces.http import descriptions as d
from holdfast.faces.http.api import Api, Rid
from holdfast.faces.http.routing import Router
from holdfast.faces.http.upload import receive_file
from holdfast.ports import StoredFile

_CHUNK = 256 * 1024
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            }
        },
    }
}


def routes(api: Api) -> Router:
    router = Router("files", "/api/files")

    @router.post("", status_code=201, response_model=d.FileOut, openapi_extra=_BODY)
    async def upload(request: Request) -> Response:
        """One file, as the field `file` of a form. Images, PDF and text; then name its id in a message."""
        file = await receive_file(
            request.headers.get("content-type", ""), request.stream(), api.library, api.limits.max_file
        )
        return JSONResponse(answers.file(file), 201)

    @router.get("/{fid}", response_model=d.FileOut)
    async def read_file(fid: Rid) -> Response:
        return JSONResponse(answers.file(await api.library.file(FileId(fid))))

    @router.get("/{fid}/content", response_class=Response)
    async def download(fid: Rid) -> Response:
        """The content, as something to save: it is never shown as a page of ours."""
        file = await api.library.file(FileId(fid))
        return _Content(api, file)

    return router


class _Content(Response):
    """Read from a worker thread, piece by piece."""

    def __init__(self, api: Api, file: StoredFile) -> None:
        self._api = api
        self._file = file
        self.status_code = 200
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as held:
            content = held.enter_context(await self._api.library.open(self._file))
            await send({"type": "http.response.start", "status": 200, "headers": _headers(self._file)})
            async for chunk in _chunks(content):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _chunks(content: Any) -> AsyncIterator[bytes]:
    while chunk := await to_thread.run_sync(content.read, _CHUNK):
        yield chunk


def _headers(file: StoredFile) -> list[tuple[bytes, bytes]]:
    name = quote(file.name, safe="")
    return [
        (b"content-type", file.media_type.encode("ascii", "replace")),
        (b"content-length", str(file.size).encode()),
        (b"content-disposition", f"attachment; filename*=UTF-8''{name}".encode()),
        (b"content-security-policy", b"default-src 'none'; sandbox"),
        (b"cache-control", b"private, max-age=31536000, immutable"),
    ]
