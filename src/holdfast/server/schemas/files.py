"""Attached files, exports, imports and backups."""

from typing import Annotated

from pydantic import AliasPath, Field

from holdfast.server.schemas.base import ListResponse, RequestModel, ResponseModel, Timestamp


class BackupRequest(RequestModel):
    path: Annotated[str, Field(min_length=1, max_length=4000)]


class FileResponse(ResponseModel):
    id: str
    name: str
    media_type: str
    size: int
    created_at: Timestamp


class ImportedSessionResponse(ResponseModel):
    session_id: Annotated[str, Field(validation_alias=AliasPath("session", "id"))]
    title: Annotated[str, Field(validation_alias=AliasPath("session", "title"))]
    messages: int
    files: int


class ImportResponse(ListResponse[ImportedSessionResponse]): ...
