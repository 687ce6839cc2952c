"""Changes to the files that a session's agent works on: save, create, move, upload, delete and restore. Each is
logged."""

from collections.abc import AsyncIterator
from typing import Annotated, Final

from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from holdfast.core.errors import (
    FileConflictError,
    InvalidInputError,
    PathExistsError,
    PathNotFoundError,
    WorkspaceUnavailableError,
)
from holdfast.core.ids import SessionId
from holdfast.core.session import Session
from holdfast.core.size_text import size_text
from holdfast.ports.workspace import WorkspaceEditor
from holdfast.server import security_log
from holdfast.server.access_rules import OCTETS
from holdfast.server.byte_ranges import matches_etag
from holdfast.server.client_address import request_address
from holdfast.server.context import ApiContext
from holdfast.server.parameters import SessionIdPath
from holdfast.server.problem_details import problem
from holdfast.server.routing import Header, ResponseInfo, Router, json_response
from holdfast.server.schemas import workspace as s

router = Router("workspace", "/api/sessions/{sid}/workspace")

IfMatchFile = Annotated[
    str | None,
    Header("If-Match"),
    Field(max_length=200, description="The ETag of the version to replace, or `*`."),
]
IfNoneMatchFile = Annotated[
    str | None, Header("If-None-Match"), Field(max_length=10, description="`*`: create the file, replace nothing.")
]
_CONTENT: Final = {OCTETS: {"type": "string", "format": "binary"}}


async def _find(api: ApiContext, sid: SessionId) -> tuple[WorkspaceEditor, Session]:
    session = (await api.engine.sessions.get(sid)).session
    if api.workspace_editor is None:
        raise WorkspaceUnavailableError("this server does not show files")
    return api.workspace_editor, session


@router.put(
    "/content",
    returns=s.WorkspaceFileResponse,
    responses={201: ResponseInfo("The file was created.", s.WorkspaceFileResponse)},
)
async def save_workspace_file(
    api: ApiContext,
    request: Request,
    sid: SessionIdPath,
    path: s.FilePath,
    body: s.SaveTextRequest,
    if_match: IfMatchFile = None,
    if_none_match: IfNoneMatchFile = None,
) -> Response:
    """Save a text file: atomically, with the mode that it has. If it is not a version that `If-Match` names, nothing
    is changed, and the error (412) has the `etag` and the `text` of the current one. 201: it was created, as
    `If-None-Match: *` asks for."""
    if (if_match is None) == (if_none_match is None) or if_none_match not in (None, "*"):
        raise InvalidInputError(
            "If-Match", "send the ETag of the version to replace, or If-None-Match: * for a new file"
        )
    if len(body.text.encode()) > s.MAX_TEXT:
        raise InvalidInputError("text", f"is larger than {size_text(s.MAX_TEXT)}")
    editor, session = await _find(api, sid)
    etag = None if if_match is None else await _expected_etag(api, session, path, if_match)
    try:
        file = await editor.save(session, path, body.text, etag)
    except PathExistsError as error:
        return problem(412, error.code, str(error))
    address = request_address(request, api.trusted_proxies)
    security_log.record("file saved", address=address, session=sid, path=file.path)
    status = 201 if etag is None else 200
    return json_response(s.WorkspaceFileResponse.model_validate(file), status, {"ETag": file.etag})


async def _expected_etag(api: ApiContext, session: Session, path: str, if_match: str) -> str:
    """The version that is to be replaced: the current one, if the header names it."""
    if api.workspaces is None or (if_match.startswith('"') and if_match.count('"') == 2):  # saving compares it
        return if_match
    try:
        file = await api.workspaces.file(session, path)
    except PathNotFoundError:
        raise FileConflictError(path, None, None) from None
    return file.etag if matches_etag(if_match, file.etag) else if_match


@router.post("/entries", status=201)
async def create_workspace_entry(
    api: ApiContext, request: Request, sid: SessionIdPath, body: s.CreateEntryRequest
) -> s.WorkspaceEntryResponse:
    """Create an empty file or a folder. Nothing is replaced."""
    editor, session = await _find(api, sid)
    entry = await editor.create(session, body.path, body.kind)
    address = request_address(request, api.trusted_proxies)
    security_log.record("file created", address=address, session=sid, path=entry.path)
    return s.WorkspaceEntryResponse.model_validate(entry)


