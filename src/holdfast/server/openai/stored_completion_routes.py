"""Stored chat completions: the runs that chat completions made, read and erased."""

import json
from typing import Annotated, Any, Literal

from pydantic import Field
from starlette.responses import JSONResponse, Response

from holdfast.core.errors import NotFoundError
from holdfast.core.ids import LOCAL
from holdfast.core.run import Run
from holdfast.core.transcript import Transcript
from holdfast.ports.store import RunQuery
from holdfast.server.context import ApiContext
from holdfast.server.openai import chat_chunks, chat_messages, ids, input_items, response_object
from holdfast.server.openai import schemas as s
from holdfast.server.routing import Router

router = Router("openai", "/v1", s.ERRORS)

CompletionId = Annotated[str, Field(max_length=200, description="Id of a chat completion.")]
_SCANNED = 1000  # Runs that a list looks at


@router.get("/chat/completions", returns=s.StoredList)
async def list_completions(
    api: ApiContext,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
    after: Annotated[str | None, Field(max_length=200, description="The last id that the client has.")] = None,
    model: Annotated[str | None, Field(max_length=500)] = None,
) -> Response:
    """The complete ones among the newest runs."""
    runs = await api.engine.runs.list(RunQuery(LOCAL, status=["complete"], limit=_SCANNED))
    runs = [run for run in runs if _is_completion(run) and model in (None, response_object.model_name(run))]
    by_id = {ids.completion_id(run.id): run for run in reversed(runs)}
    found = input_items.page([{"id": name} for name in by_id], limit, order, after)
    return JSONResponse({**found, "data": [await _completion(api, by_id[item["id"]]) for item in found["data"]]})


@router.get("/chat/completions/{completion_id}", returns=s.ChatCompletion)
async def retrieve_completion(api: ApiContext, completion_id: CompletionId) -> Response:
    run = await _run(api, completion_id)
    return JSONResponse(await _completion(api, run), headers={"holdfast-run": run.id})


@router.get("/chat/completions/{completion_id}/messages", returns=s.StoredList)
async def list_completion_messages(
    api: ApiContext,
    completion_id: CompletionId,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "asc",
    after: Annotated[str | None, Field(max_length=200, description="The last id that the client has.")] = None,
) -> Response:
    """The messages that were answered."""
    run = await _run(api, completion_id)
    found = chat_messages.list_messages(await api.engine.messages.path(run.user_message_id))
    return JSONResponse(input_items.page(found, limit, order, after))


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


async def _completion(api: ApiContext, run: Run) -> dict[str, Any]:
    message = (await api.engine.messages.get(run.message_id)).message
    ended = Transcript(message.parts, "complete", finish_reason=run.finish_reason, usage=run.usage)
    constant = chat_chunks.constant_fields(run, "chat.completion")
    server_tools = response_object.has_server_tools(run)
    found: dict[str, Any] = json.loads(chat_chunks.render_completion(constant, ended, server_tools=server_tools))
    return found
