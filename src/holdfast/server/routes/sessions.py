"""Sessions: create, list, search, read, change, delete. What each does: `engine.sessions`."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, Final, Literal

import anyio
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from holdfast.core.errors import InvalidInputError, NotAllowedError
from holdfast.core.ids import LOCAL, MessageId, SessionId
from holdfast.core.parts import approximate_size
from holdfast.core.session import Session
from holdfast.engine.engine import Engine
from holdfast.engine.sessions import SessionView
from holdfast.engine.titles import FirstWords
from holdfast.engine.transactions.memory import named_provider
from holdfast.ports.agent import Summarizer
from holdfast.ports.store import SessionQuery
from holdfast.server import parameters as p
from holdfast.server.context import ApiContext
from holdfast.server.disconnects import run_while_connected
from holdfast.server.routing import Router, json_response, run_sized
from holdfast.server.schemas import sessions as s
from holdfast.server.schemas.messages import (
    EditAnswerRequest,
    MessageExcerptListResponse,
    MessageExcerptResponse,
    MessageIdRequest,
    MessageListResponse,
    MessageResponse,
)
from holdfast.server.schemas.usage import UsageSummaryResponse

router = Router("sessions", "/api/sessions")

_TITLE_TIMEOUT: Final = 25.0  # Seconds; less than the page waits for an answer
_SUMMARY_TIMEOUT: Final = 300.0  # Seconds: a local model reads a long conversation for minutes


def _respond(view: SessionView, status: int = 200) -> Response:
    return json_response(s.SessionResponse.from_view(view), status, {"ETag": f'"{view.session.version}"'})


async def _respond_with(api: ApiContext, sid: SessionId) -> Response:
    view = await api.engine.sessions.get(sid)
    return await run_sized(partial(_respond, view), view.size)


async def _created(api: ApiContext, session: Session, key: str | None) -> Response:
    if key is None:
        return _respond(SessionView(session, None, ()), 201)
    view = await api.engine.sessions.get(session.id)  # a repeat may find it with a run
    return await run_sized(partial(_respond, view, 201), view.size)


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
    return await _created(api, await api.engine.sessions.create(key=key, **fields), key)


@router.get("", returns=s.SessionListResponse)
async def list_sessions(
    api: ApiContext,
    query: Annotated[str | None, Field(max_length=1000, description="Words to search for.")] = None,
    archived: bool = False,
    project: Annotated[str | None, Field(max_length=200)] = None,
    archived_projects: Annotated[bool, Field(description="False: without those of archived projects.")] = True,
    source: Annotated[Literal["compare"] | None, Field(description="Only the sessions of comparisons.")] = None,
    limit: p.Limit = 50,
    cursor: p.Cursor = None,
) -> Response:
    """List sessions by recent activity, excluding comparisons. `query` matches all words in the title and tags, or in
    one message. A queued message of more than 1000 bytes is listed without its parts; read the session for them."""
    if query is not None and query.strip():
        return await _search(api, query, limit, cursor)
    before = p.read_cursor(cursor, tuple[p.Moment, SessionId])
    views = await api.engine.sessions.list(
        SessionQuery(
            LOCAL,
            archived,
            project,
            limit + 1,
            before,
            comparisons=source is not None,
            archived_projects=archived_projects or archived or project is not None,
        )
    )
    last = views[limit - 1].session if len(views) > limit else None

    def response() -> Response:
        items = [s.SessionResponse.from_view(view) for view in views[:limit]]
        following = None if last is None else p.write_cursor(last.updated_at, last.id)
        return json_response(s.SessionListResponse(items=items, next=following))

    return await run_sized(response, sum(view.size for view in views))


async def _search(api: ApiContext, query: str, limit: int, cursor: str | None) -> Response:
    (before,) = p.read_cursor(cursor, tuple[p.Number]) or (None,)
    results = await api.engine.sessions.search(query, LOCAL, limit + 1, before)

    def response() -> Response:
        items = [s.SessionResponse.from_view(result.view, result.hit) for result in results[:limit]]
        following = p.write_cursor(results[limit - 1].hit.at) if len(results) > limit else None
        return json_response(s.SessionListResponse(items=items, next=following))

    return await run_sized(response, sum(result.view.size for result in results))


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
        bool, Field(description="Also delete the memories from this chat, and store no new ones.")
    ] = False,
) -> None:
    """Delete the session with its messages, journals and files, after committing its memory. Its run is stopped."""
    await api.engine.sessions.delete(sid, if_version=p.expected_version(if_match), forget=forget)


@router.get("/{sid}/messages", returns=MessageListResponse)
async def list_messages(
    api: ApiContext, sid: p.SessionIdPath, limit: p.Limit = 50, cursor: p.Cursor = None
) -> Response:
    """List the messages of the shown branch: the newest page, oldest first; `next` leads to older ones. A page ends
    before `limit` where it would be larger than about 8 MB, but has at least one message. The message of an open run
    contains the events up to `last_seq`: subscribe to the run's events after that."""
    (before,) = p.read_cursor(cursor, tuple[MessageId]) or (None,)
    page = await api.engine.messages.page(sid, LOCAL, limit, before)

    def response() -> Response:
        content = MessageListResponse(
            items=[MessageResponse.from_view(view) for view in page.items],
            next=None if page.next is None else p.write_cursor(page.next),
        )
        return json_response(content)

    return await run_sized(response, page.size)


