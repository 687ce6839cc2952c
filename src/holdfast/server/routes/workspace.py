"""The files that a session's agent works on: list, read and download. Changes: `workspace_changes`.

What an agent wrote is foreign content on our origin, so no response of it is ever a document that browsers run
there: only inert types (`core.file_types.INLINE`) are displayed, everything else is downloaded. HTML and SVG are
displayed as artifacts, with an origin of their own and without network.
"""

from contextlib import aclosing
from functools import partial
from typing import Annotated, Final

from anyio import to_thread
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from holdfast.core.errors import PathRefusedError, WorkspaceUnavailableError
from holdfast.core.file_names import MAX_PATH, display_name, parse_path
from holdfast.core.file_types import ARTIFACTS, BINARY, INLINE
from holdfast.core.ids import SessionId
from holdfast.core.image_types import IMAGE_TYPES
from holdfast.core.session import Session
from holdfast.core.size_text import size_text
from holdfast.ports.workspace import WorkspaceFile, Workspaces
from holdfast.server.byte_ranges import UnsatisfiableRangeError, has_etag, read_range
from holdfast.server.context import ApiContext
from holdfast.server.disconnects import run_while_connected
from holdfast.server.downloads import Download
from holdfast.server.parameters import Limit, SessionIdPath, read_cursor, write_cursor
from holdfast.server.routing import Header, ResponseInfo, Router
from holdfast.server.schemas import workspace as s
from holdfast.server.schemas.files import FileResponse
from holdfast.server.uploads import MAX_NAME

router = Router("workspace", "/api/sessions/{sid}/workspace")

PathParameter = Annotated[
    str, Field(max_length=MAX_PATH, description="A `path` of an entry; empty for the workspace itself.")
]
LongCursor = Annotated[str | None, Field(max_length=2000, description="The `next` value of the previous page.")]
FilePath = s.FilePath
Range = Annotated[str | None, Header("Range"), Field(max_length=200, description="One range of bytes.")]
IfRange = Annotated[str | None, Header("If-Range"), Field(max_length=200)]
IfNoneMatch = Annotated[str | None, Header("If-None-Match"), Field(max_length=1000)]

PREVIEW: Final = 512 * 1024  # Bytes
MAX_PREVIEW: Final = 2 * 1024 * 1024
MAX_ARTIFACT: Final = 16 * 1024 * 1024
MAX_ATTACHED_TEXT: Final = 256 * 1024
MAX_ATTACHED: Final = 10 * 1024 * 1024
_ATTACHED: Final = IMAGE_TYPES | {"application/pdf"}
_INERT: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_PDF: Final = "default-src 'none'; style-src 'unsafe-inline'; object-src 'self'; frame-ancestors 'self'"
"""Without `sandbox`, in which no browser opens its PDF viewer. The viewer keeps scripts of the file to itself."""
_ARTIFACT: Final = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob: data:; style-src 'unsafe-inline'; "
    "img-src data: blob:; media-src data: blob:; font-src data:; worker-src 'none'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'self'; "
)
_BINARY_BODY: Final = ResponseInfo("The content.", media_types=(BINARY,))


async def _find(api: ApiContext, sid: SessionId) -> tuple[Workspaces, Session]:
    session = (await api.engine.sessions.get(sid)).session
    if api.workspaces is None:
        raise WorkspaceUnavailableError("this server does not show files")
    return api.workspaces, session


@router.get("")
async def read_workspace(api: ApiContext, sid: SessionIdPath) -> s.WorkspaceLocationResponse:
    """Which directory the session's agent works in, and whether its files can be shown."""
    workspaces, session = await _find(api, sid)
    return s.WorkspaceLocationResponse.model_validate(await workspaces.locate(session))


