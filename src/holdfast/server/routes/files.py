"""Files that people attach. The type is detected from the content, the name is a label, and neither becomes part of a
path. Which are refused: `server.uploads`; when they are deleted: `engine.retention`."""

from collections.abc import AsyncIterator
from typing import Final

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from holdfast.core.ids import FileId
from holdfast.engine.attachments import Attachments
from holdfast.ports.store import StoredFile
from holdfast.server.context import ApiContext
from holdfast.server.downloads import Download
from holdfast.server.parameters import IdPath
from holdfast.server.routing import ResponseInfo, Router
from holdfast.server.schemas.files import FileResponse
from holdfast.server.uploads import receive_file, served_media_type

router = Router("files", "/api/files")

_CHUNK = 256 * 1024
_FILE: Final = {"type": "string", "format": "binary"}
_FORM: Final = {"type": "object", "required": ["file"], "properties": {"file": _FILE}}


@router.post("", status=201, raw_body={"multipart/form-data": _FORM})
async def upload_file(api: ApiContext, request: Request) -> FileResponse:
    """Upload one file as the form field `file`: an image, a PDF or text. Messages refer to it by its id."""
    content_type, length = request.headers.get("content-type", ""), request.headers.get("content-length", "")
    if length.isdigit() and len(length) < 18:
        api.engine.attachments.require_space(int(length))  # before it is sent
    file = await receive_file(content_type, request.stream(), api.engine.attachments, api.limits.max_file)
    return FileResponse.model_validate(file)


@router.get("/{fid}")
async def read_file(api: ApiContext, fid: IdPath) -> FileResponse:
    return FileResponse.model_validate(await api.engine.attachments.file(FileId(fid)))


@router.get("/{fid}/content", responses={200: ResponseInfo("The content.", media_types=("application/octet-stream",))})
async def download_file(api: ApiContext, fid: IdPath) -> Response:
    """Download the content. Browsers save it and never display it as a page of this server."""
    file = await api.engine.attachments.file(FileId(fid))
    headers = {
        "Content-Type": served_media_type(file.media_type),
        "Content-Length": str(file.size),
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "private, max-age=31536000, immutable",
    }
    content = _content(api.engine.attachments, file)
    return Download(content, file.name, headers)


async def _content(attachments: Attachments, file: StoredFile) -> AsyncIterator[bytes]:
    with await attachments.open(file) as content:
        while chunk := await to_thread.run_sync(content.read, _CHUNK):
            yield chunk
