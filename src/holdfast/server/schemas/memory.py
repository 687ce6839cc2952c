"""Facts that were learned from sessions, and the memory status of a session."""

from typing import Annotated

from pydantic import Field

from holdfast.server.schemas.base import ListResponse, Name, RequestModel, ResponseModel, Timestamp


class CreateFactRequest(RequestModel):
    text: Annotated[str, Field(min_length=1, max_length=4000)]
    project: Annotated[Name, Field(description="A project, whose own memory is added to.")] | None = None


class UpdateFactRequest(RequestModel):
    """Only the given fields change."""

    text: Annotated[str, Field(min_length=1, max_length=4000)] = ""
    pinned: bool = False
    confirmed: bool = False


class CommitMemoryRequest(RequestModel):
    provider: Name | None = None


class FactResponse(ResponseModel):
    id: str
    text: str
    session_id: str
    """The session that it came from. Empty if it was added by hand."""
    message_id: str
    created_at: Timestamp
    updated_at: Timestamp
    pinned: bool
    confirmed: bool


class FactListResponse(ListResponse[FactResponse]):
    confirm: bool = False
    """Whether facts are used only after they were confirmed (`confirm` in `[memory]`)."""


class MemoryStatusResponse(ResponseModel):
    dirty_turns: int
    committing: bool
    committed_turns: int
    last_error: str | None
    provider: str | None


class MemoryCommitResponse(MemoryStatusResponse):
    committed: int
    nothing_new: bool


class MemoryProviderResponse(ResponseModel):
    name: str
    default: bool
    problem: str | None


class MemoryProviderListResponse(ResponseModel):
    items: list[MemoryProviderResponse]
