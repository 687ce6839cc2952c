"""Conversations are sessions. Only what a client needs to begin one, and to be rid of it."""

from typing import Annotated, Any

from fastapi import Path
from pydantic import Field, JsonValue
from starlette.responses import JSONResponse, Response

from holdfast.core.errors import NotFound
from holdfast.core.session import Session
from holdfast.faces.http.api import Api
from holdfast.faces.http.routing import Router
from holdfast.faces.openai import described as d
from holdfast.faces.openai import names
from holdfast.faces.openai.errors import unsupported
from holdfast.faces.openai.requests import In, Metadata
from holdfast.faces.openai.targets import DIRECT, SOURCE

ConversationId = Annotated[str, Path(max_length=200, description="Id of a conversation.")]


class NewConversation(In):
    metadata: Metadata | None = None
    items: Annotated[list[JsonValue], Field(max_length=20)] | None = None


def routes(api: Api) -> Router:
    router = Router("openai", "/v1/conversations", d.ERRORS)
    service = api.service

    @router.post("", response_model=d.ConversationOut)
    async def create_conversation(body: NewConversation | None = None) -> Response:
        """An empty session; `conversation` of a response names it."""
        if body is not None and body.items:
            raise unsupported("items", "Send them as 'input' of the first response.")
        metadata = {} if body is None else body.metadata or {}
        settings = {"source": SOURCE, "metadata": metadata}
        agent = DIRECT if api.models is not None else "chat"
        return JSONResponse(_shown(await service.create_session(agent=agent, settings=settings)))

    @router.get("/{conversation_id}", response_model=d.ConversationOut)
    async def retrieve_conversation(conversation_id: ConversationId) -> Response:
        return JSONResponse(_shown(await _session(conversation_id)))

    @router.delete("/{conversation_id}", response_model=d.Deleted)
    async def delete_conversation(conversation_id: ConversationId) -> Response:
        """Erases everything in it."""
        await service.delete((await _session(conversation_id)).id)
        return JSONResponse({"id": conversation_id, "object": "conversation.deleted", "deleted": True})

    async def _session(conversation_id: str) -> Session:
        try:
            return (await service.session(names.session_of(conversation_id))).session
        except NotFound:
            raise NotFound("conversation", conversation_id) from None

    return router


def _shown(session: Session) -> dict[str, Any]:
    metadata = session.settings.get("metadata") if isinstance(session.settings, dict) else None
    return {
        "id": names.conversation(session.id),
        "object": "conversation",
        "created_at": int(session.created_at),
        "metadata": metadata if isinstance(metadata, dict) else {},
    }