@router.get("/entries")
async def list_workspace_entries(
    api: ApiContext,
    request: Request,
    sid: SessionIdPath,
    path: PathParameter = "",
    hidden: Annotated[bool, Field(description="Include names that begin with a dot.")] = False,
    filter: Annotated[str, Field(max_length=200, description="List names that contain this; case is ignored.")] = "",
    limit: Limit = 100,
    cursor: LongCursor = None,
) -> s.WorkspaceEntryListResponse:
    """List one directory: directories first, by name."""
    workspaces, session = await _find(api, sid)
    after = read_cursor(cursor, tuple[int, str])
    read = partial(workspaces.entries, session, path, hidden=hidden, containing=filter, limit=limit, after=after)
    page = await run_while_connected(request.receive, read)  # the page gives up while its user types a filter
    return s.WorkspaceEntryListResponse(
        items=[s.WorkspaceEntryResponse.model_validate(item) for item in page.items],
        next=None if page.end is None else write_cursor(*page.end),
        path=page.path,
        total=page.total,
        complete=page.complete,
    )


@router.get("/search")
async def search_workspace(
    api: ApiContext,
    request: Request,
    sid: SessionIdPath,
    query: Annotated[str, Field(max_length=200, description="Part of a path; case is ignored.")] = "",
    limit: Annotated[int, Field(ge=1, le=50)] = 20,
) -> s.WorkspacePathsResponse:
    """Find files and folders of every level by a part of their path, the best matches first. Folders of dependencies
    and of version control are left out; hidden ones are found by a part that begins with a dot."""
    workspaces, session = await _find(api, sid)
    found = await run_while_connected(request.receive, partial(workspaces.find, session, query, limit))
    items = [s.WorkspaceEntryResponse.model_validate(item) for item in found.items]
    return s.WorkspacePathsResponse(items=items, next=None, complete=found.complete)


@router.post("/attach", status=201)
async def attach_workspace_file(api: ApiContext, sid: SessionIdPath, body: s.AttachRequest) -> FileResponse:
    """Copy a file as it is now, so that a message can refer to it by the id, as to an upload: a text of up to 256 kB,
    or an image or PDF of up to 10 MB. The copy has the name that the file's path has."""
    workspaces, session = await _find(api, sid)
    file, data = await _read_for_models(workspaces, session, body.path)
    attachments = api.engine.attachments
    attachments.require_space(len(data))
    with await to_thread.run_sync(attachments.begin) as incoming:
        await to_thread.run_sync(incoming.write, data)
        name = display_name(b"/".join(parse_path(file.path)))[-MAX_NAME:]
        kind = file.media_type if file.media_type in _ATTACHED else "text/plain"
        return FileResponse.model_validate(await attachments.add(incoming, name, kind))


@router.get("/file")
async def read_workspace_file(api: ApiContext, sid: SessionIdPath, path: FilePath) -> s.WorkspaceFileResponse:
    """Read a file's size, time and type."""
    workspaces, session = await _find(api, sid)
    return s.WorkspaceFileResponse.model_validate(await workspaces.file(session, path))


@router.get("/preview")
async def preview_workspace_file(
    api: ApiContext,
    sid: SessionIdPath,
    path: FilePath,
    limit: Annotated[int, Field(ge=1, le=MAX_PREVIEW, description="Bytes to read, from the beginning.")] = PREVIEW,
) -> s.WorkspacePreviewResponse:
    """Read the beginning of a text file."""
    workspaces, session = await _find(api, sid)
    return s.WorkspacePreviewResponse.model_validate(await workspaces.preview(session, path, limit))


