"""Sessions: create, list, search, read, change, delete."""

from typing import Annotated, Any, Literal

from pydantic import Field
from starlette.responses import Response

from holdfast.core.errors import InvalidInputError, NotAllowedError
from holdfast.core.ids import LOCAL, MessageId, SessionId
from holdfast.engine.sessions import SessionView
from holdfast.engine.transactions.memory import named_provider
from holdfast.ports.store import SessionQuery
from holdfast.server import parameters as p
from holdfast.server.context import ApiContext
from holdfast.server.routing import Router, json_response
from holdfast.server.schemas import sessions as s
from holdfast.server.schemas.messages import MessageIdRequest, MessageListResponse, MessageResponse

router = Router("sessions", "/api/sessions")


def _respond(view: SessionView, status: int = 200) -> Response:
    return json_response(s.SessionResponse.from_view(view), status, {"ETag": f'"{view.session.version}"'})


async def _respond_with(api: ApiContext, sid: SessionId) -> Response:
    return _respond(await api.engine.sessions.get(sid))


def _check_memory(api: ApiContext, fields: dict[str, Any]) -> None:
    for name in (fields.get("memory"), named_provider(fields.get("settings"))):
        if name is not None and api.engine.session_memory is not None and not api.engine.session_memory.knows(name):
            raise InvalidInputError(
                "memory", f"there is no memory provider named {name!r}; use `none` to turn memory off"
            )


async def _resolve_directory(api: ApiContext, fields: dict[str, Any]) -> None:
    """Replaces a working directory, as a field or in the settings, by its path without links."""
    settings = fields.get("settings") or {}
    for holder in (fields, settings):
        if holder.get("cwd") is None:
            continue
        if api.programs is None or not isinstance(holder["cwd"], str):
            raise InvalidInputError("cwd", "must be a directory, on a server with agent programs")
        holder["cwd"] = await api.programs.resolve_directory(holder["cwd"])


@router.post("", status=201, returns=s.SessionResponse)
async def create_session(
    api: ApiContext, body: s.CreateSessionRequest | None = None, key: p.IdempotencyKey = None
) -> Response:
    """Create a session. A repeat with the same key returns the session that the first call created."""
    body = body or s.CreateSessionRequest()
    fields = {name: value for name, value in body.model_dump().items() if value is not None}
    _check_memory(api, fields)
    await _resolve_directory(api, fields)
    fields["tags"] = tuple(fields.get("tags", ()))
    session = await api.engine.sessions.create(key=key, **fields)
    if key is not None:  # a repeat may find it with a run
        return _respond(await api.engine.sessions.get(session.id), 201)
    return _respond(SessionView(session, None, ()), 201)


@router.get("")
async def list_sessions(
    api: ApiContext,
    query: Annotated[str | None, Field(max_length=1000, description="Words to search for.")] = None,
    archived: bool = False,
    project: Annotated[str | None, Field(max_length=200)] = None,
    source: Annotated[Literal["compare"] | None, Field(description="Only the sessions of comparisons.")] = None,
    limit: p.Limit = 50,
    cursor: p.Cursor = None,
) -> s.SessionListResponse:
    """List sessions by recent activity, excluding comparisons. `query` matches all words in the title and tags, or in
    one message."""
    if query is not None and query.strip():
        return await _search(api, query, limit, cursor)
    before = p.read_cursor(cursor, tuple[p.Moment, SessionId])
    views = await api.engine.sessions.list(
        SessionQuery(LOCAL, archived, project, limit + 1, before, comparisons=source is not None)
    )
    last = views[limit - 1].session if len(views) > limit else None
    return s.SessionListResponse(
        items=[s.SessionResponse.from_view(view) for view in views[:limit]],
        next=None if last is None else p.write_cursor(last.updated_at, last.id),
    )


async def _search(api: ApiContext, query: str, limit: int, cursor: str | None) -> s.SessionListResponse:
    (before,) = p.read_cursor(cursor, tuple[p.Number]) or (None,)
    results = await api.engine.sessions.search(query, LOCAL, limit + 1, before)
    return s.SessionListResponse(
        items=[s.SessionResponse.from_view(result.view, result.hit) for result in results[:limit]],
        next=p.write_cursor(results[limit - 1].hit.at) if len(results) > limit else None,
    )


@router.get("/{sid}", returns=s.SessionResponse)
async def read_session(api: ApiContext, sid: p.SessionIdPath) -> Response:
    return await _respond_with(api, sid)


@router.patch("/{sid}", returns=s.SessionResponse)
async def change_session(
    api: ApiContext, sid: p.SessionIdPath, body: s.UpdateSessionRequest, if_match: p.IfMatch = None
) -> Response:
    """Change title, pin, archive, tags, model and other fields. `head` switches to another branch."""
    fields: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    _check_memory(api, fields)
    await _resolve_directory(api, fields)
    head = fields.pop("head", None)
    if "tags" in fields:
        fields["tags"] = tuple(fields["tags"])
    if "agent" in fields and not fields["agent"]:
        raise InvalidInputError("agent", "must be the name of an agent")
    if fields or head is not None:
        version = p.expected_version(if_match)
        await _apply_options(api, sid, fields, version)
        await api.engine.sessions.update(sid, fields, if_version=version, show=head)
    return await _respond_with(api, sid)


