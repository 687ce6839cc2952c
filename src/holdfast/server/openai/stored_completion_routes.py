"""Stored chat completions: the runs that chat completions made, read and erased."""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from anyio import to_thread
from pydantic import Field
from starlette.responses import Response

from holdfast.core.errors import NotFoundError
from holdfast.core.ids import LOCAL
from holdfast.core.run import Run
from holdfast.core.session import Message
from holdfast.core.transcript import Transcript
from holdfast.ports.store import PathEntry, RunQuery
from holdfast.server.context import ApiContext
from holdfast.server.openai import chat_chunks, chat_messages, ids, item_pages, response_object
from holdfast.server.openai import schemas as s
from holdfast.server.openai.errors import ParameterError
from holdfast.server.routing import Router

router = Router("openai", "/v1", s.ERRORS)

CompletionId = Annotated[str, Field(max_length=200, description="Id of a chat completion.")]
_SCANNED: Final = 1000  # Runs that a list looks at


@router.get("/chat/completions", returns=s.StoredCompletionList)
async def list_completions(
    api: ApiContext,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
    after: Annotated[str | None, Field(max_length=200, description="List what follows this id.")] = None,
    model: Annotated[str | None, Field(max_length=500)] = None,
) -> Response:
    """List complete ones of the newest runs. A page ends before `limit` if it would be larger than about 8 MB."""
    before = None
    if after is not None:
        try:
            last = await _run(api, after)
        except NotFoundError:
            raise ParameterError("after", f"The list has no item '{after[:100]}'.") from None
        before = (last.created_at, last.id)
    query = RunQuery(
        LOCAL,
        status=["complete"],
        limit=limit + 1,
        before=before,
        oldest_first=order == "asc",
        among_newest=_SCANNED,
        settings_with={response_object.MODEL_SETTING: model},
        settings_without=[response_object.BACKGROUND_SETTING],
    )
    page = item_pages.ItemPage(limit)
    for listed in await api.engine.runs.list(query):
        try:
            completion = await _completion(api, await api.engine.runs.get(listed.id))
        except NotFoundError:  # erased meanwhile
            continue
        if not page.add(ids.completion_id(listed.id), completion):
            break
    return Response(page.render(), media_type="application/json")


@router.get("/chat/completions/{completion_id}", returns=s.ChatCompletion)
async def retrieve_completion(api: ApiContext, completion_id: CompletionId) -> Response:
    run = await _run(api, completion_id)
    return Response(await _completion(api, run), headers={"holdfast-run": run.id}, media_type="application/json")


@router.get("/chat/completions/{completion_id}/messages", returns=s.StoredCompletionList)
async def list_completion_messages(
    api: ApiContext,
    completion_id: CompletionId,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "asc",
    after: Annotated[str | None, Field(max_length=200, description="List what follows this id.")] = None,
) -> Response:
    """List the messages that were answered. A page ends before `limit` where it would be larger than about 8 MB."""
    run = await _run(api, completion_id)
    listing = chat_messages.list_messages, _find_message
    return await item_pages.list_branch(api, run.session_id, run.user_message_id, limit, order, after, *listing)


@router.delete("/chat/completions/{completion_id}")
async def delete_completion(api: ApiContext, completion_id: CompletionId) -> s.DeletedObject:
    """Erase the turn; with the last turn of a session, the session."""
    await api.engine.runs.erase((await _run(api, completion_id)).id)
    return s.DeletedObject(id=completion_id, object="chat.completion.deleted", deleted=True)


def _is_completion(run: Run) -> bool:
    """Whether a chat completion made it: a response stores more of its call."""
    stored = run.settings.get("openai") if isinstance(run.settings, dict) else None
    return isinstance(stored, dict) and "background" not in stored


async def _run(api: ApiContext, completion_id: str) -> Run:
    try:
        run = await api.engine.runs.get(ids.run_id(completion_id))
    except NotFoundError:
        raise NotFoundError("chat completion", completion_id) from None
    if not _is_completion(run) or run.status != "complete":
        raise NotFoundError("chat completion", completion_id)
    return run


async def _completion(api: ApiContext, run: Run) -> bytes:
    def render(message: Message) -> bytes:
        ended = Transcript(message.parts, "complete", finish_reason=run.finish_reason, usage=run.usage)
        constant = chat_chunks.constant_fields(run, "chat.completion")
        return chat_chunks.render_completion(constant, ended, server_tools=response_object.has_server_tools(run))

    return await to_thread.run_sync(render, await api.engine.messages.read_one(run.session_id, run.message_id))


def _find_message(path: Sequence[PathEntry], item: str) -> int:
    """As `item_pages.find_item`. The ids of results of tools begin with the one of their message."""
    return next((n for n, entry in enumerate(path) if item == entry.id or item.startswith(f"{entry.id}_")), len(path))
