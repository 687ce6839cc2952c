"""What runs changed in the files that a session's agent works on, with differences, and its undoing."""

from typing import Annotated

from pydantic import Field
from starlette.requests import Request

from holdfast.core.errors import SessionBusyError, WorkspaceUnavailableError
from holdfast.core.ids import SessionId
from holdfast.core.run import Run
from holdfast.core.session import Session
from holdfast.ports.workspace import WorkspaceHistory
from holdfast.server import security_log
from holdfast.server.client_address import request_address
from holdfast.server.context import ApiContext
from holdfast.server.parameters import SessionIdPath
from holdfast.server.routing import Router
from holdfast.server.schemas import run_changes as s
from holdfast.server.schemas.workspace import FilePath

router = Router("workspace", "/api/sessions/{sid}/workspace/changes")

SetId = Annotated[str, Field(max_length=100, description="The id of a run, or of a restore.")]


async def _find(api: ApiContext, sid: SessionId) -> tuple[WorkspaceHistory, Session, Run | None]:
    """With the session's active run."""
    view = await api.engine.sessions.get(sid)
    if api.workspace_history is None:
        raise WorkspaceUnavailableError("this server does not show files")
    return api.workspace_history, view.session, view.active_run


@router.get("")
async def list_workspace_changes(api: ApiContext, sid: SessionIdPath) -> s.ChangeSetListResponse:
    """List the runs that changed files, and the restores, the newest first. Sets are kept for 30 days, as long as they
    are among the last 200 and their contents have at most 256 MB. A chat without files is no error: the page asks for
    every chat that it shows."""
    try:
        history, session, active = await _find(api, sid)
        found = await history.sets(session, idle=active is None)
    except WorkspaceUnavailableError as error:
        return s.ChangeSetListResponse(items=[], next=None, unavailable=str(error))
    items = [s.ChangeSetResponse.model_validate(item) for item in found]
    return s.ChangeSetListResponse(items=items, next=None)


@router.get("/{set_id}")
async def list_changed_files(api: ApiContext, sid: SessionIdPath, set_id: SetId) -> s.ChangedFileListResponse:
    """List the files that a run or a restore changed, by path; at most 1,000."""
    history, session, active = await _find(api, sid)
    files = await history.files(session, set_id, idle=active is None)
    items = [s.ChangedFileResponse.model_validate(item) for item in files[:1000]]
    return s.ChangedFileListResponse(items=items, next=None, total=len(files))


@router.get("/{set_id}/diff")
async def read_file_diff(
    api: ApiContext, sid: SessionIdPath, set_id: SetId, path: FilePath
) -> s.ChangedFileDiffResponse:
    """Read how a file differs from what it was before, and which state it has now."""
    history, session, _ = await _find(api, sid)
    return s.ChangedFileDiffResponse.model_validate(await history.diff(session, set_id, path))


@router.post("/{set_id}/restore")
async def restore_changed_files(
    api: ApiContext, request: Request, sid: SessionIdPath, set_id: SetId, body: s.RestoreChangesRequest
) -> s.RestoredFilesResponse:
    """Give files, or all that the run changed, the bytes and modes that they had before it. If one was changed since,
    nothing is restored (412), unless `overwrite` is set. What is replaced is kept: restore the set of the response to
    undo this."""
    history, session, active = await _find(api, sid)
    if active is not None:
        raise SessionBusyError(sid, active.id)
    done = await history.restore(session, set_id, body.paths, overwrite=body.overwrite)
    address = request_address(request, api.trusted_proxies)
    files = str(len(done.restored))
    security_log.record("changes restored", address=address, session=sid, set=set_id, files=files, id=done.id or "")
    skipped = [s.SkippedFileResponse(path=path, reason=reason) for path, reason in done.skipped]
    return s.RestoredFilesResponse(id=done.id, restored=list(done.restored), skipped=skipped)