async def _apply_options(api: ApiContext, sid: SessionId, fields: dict[str, Any], if_version: int | None) -> None:
    """Set options in a running program before they are stored: what it refuses is not stored."""
    if api.programs is None or not fields.get("agent_options"):
        return
    session = (await api.engine.sessions.get(sid)).session
    if if_version in (None, session.version):
        await api.programs.apply_options(sid, fields.get("agent", session.agent), fields["agent_options"])


@router.delete("/{sid}", status=204)
async def delete_session(
    api: ApiContext,
    sid: p.SessionIdPath,
    if_match: p.IfMatch = None,
    forget: Annotated[
        bool, Field(description="Also delete the memories that were learned from it, and commit none.")
    ] = False,
) -> None:
    """Delete the session with its messages, journals and files, after committing its memory. Its run is stopped."""
    await api.engine.sessions.delete(sid, if_version=p.expected_version(if_match), forget=forget)


@router.get("/{sid}/messages")
async def list_messages(
    api: ApiContext, sid: p.SessionIdPath, limit: p.Limit = 50, cursor: p.Cursor = None
) -> MessageListResponse:
    """List the messages of the shown branch: the newest page, oldest first; `next` leads to older ones. The message
    of an open run contains the events up to `last_seq`: subscribe to the run's events after that."""
    (before,) = p.read_cursor(cursor, tuple[MessageId]) or (None,)
    page = await api.engine.messages.page(sid, LOCAL, limit, before)
    return MessageListResponse(
        items=[MessageResponse.from_message(view.message, view.siblings) for view in page.items],
        next=None if page.next is None else p.write_cursor(page.next),
    )


@router.get("/{sid}/context")
async def read_context(api: ApiContext, sid: p.SessionIdPath) -> s.SessionContextResponse:
    """Estimate how much of the model's context the session uses."""
    if api.measure_context is None:
        raise NotAllowedError("measure the context", "no model is configured")
    model, used, limit = await api.measure_context(sid)
    return s.SessionContextResponse(model=model, used=used, limit=limit)


@router.get("/{sid}/usage")
async def read_usage(api: ApiContext, sid: p.SessionIdPath) -> s.SessionUsageResponse:
    """Tokens and cost of all runs, as reported by the providers."""
    return s.SessionUsageResponse.model_validate(await api.engine.sessions.usage(sid))


@router.post("/{sid}/undo", returns=s.SessionResponse)
async def undo(api: ApiContext, sid: p.SessionIdPath, if_match: p.IfMatch = None) -> Response:
    """Undo the last turn. Its messages are kept: `redo` shows them again."""
    await api.engine.sessions.undo(sid, if_version=p.expected_version(if_match))
    return await _respond_with(api, sid)


@router.post("/{sid}/redo", returns=s.SessionResponse)
async def redo(api: ApiContext, sid: p.SessionIdPath, if_match: p.IfMatch = None) -> Response:
    """Redo the turn that was undone last."""
    await api.engine.sessions.redo(sid, if_version=p.expected_version(if_match))
    return await _respond_with(api, sid)


@router.post("/{sid}/clear", returns=s.SessionResponse)
async def clear(api: ApiContext, sid: p.SessionIdPath, if_match: p.IfMatch = None) -> Response:
    """Delete all messages; the session stays."""
    await api.engine.sessions.clear(sid, if_version=p.expected_version(if_match))
    return await _respond_with(api, sid)


@router.post("/{sid}/compact", returns=s.SessionResponse)
async def compact(api: ApiContext, sid: p.SessionIdPath) -> Response:
    """Replace the conversation so far with a summary in the model's context. The messages do not change."""
    if api.summarizer is None:
        raise NotAllowedError("compact", "no model is configured that could write a summary")
    await api.engine.sessions.compact(sid, await api.summarizer(sid))
    return await _respond_with(api, sid)


@router.post("/{sid}/truncate", returns=s.SessionResponse)
async def truncate(
    api: ApiContext, sid: p.SessionIdPath, body: MessageIdRequest, if_match: p.IfMatch = None
) -> Response:
    """End the shown branch at this message."""
    await api.engine.sessions.truncate(sid, body.message_id, if_version=p.expected_version(if_match))
    return await _respond_with(api, sid)


@router.post("/{sid}/fork", status=201, returns=s.SessionResponse)
async def fork(api: ApiContext, sid: p.SessionIdPath, body: MessageIdRequest) -> Response:
    """Create a session with a copy of the branch up to this message."""
    session = await api.engine.sessions.fork(sid, body.message_id)
    return _respond(SessionView(session, None, ()), 201)