@router.get(
    "/content", responses={200: _BINARY_BODY, 206: ResponseInfo("The bytes in the range.", media_types=(BINARY,))}
)
async def download_workspace_file(
    api: ApiContext,
    sid: SessionIdPath,
    path: FilePath,
    download: Annotated[bool, Field(description="Make browsers save the file instead of showing it.")] = False,
    ranges: Range = None,
    if_range: IfRange = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Download a file, or a range of it. Browsers display images, sound, video, PDF and nothing else, never as a page
    of this server."""
    workspaces, session = await _find(api, sid)
    file = await workspaces.file(session, path)
    inline = file.media_type in INLINE and not download
    is_pdf = inline and file.media_type == "application/pdf"
    headers = {
        "ETag": file.etag,
        "Cache-Control": "private, no-cache",
        "Content-Security-Policy": _PDF if is_pdf else _INERT,
        **({"X-Frame-Options": "SAMEORIGIN"} if is_pdf else {}),
    }
    if has_etag(if_none_match, file.etag):
        return Response(status_code=304, headers=headers)
    headers |= {"Accept-Ranges": "bytes", "Content-Type": _served_type(file)}
    try:
        wanted = read_range(ranges, file.size) if if_range in (None, file.etag) else None
    except UnsatisfiableRangeError:
        size = {"Content-Range": f"bytes */{file.size}"}
        raise HTTPException(416, f"The file has only {file.size} bytes.", size) from None
    start, end = wanted or (0, file.size)
    headers["Content-Length"] = str(end - start)
    if wanted is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.size}"
    chunks = workspaces.content(session, file, start, end)
    status = 200 if wanted is None else 206
    return Download(chunks, file.name, headers, status=status, inline=inline)


@router.get("/artifact", responses={200: ResponseInfo("The document.", media_types=tuple(sorted(ARTIFACTS)))})
async def open_workspace_artifact(
    api: ApiContext,
    request: Request,
    sid: SessionIdPath,
    path: FilePath,
    scripts: Annotated[bool, Field(description="Run its scripts.")] = False,
) -> Response:
    """Display an HTML or SVG file in a frame of the page. It has an origin of its own and no network, so it reaches
    neither the page nor this server. Its scripts run only on request, because browsers let them use WebRTC, and only in
    a frame, whose page keeps it from going elsewhere."""
    workspaces, session = await _find(api, sid)
    file = await workspaces.file(session, path)
    if file.media_type not in ARTIFACTS:
        raise PathRefusedError(file.path, "it is not HTML or SVG")
    if file.size > MAX_ARTIFACT:
        raise PathRefusedError(file.path, f"it is larger than {MAX_ARTIFACT >> 20} MB; download it")
    destination = request.headers.get("sec-fetch-dest")
    if destination not in (None, "iframe"):
        raise PathRefusedError(file.path, "artifacts are displayed in the chat only")
    # In browsers that do not say that it is a frame, scripts could leave for another site with what is in the file.
    runs = scripts and destination == "iframe"
    headers = {
        "Content-Type": f"{file.media_type}; charset=utf-8",
        "Content-Length": str(file.size),
        "Content-Security-Policy": f"{_ARTIFACT}sandbox{' allow-scripts' if runs else ''}",
        "X-Frame-Options": "SAMEORIGIN",
        "X-DNS-Prefetch-Control": "off",
    }
    chunks = workspaces.content(session, file, 0, file.size)
    return Download(chunks, file.name, headers, inline=True)


@router.get("/archive", responses={200: ResponseInfo("A zip archive.", media_types=("application/zip",))})
async def download_workspace_directory(api: ApiContext, sid: SessionIdPath, path: PathParameter = "") -> Response:
    """Download a directory as a zip archive: at most 20,000 files, folders and links, and
    2 GB. Links are left out."""
    workspaces, session = await _find(api, sid)
    name, chunks = await workspaces.archive(session, path)
    headers = {"Content-Type": "application/zip", "Content-Security-Policy": _INERT}
    return Download(chunks, name, headers)


async def _read_for_models(workspaces: Workspaces, session: Session, path: str) -> tuple[WorkspaceFile, bytes]:
    """A file that models can read, and its content; text as UTF-8."""
    file = await workspaces.file(session, path)
    limit = MAX_ATTACHED_TEXT if file.is_text else MAX_ATTACHED
    if not file.is_text and file.media_type not in _ATTACHED:
        raise PathRefusedError(file.path, "it is not a text, an image or a PDF")
    if not 0 < file.size <= limit:
        raise PathRefusedError(file.path, f"it is larger than {size_text(limit)}" if file.size else "it is empty")
    if file.is_text:
        preview = await workspaces.preview(session, path, limit)
        return file, (preview.text or "").encode()
    async with aclosing(workspaces.content(session, file, 0, file.size)) as chunks:
        return file, b"".join([chunk async for chunk in chunks])


def _served_type(file: WorkspaceFile) -> str:
    if file.media_type in INLINE:
        return file.media_type
    return "text/plain; charset=utf-8" if file.is_text else BINARY