@router.post("/move")
async def move_workspace_entry(
    api: ApiContext, request: Request, sid: SessionIdPath, body: s.MoveEntryRequest
) -> s.WorkspaceEntryResponse:
    """Rename or move a file, a link or a folder within the workspace. Nothing is replaced."""
    editor, session = await _find(api, sid)
    entry = await editor.move(session, body.path, body.to)
    address = request_address(request, api.trusted_proxies)
    security_log.record("file moved", address=address, session=sid, path=body.path, to=entry.path)
    return s.WorkspaceEntryResponse.model_validate(entry)


@router.post("/upload", status=201, raw_body=_CONTENT)
async def upload_workspace_file(
    api: ApiContext, request: Request, sid: SessionIdPath, path: s.FilePath
) -> s.WorkspaceEntryResponse:
    """Upload a file as it is. It appears when it is complete. Nothing is replaced."""
    limit, length = api.limits.max_file, request.headers.get("content-length", "")
    if length.isdigit() and (len(length) > 18 or int(length) > limit):
        raise _too_large(limit)  # before it is sent
    editor, session = await _find(api, sid)
    try:
        entry = await editor.upload(session, path, _limited(request.stream(), limit))
    except ClientDisconnect:
        raise HTTPException(400, "The connection closed before the whole file arrived.") from None
    address = request_address(request, api.trusted_proxies)
    security_log.record("file uploaded", address=address, session=sid, path=entry.path)
    return s.WorkspaceEntryResponse.model_validate(entry)


@router.delete("/entries")
async def delete_workspace_entry(
    api: ApiContext, request: Request, sid: SessionIdPath, path: s.FilePath
) -> s.TrashedItemResponse:
    """Move a file, a link or a folder to the trash, from which it can be restored for seven days. The trash of a
    session has at most 100 files and folders and 1 GB; older ones are erased."""
    editor, session = await _find(api, sid)
    item = await editor.delete(session, path)
    address = request_address(request, api.trusted_proxies)
    security_log.record("file deleted", address=address, session=sid, path=item.path, id=item.id)
    return s.TrashedItemResponse.model_validate(item)


@router.get("/trash")
async def list_workspace_trash(api: ApiContext, sid: SessionIdPath) -> s.TrashedItemListResponse:
    """List what was deleted and can be restored, the newest first."""
    editor, session = await _find(api, sid)
    items = [s.TrashedItemResponse.model_validate(item) for item in await editor.trash(session)]
    return s.TrashedItemListResponse(items=items, next=None)


@router.delete("/trash")
async def erase_workspace_trash(
    api: ApiContext,
    request: Request,
    sid: SessionIdPath,
    id: Annotated[
        str | None, Field(max_length=100, description="Of one deleted file or folder; without it, all.")
    ] = None,
) -> s.ErasedResponse:
    """Erase what was deleted for good: one file or folder, or everything in the trash."""
    editor, session = await _find(api, sid)
    erased = await editor.erase_trash(session, id)
    address = request_address(request, api.trusted_proxies)
    security_log.record("trash erased", address=address, session=sid, id=id or "all", items=str(erased))
    return s.ErasedResponse(erased=erased)


@router.post("/restore")
async def restore_workspace_entry(
    api: ApiContext, request: Request, sid: SessionIdPath, body: s.RestoreEntryRequest
) -> s.WorkspaceEntryResponse:
    """Move a deleted file or folder back to where it was. Nothing is replaced."""
    editor, session = await _find(api, sid)
    entry = await editor.restore(session, body.id)
    address = request_address(request, api.trusted_proxies)
    security_log.record("file restored", address=address, session=sid, path=entry.path, id=body.id)
    return s.WorkspaceEntryResponse.model_validate(entry)


async def _limited(body: AsyncIterator[bytes], limit: int) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in body:
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        yield chunk


def _too_large(limit: int) -> HTTPException:
    return HTTPException(413, f"This file is larger than {size_text(limit)}.")
