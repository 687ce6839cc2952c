"""The files that a session's agent works on."""

from typing import Annotated, Literal

from pydantic import Field

from holdfast.core.file_names import MAX_PATH
from holdfast.ports.workspace import WorkspaceOrigin
from holdfast.server.schemas.base import ListResponse, RequestModel, ResponseModel, Timestamp

Path = Annotated[
    str,
    Field(
        description="Relative to the workspace. `%`, control characters and bytes that are not UTF-8 are written as "
        "`%` and two hexadecimal digits."
    ),
]

MAX_TEXT = 2 * 1024 * 1024
FilePath = Annotated[str, Field(min_length=1, max_length=MAX_PATH, description="The `path` of a file or folder.")]


class WorkspaceLocationResponse(ResponseModel):
    directory: Annotated[str, Field(description="On the server.")]
    origin: Annotated[
        WorkspaceOrigin,
        Field(description="`private`: the session's own. `chosen`: its `cwd`. `agent`: from the agent's settings."),
    ]
    available: bool
    reason: Annotated[str | None, Field(description="Why its files cannot be shown.")]


class WorkspaceEntryResponse(ResponseModel):
    name: Annotated[str, Field(description="For people. Bytes that are not UTF-8 are replaced.")]
    path: Path
    kind: Literal["directory", "file", "link", "other"]
    target: Annotated[
        Literal["directory", "file"] | None, Field(description="What a link leads to, if that is in the workspace.")
    ]
    size: int | None
    modified_at: Timestamp


class WorkspaceEntryListResponse(ListResponse[WorkspaceEntryResponse]):
    path: Path
    total: Annotated[int, Field(description="The number of entries on all pages.")]
    complete: Annotated[bool, Field(description="False if the directory has more than a million entries.")]


class WorkspacePathsResponse(ListResponse[WorkspaceEntryResponse]):
    complete: Annotated[bool, Field(description="False if there are more files than are looked at.")]


class WorkspaceFileResponse(ResponseModel):
    name: str
    path: Path
    size: int
    modified_at: Timestamp
    media_type: Annotated[str, Field(description="Detected from the content.")]
    is_text: bool
    etag: str


class WorkspacePreviewResponse(ResponseModel):
    file: WorkspaceFileResponse
    text: Annotated[str | None, Field(description="The beginning of the text; null for a binary file.")]
    truncated: bool
    editable: Annotated[
        bool, Field(description="Whether the text is complete, is UTF-8, and may be written by the server's account.")
    ]


class SaveTextRequest(RequestModel):
    text: Annotated[str, Field(max_length=MAX_TEXT, description="Stored as UTF-8. At most 2 MB.")]


class CreateEntryRequest(RequestModel):
    path: FilePath
    kind: Literal["directory", "file"]


class MoveEntryRequest(RequestModel):
    path: FilePath
    to: Annotated[FilePath, Field(description="The new path, which must not exist.")]


class RestoreEntryRequest(RequestModel):
    id: Annotated[str, Field(max_length=100, description="Of a deleted file or folder.")]


class AttachRequest(RequestModel):
    path: FilePath


class ErasedResponse(ResponseModel):
    erased: Annotated[int, Field(description="The number of files and folders that were erased.")]


class TrashedItemResponse(ResponseModel):
    id: str
    path: Annotated[str, Field(description="Where it was.")]
    kind: Literal["directory", "file", "link"]
    size: Annotated[int, Field(description="Of everything in it.")]
    deleted_at: Timestamp


class TrashedItemListResponse(ListResponse[TrashedItemResponse]):
    pass
