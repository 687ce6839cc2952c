"""Drafts: the unsent text of a chat."""

from typing import Annotated

from pydantic import Field

from holdfast.core.drafts import MAX_TEXT
from holdfast.server.schemas.base import RequestModel, ResponseModel, Timestamp

DraftChat = Annotated[
    str, Field(max_length=200, description="The id of a session, or `new` for the chat that is begun next.")
]


class SaveDraftRequest(RequestModel):
    text: Annotated[str, Field(max_length=MAX_TEXT, description="Empty to discard the draft.")]


class SentDraftRequest(RequestModel):
    session_id: DraftChat
    version: Annotated[int, Field(ge=0, lt=2**53)]


class DraftResponse(ResponseModel):
    session_id: str
    text: str
    version: int
    """0 if there was no draft yet; it rises with each change."""
    updated_at: Timestamp
