"""What runs changed in files."""

from typing import Annotated, Literal

from pydantic import Field

from holdfast.server.schemas.base import ListResponse, RequestModel, ResponseModel, Timestamp
from holdfast.server.schemas.workspace import FilePath, Path


class ChangeSetResponse(ResponseModel):
    id: Annotated[str, Field(description="Of the run, or of the restore.")]
    kind: Literal["run", "restore"]
    created_at: Timestamp
    files: Annotated[int, Field(description="The number of files that differ.")]
    names: Annotated[list[str], Field(description="The paths of the first 20 of them.")]
    note: Annotated[str, Field(description="Why changes may be missing; empty if none are.")]
    undone: Annotated[str | None, Field(description="Of a restore: the set that it undid.")]


class ChangeSetListResponse(ListResponse[ChangeSetResponse]):
    unavailable: Annotated[str, Field(description="Why the chat's files cannot be shown; empty if they can.")] = ""


class ChangedFileResponse(ResponseModel):
    path: Path
    kind: Literal["created", "modified", "deleted"]
    what: Literal["absent", "directory", "file", "link", "other"]
    before_size: int | None
    after_size: int | None
    before_mode: int | None
    after_mode: int | None
    restorable: bool
    reason: Annotated[str | None, Field(description="Why it cannot be restored.")]


class ChangedFileListResponse(ListResponse[ChangedFileResponse]):
    total: int


class ChangedFileDiffResponse(ResponseModel):
    file: ChangedFileResponse
    diff: Annotated[str | None, Field(description="Unified; null if a content is not text or was not kept.")]
    current: Annotated[
        Literal["after", "before", "other"],
        Field(description="What the file is now: as the run left it, as it was before, or changed since."),
    ]


class RestoreChangesRequest(RequestModel):
    paths: Annotated[list[FilePath] | None, Field(max_length=1000, description="Without it, all files.")] = None
    overwrite: Annotated[bool, Field(description="Also restore files that were changed since.")] = False


class SkippedFileResponse(ResponseModel):
    path: str
    reason: str


class RestoredFilesResponse(ResponseModel):
    id: Annotated[str | None, Field(description="The set that undoes this; null if nothing was restored.")]
    restored: list[str]
    skipped: list[SkippedFileResponse]