@router.get("/{sid}/outline")
async def read_outline(
    api: ApiContext,
    sid: p.SessionIdPath,
    query: Annotated[str | None, Field(max_length=200, description="Text to find in questions and answers.")] = None,
    limit: p.Limit = 50,
    cursor: p.Cursor = None,
) -> MessageExcerptListResponse:
    """The beginnings of the questions of the shown branch, or with `query` where its questions and answers contain that
    text. The newest page comes first, oldest first within it; a page without items may have a `next`."""
    (before,) = p.read_cursor(cursor, tuple[MessageId]) or (None,)
    wanted = query if query is not None and query.strip() else None
    page = await api.engine.messages.excerpts(sid, wanted, LOCAL, limit, before)
    return MessageExcerptListResponse(
        items=[MessageExcerptResponse.from_excerpt(item) for item in page.items],
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
async def read_usage(api: ApiContext, sid: p.SessionIdPath) -> UsageSummaryResponse:
    """Tokens and cost of all answers of the session that were not erased. A cost that the provider did not report is
    estimated as in `/api/usage`."""
    return UsageSummaryResponse.model_validate(await api.engine.sessions.usage(sid))


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
async def compact(api: ApiContext, request: Request, sid: p.SessionIdPath) -> Response:
    """Replace the conversation so far with a summary in the model's context. The messages do not change. It ends if the
    client disconnects."""
    if api.summarizer is None:
        raise NotAllowedError("compact", "no model is configured that could write a summary")
    await api.engine.usage.require_budget()
    work = partial(_compact, api.engine, sid, api.summarizer)
    try:
        with anyio.fail_after(_SUMMARY_TIMEOUT):
            await run_while_connected(request.receive, work)
    except TimeoutError:
        raise HTTPException(504, f"The model gave no summary within {_SUMMARY_TIMEOUT:.0f} s. Try again.") from None
    return await _respond_with(api, sid)


async def _compact(engine: Engine, sid: SessionId, find: Callable[[SessionId], Awaitable[Summarizer]]) -> None:
    await engine.sessions.compact(sid, await find(sid))


@router.post("/{sid}/title", returns=s.SessionResponse)
async def generate_title(api: ApiContext, sid: p.SessionIdPath) -> Response:
    """Title the session by its newest messages, also in place of a title that a person set. One that is set meanwhile
    stays."""
    session = (await api.engine.sessions.get(sid)).session
    if api.titler is not None:
        await api.engine.usage.require_budget()
    try:
        titler = FirstWords() if api.titler is None else await api.titler(session)
        with anyio.fail_after(_TITLE_TIMEOUT):
            await api.engine.titles.regenerate(sid, titler)
    except TimeoutError:
        raise HTTPException(504, f"The model gave no title within {_TITLE_TIMEOUT:.0f} s. Try again.") from None
    return await _respond_with(api, sid)


@router.post("/{sid}/edit-answer", status=201, returns=MessageResponse)
async def edit_answer(
    api: ApiContext,
    sid: p.SessionIdPath,
    body: EditAnswerRequest,
    key: p.IdempotencyKey = None,
    if_match: p.IfMatch = None,
) -> Response:
    """Change the text of an answer, as a branch of its own: the original stays, and models are shown the new text from
    now on. Its tool calls are kept, its reasoning is not. The new message has the reason `edited`. To change a message
    of the user, use `edit`."""
    if not body.text.strip():
        raise InvalidInputError("text", "must not be empty")
    version = p.expected_version(if_match)
    edited = await api.engine.sessions.edit_answer(sid, body.message_id, body.text, key=key, if_version=version)
    view = await api.engine.messages.get(edited.id)
    return await run_sized(
        lambda: json_response(MessageResponse.from_view(view), 201), approximate_size(view.message.parts)
    )


@router.post("/{sid}/truncate", returns=s.SessionResponse)
async def truncate(
    api: ApiContext, sid: p.SessionIdPath, body: MessageIdRequest, if_match: p.IfMatch = None
) -> Response:
    """End the shown branch at this message."""
    await api.engine.sessions.truncate(sid, body.message_id, if_version=p.expected_version(if_match))
    return await _respond_with(api, sid)


@router.post("/{sid}/fork", status=201, returns=s.SessionResponse)
async def fork(api: ApiContext, sid: p.SessionIdPath, body: MessageIdRequest, key: p.IdempotencyKey = None) -> Response:
    """Create a session with a copy of the branch up to this message. A repeat with the same key returns the session
    that the first call created."""
    return await _created(api, await api.engine.sessions.fork(sid, body.message_id, key=key), key)
