"""Attached files, exports, imports and backups."""

from collections.abc import Sequence
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
    messages: Annotated[int, Field(description="How many were added; if it was imported before, only new ones.")]
    files: int
    is_new: bool
    skipped: Annotated[Sequence[str], Field(description="What was left out of the chat, and why.")]


class ImportResponse(ListResponse[ImportedSessionResponse]): ...
