"""Conversations: make, list, search, show, change, delete."""

from typing import Annotated, Any

from fastapi import Query
from starlette.responses import JSONResponse, Response

from holdfast.core.errors import Invalid, NotAllowed
from holdfast.core.ids import LOCAL, MessageId, SessionId
from holdfast.engine.book.remembering import chosen
from holdfast.engine.views import SessionView
from holdfast.faces.http import answers, cursors
from holdfast.faces.http import descriptions as d
from holdfast.faces.http.api import Api, Cursor, IfMatch, Limit, Sid, version
from holdfast.faces.http.requests import NewSession, OneMessage, SessionPatch
from holdfast.faces.http.routing import Router
from holdfast.ports import SessionQuery


def shown(view: SessionView, status: int = 200) -> JSONResponse:
    return JSONResponse(answers.session_view(view), status, {"ETag": f'"{view.session.version}"'})


def routes(api: Api) -> Router:
    router = Router("sessions", "/api/sessions")
    service = api.service

    def _check_memory(fields: dict[str, Any]) -> None:
        for name in (fields.get("memory"), chosen(fields.get("settings"))):
            if name is not None and api.engine.boundaries is not None and not api.engine.boundaries.knows(name):
                raise Invalid("memory", f"there is no memory provider named {name!r}; `none` is for no memory at all")

    @router.post("", status_code=201, response_model=d.SessionOut)
    async def create_session(body: NewSession | None = None) -> Response:
        """Begin a conversation."""
        body = body or NewSession()
        fields = {name: value for name, value in body.model_dump().items() if value is not None}
        _check_memory(fields)
        fields["tags"] = tuple(fields.get("tags", ()))
        if "previous_session_id" in fields:
            fields["previous_session_id"] = SessionId(fields["previous_session_id"])
        session = await service.create_session(**fields)
        return shown(SessionView(session, None, ()), 201)

    @router.get("", response_model=d.Sessions)
    async def list_sessions(
        query: Annotated[str | None, Query(max_length=1000, description="Words to search for.")] = None,
        archived: bool = False,
        project: Annotated[str | None, Query(max_length=200)] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        """The newest activity first; with `query`, those whose title or messages have all its words."""
        if query is not None and query.strip():
            return await _search(query, limit, cursor)
        before = None
        if cursor is not None:
            at, sid = cursors.read(cursor, float, str)
            before = (float(at), SessionId(sid))
        views = await service.sessions(SessionQuery(LOCAL, archived, project, limit + 1, before))
        more = views[limit - 1].session if len(views) > limit else None
        return JSONResponse(
            {
                "items": [answers.session_view(view) for view in views[:limit]],
                "next": None if more is None else cursors.write(more.updated_at, more.id),
            }
        )

    async def _search(query: str, limit: int, cursor: str | None) -> Response:
        before = None if cursor is None else int(cursors.read(cursor, int)[0])
        hits = await service.search(query, LOCAL, limit + 1, before)
        items = [{**answers.session_view(found.view), "match": answers.match(found.hit)} for found in hits[:limit]]
        more = hits[limit - 1].hit.at if len(hits) > limit else None
        return JSONResponse({"items": items, "next": None if more is None else cursors.write(more)})

    @router.get("/{sid}", response_model=d.SessionOut)
    async def read_session(sid: Sid) -> Response:
        return shown(await service.session(SessionId(sid)))

    @router.patch("/{sid}", response_model=d.SessionOut)
    async def change_session(sid: Sid, body: SessionPatch, if_match: IfMatch = None) -> Response:
        """Rename, pin, archive, tag, choose a model; `head` shows another branch."""
        fields: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
        _check_memory(fields)
        head = fields.pop("head", None)
        if "tags" in fields:
            fields["tags"] = tuple(fields["tags"])
        if "agent" in fields and not fields["agent"]:
            raise Invalid("agent", "is empty; name one of the agents")
        show = None if head is None else MessageId(head)
        if fields or show is not None:
            await service.amend(SessionId(sid), fields, if_version=version(if_match), show=show)
        return shown(await service.session(SessionId(sid)))

    @router.delete("/{sid}", status_code=204)
    async def delete_session(
        sid: Sid,
        if_match: IfMatch = None,
        forget: Annotated[
            bool, Query(description="Remember nothing of it, and forget what was learnt from it.")
        ] = False,
    ) -> Response:
        """It, its messages, journals and files are erased once they are remembered; a run of it is stopped."""
        await service.delete(SessionId(sid), if_version=version(if_match), forget=forget)
        return Response(status_code=204)

    @router.get("/{sid}/messages", response_model=d.Messages)
    async def list_messages(sid: Sid, limit: Limit = 50, cursor: Cursor = None) -> Response:
        """The shown branch: its newest page, oldest first; `next` leads to older ones. The message of a run that is
        going on is there as far as `last_seq`: follow its events after that."""
        before = None if cursor is None else MessageId(cursors.read(cursor, str)[0])
        page = await service.messages(SessionId(sid), LOCAL, limit, before)
        return JSONResponse(
            {
                "items": [answers.message_view(item) for item in page.items],
                "next": None if page.next is None else cursors.write(page.next),
            }
        )

    @router.get("/{sid}/context", response_model=d.ContextOfSession)
    async def context(sid: Sid) -> Response:
        """How full the model's context is, by an estimate."""
        if api.meter is None:
            raise NotAllowed("measure the context", "no model is configured")
        model, used, limit = await api.meter(SessionId(sid))
        return JSONResponse({"model": model, "used": used, "limit": limit})

    @router.get("/{sid}/usage", response_model=d.UsageOfSession)
    async def usage(sid: Sid) -> Response:
        """Tokens and cost of all its runs, by the providers' own numbers."""
        total = await service.usage(SessionId(sid))
        body = {"runs": total.runs, "input_tokens": total.input_tokens, "output_tokens": total.output_tokens}
        return JSONResponse({**body, "cost": total.cost})

    @router.post("/{sid}/undo", response_model=d.SessionOut)
    async def undo(sid: Sid, if_match: IfMatch = None) -> Response:
        """Step back before the last turn. Nothing is destroyed: `redo`, or show the branch again."""
        await service.undo(SessionId(sid), if_version=version(if_match))
        return shown(await service.session(SessionId(sid)))

    @router.post("/{sid}/redo", response_model=d.SessionOut)
    async def redo(sid: Sid, if_match: IfMatch = None) -> Response:
        await service.redo(SessionId(sid), if_version=version(if_match))
        return shown(await service.session(SessionId(sid)))

    @router.post("/{sid}/clear", response_model=d.SessionOut)
    async def clear(sid: Sid, if_match: IfMatch = None) -> Response:
        """Erase all messages; the session stays."""
        await service.clear(SessionId(sid), if_version=version(if_match))
        return shown(await service.session(SessionId(sid)))

    @router.post("/{sid}/compact", response_model=d.SessionOut)
    async def compact(sid: Sid) -> Response:
        """Give the model a summary of what was said so far. Every message stays as it is."""
        if api.summariser is None:
            raise NotAllowed("compact", "no model is configured that could write a summary")
        await service.compact(SessionId(sid), await api.summariser(SessionId(sid)))
        return shown(await service.session(SessionId(sid)))

    @router.post("/{sid}/truncate", response_model=d.SessionOut)
    async def truncate(sid: Sid, body: OneMessage, if_match: IfMatch = None) -> Response:
        """Show the branch only as far as this message."""
        await service.truncate(SessionId(sid), MessageId(body.message_id), if_version=version(if_match))
        return shown(await service.session(SessionId(sid)))

    @router.post("/{sid}/fork", status_code=201, response_model=d.SessionOut)
    async def fork(sid: Sid, body: OneMessage) -> Response:
        """A new session with a copy of the branch as far as this message."""
        session = await service.fork(SessionId(sid), MessageId(body.message_id))
        return shown(SessionView(session, None, ()), 201)

    return router
