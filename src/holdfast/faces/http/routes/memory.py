"""What is remembered: facts to look at, change and erase, and how a session stands with its memory."""

from typing import Annotated

from fastapi import Path, Query
from starlette.responses import JSONResponse, Response

from holdfast.core.errors import NotAllowed
from holdfast.core.ids import FactId, SessionId
from holdfast.engine.boundaries import Boundaries
from holdfast.faces.http import answers, cursors
from holdfast.faces.http import descriptions as d
from holdfast.faces.http.api import Api, Cursor, Limit, Sid
from holdfast.faces.http.requests import CommitMemory, FactPatch
from holdfast.faces.http.routing import Router

Fid = Annotated[str, Path(max_length=200, description="Id of a fact.")]


def routes(api: Api) -> Router:
    router = Router("memory", "/api")
    facts = api.engine.facts

    @router.get("/memory", response_model=d.Facts)
    async def list_facts(
        query: Annotated[str | None, Query(max_length=1000, description="Words to search for.")] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        """What the built-in memory knows, the last changed first; with `query`, what has all its words."""
        before = None if cursor is None else int(cursors.read(cursor, int)[0])
        found = await facts.list(text=query or "", limit=limit + 1, before=before)
        more = found[limit - 1].n if len(found) > limit else None
        items = [answers.fact(fact) for fact in found[:limit]]
        return JSONResponse({"items": items, "next": None if more is None else cursors.write(more)})

    @router.get("/memory/providers", response_model=d.MemoryProviders)
    async def list_providers() -> Response:
        """Who can remember, who does by default, and what is wrong with whom."""
        items = [] if api.engine.boundaries is None else await api.engine.boundaries.health()
        return JSONResponse({"items": [{"name": n, "default": b, "problem": p} for n, b, p in items]})

    @router.patch("/memory/{fid}", response_model=d.FactOut)
    async def change_fact(fid: Fid, body: FactPatch) -> Response:
        """Say it better, or pin it: pinned facts are always in front of the model."""
        named = {name: getattr(body, name) for name in body.model_fields_set}
        return JSONResponse(answers.fact(await facts.change(FactId(fid), **named)))

    @router.delete("/memory/{fid}", status_code=204)
    async def delete_fact(fid: Fid) -> Response:
        await facts.delete(FactId(fid))
        return Response(status_code=204)

    def boundaries() -> Boundaries:
        if api.engine.boundaries is None:
            raise NotAllowed("remember", "this server has no memory")
        return api.engine.boundaries

    @router.get("/sessions/{sid}/memory", response_model=d.MemoryOfSession)
    async def memory_of_session(sid: Sid) -> Response:
        """How many of its turns are remembered, and why not more."""
        await api.service.session(SessionId(sid))
        return JSONResponse(answers.memory(await boundaries().status(SessionId(sid))))

    @router.post("/sessions/{sid}/memory/commit", response_model=d.MemoryCommitted)
    async def commit_memory(sid: Sid, body: CommitMemory | None = None) -> Response:
        """Remember now what was said. `provider` takes over once the turns of an earlier one are told to that."""
        await api.service.session(SessionId(sid))
        outcome = await boundaries().commit(SessionId(sid), None if body is None else body.provider)
        status = answers.memory(await boundaries().status(SessionId(sid)))
        nothing = not outcome.committed and outcome.error is None and not outcome.under_way
        return JSONResponse({**status, "committed": outcome.committed, "nothing_new": nothing})

    return router
