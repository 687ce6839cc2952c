"""Conversations below `/v1`, which are sessions, and their items, which are parts of messages."""

from typing import Annotated, Literal

from anyio import to_thread
from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from holdfast.core.errors import NotFoundError
from holdfast.core.session import Message, Session
from holdfast.server.context import ApiContext
from holdfast.server.openai import ids, input_items, item_pages, model_names, parameters, submit
from holdfast.server.openai import schemas as s
from holdfast.server.openai.file_parts import StoredTurn, store_turns
from holdfast.server.openai.input_items import TurnBuilder
from holdfast.server.openai.model_names import DIRECT, Target
from holdfast.server.routing import Router

router = Router("openai", "/v1", s.ERRORS)

ConversationId = Annotated[str, Field(max_length=200, description="Id of a conversation.")]
ItemId = Annotated[str, Field(max_length=200, description="Id of an item.")]
_ANY_MODEL = Target("", DIRECT, None, frozenset({"images", "documents"}))
"""Which files a model reads is known when it answers."""


@router.post("/conversations")
async def create_conversation(
    api: ApiContext, request: Request, body: s.ConversationRequest | None = None
) -> s.ConversationObject:
    """Create a conversation, which is a session. Responses can name it as `conversation`."""
    metadata = {} if body is None else body.metadata or {}
    turns = await _store(
        api, request, (body and body.items) or [], None
    )  # before the session is created, which would stay empty
    agent = model_names.DIRECT if api.models is not None else "chat"
    settings = {"source": parameters.SOURCE, "metadata": metadata}
    session = await api.engine.sessions.create(agent=agent, settings=settings)
    if turns:
        await api.engine.sessions.append(session.id, _messages(api, session, turns))
    return _conversation_object(session)


@router.get("/conversations/{conversation_id}")
async def retrieve_conversation(api: ApiContext, conversation_id: ConversationId) -> s.ConversationObject:
    return _conversation_object(await submit.find_conversation(api, conversation_id))


@router.post("/conversations/{conversation_id}")
async def update_conversation(
    api: ApiContext, conversation_id: ConversationId, body: s.ConversationUpdate
) -> s.ConversationObject:
    """Replace the metadata."""
    session = await submit.find_conversation(api, conversation_id)
    settings = {**(session.settings if isinstance(session.settings, dict) else {}), "metadata": body.metadata}
    return _conversation_object(await api.engine.sessions.update(session.id, {"settings": settings}))


@router.delete("/conversations/{conversation_id}")
async def delete_conversation(api: ApiContext, conversation_id: ConversationId) -> s.DeletedObject:
    """Erase the session and everything in it."""
    await api.engine.sessions.delete((await submit.find_conversation(api, conversation_id)).id)
    return s.DeletedObject(id=conversation_id, object="conversation.deleted", deleted=True)


# ---- items ----


@router.get("/conversations/{conversation_id}/items", returns=s.InputItemList)
async def list_conversation_items(
    api: ApiContext,
    conversation_id: ConversationId,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
    after: Annotated[str | None, Field(max_length=200, description="List what follows this id.")] = None,
    include: Annotated[list[str] | None, Field(max_length=20)] = None,
) -> Response:
    """The items of the shown branch. A page ends before `limit` where it would be larger than about 8 MB."""
    session = await submit.find_conversation(api, conversation_id)
    return await item_pages.list_branch(api, session.id, session.head, limit, order, after)


@router.post("/conversations/{conversation_id}/items", returns=s.InputItemList)
async def create_conversation_items(
    api: ApiContext, request: Request, conversation_id: ConversationId, body: s.ConversationItemsRequest
) -> Response:
    """Add items after the last message, without an answer."""
    session = await submit.find_conversation(api, conversation_id)
    added = _messages(api, session, await _store(api, request, body.items, session))
    await api.engine.sessions.append(session.id, added)
    page = item_pages.ItemList(len(body.items))
    await to_thread.run_sync(page.add, added)
    return Response(await to_thread.run_sync(page.render), media_type="application/json")


@router.get("/conversations/{conversation_id}/items/{item_id}", returns=s.ItemObject)
async def retrieve_conversation_item(api: ApiContext, conversation_id: ConversationId, item_id: ItemId) -> Response:
    session = await submit.find_conversation(api, conversation_id)
    path = [] if session.head is None else await api.engine.messages.path_entries(session.id, session.head)
    at = item_pages.find_item(path, item_id)
    if at < len(path):
        message = await api.engine.messages.read_one(session.id, path[at].id)
        for item in await to_thread.run_sync(input_items.list_items, [message]):
            if item["id"] == item_id:
                return JSONResponse(item)
    raise NotFoundError("item", item_id)


async def _store(
    api: ApiContext, request: Request, items: list[s.InputItem], session: Session | None
) -> list[StoredTurn]:
    """The items as turns. Instructions have no place in a conversation and are left out."""
    turns = TurnBuilder("items")
    if session is not None and session.head is not None:
        turns.calls |= await submit.earlier_calls(api, session.head)
    input_items.read_input(items, turns, await submit.referenced_parts(api, items, "items"))
    return await store_turns(api, turns.turns, _ANY_MODEL, request.receive)


def _messages(api: ApiContext, session: Session, turns: list[StoredTurn]) -> list[Message]:
    return submit.message_chain(api, session.id, session.head, turns, api.engine.clock.now())


def _conversation_object(session: Session) -> s.ConversationObject:
    metadata = session.settings.get("metadata") if isinstance(session.settings, dict) else None
    return s.ConversationObject(
        id=ids.conversation_id(session.id),
        object="conversation",
        created_at=int(session.created_at),
        metadata=metadata if isinstance(metadata, dict) else {},
    )
