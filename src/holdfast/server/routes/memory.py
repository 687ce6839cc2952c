"""Memory: facts to add, read, change and delete, providers, and the memory status of a session. What each does:
`engine.session_memory`, `engine.fact_store`."""

from dataclasses import asdict
from typing import Annotated

from pydantic import Field

from holdfast.core.errors import NotAllowedError
from holdfast.core.ids import LOCAL, FactId, OwnerId
from holdfast.core.memory_scope import owner_of
from holdfast.engine.session_memory import SessionMemory
from holdfast.server.context import ApiContext
from holdfast.server.parameters import Cursor, Limit, Number, SessionIdPath, read_cursor, write_cursor
from holdfast.server.routing import Router
from holdfast.server.schemas import memory as s

router = Router("memory", "/api")

FactIdPath = Annotated[FactId, Field(max_length=200, description="Fact id.")]


def _session_memory(api: ApiContext) -> SessionMemory:
    if api.engine.session_memory is None:
        raise NotAllowedError("use memory", "this server has no memory")
    return api.engine.session_memory


async def _owner(api: ApiContext, project: str | None) -> OwnerId:
    """Whom facts belong to: of a project's own memory, or (None) of the memory of all chats."""
    return owner_of(LOCAL, None if project is None else (await api.engine.projects.get(project)).project.id)


@router.get("/memory")
async def list_facts(
    api: ApiContext,
    query: Annotated[str | None, Field(max_length=1000, description="Words to search for.")] = None,
    project: Annotated[str | None, Field(max_length=200, description="A project, for its own memory.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> s.FactListResponse:
    """List the facts of the built-in memory, most recently changed first; with `query`, those with all its words."""
    (before,) = read_cursor(cursor, tuple[Number]) or (None,)
    owner = await _owner(api, project)
    found = await api.engine.memory_facts.list(owner, text=query or "", limit=limit + 1, before=before)
    return s.FactListResponse(
        items=[s.FactResponse.model_validate(fact) for fact in found[:limit]],
        next=write_cursor(found[limit - 1].n) if len(found) > limit else None,
        confirm=api.confirm_memories,
    )


@router.post("/memory", status=201)
async def add_fact(api: ApiContext, body: s.CreateFactRequest) -> s.FactResponse:
    """Add a fact to the built-in memory by hand. It is confirmed; adding the same text again changes nothing."""
    _session_memory(api)
    owner = await _owner(api, body.project)
    return s.FactResponse.model_validate(await api.engine.memory_facts.add(body.text, owner))


@router.get("/memory/providers")
async def list_providers(api: ApiContext) -> s.MemoryProviderListResponse:
    """List the memory providers, which one is the default, and what is wrong with those that do not work."""
    found = [] if api.engine.session_memory is None else await api.engine.session_memory.health()
    return s.MemoryProviderListResponse(
        items=[
            s.MemoryProviderResponse(name=name, default=default, problem=problem) for name, default, problem in found
        ]
    )


@router.patch("/memory/{fid}")
async def change_fact(api: ApiContext, fid: FactIdPath, body: s.UpdateFactRequest) -> s.FactResponse:
    """Change the text of a fact, confirm it, or pin it: the model always sees pinned facts."""
    fields = {name: getattr(body, name) for name in body.model_fields_set}
    return s.FactResponse.model_validate(await api.engine.memory_facts.change(fid, **fields))


@router.delete("/memory/{fid}", status=204)
async def delete_fact(api: ApiContext, fid: FactIdPath) -> None:
    await api.engine.memory_facts.delete(fid)


@router.get("/sessions/{sid}/memory")
async def read_memory_status(api: ApiContext, sid: SessionIdPath) -> s.MemoryStatusResponse:
    """How many turns of the session are committed to memory, and the last error."""
    await api.engine.sessions.get(sid)
    return s.MemoryStatusResponse.model_validate(await _session_memory(api).status(sid))


@router.post("/sessions/{sid}/memory/commit")
async def commit_memory(
    api: ApiContext, sid: SessionIdPath, body: s.CommitMemoryRequest | None = None
) -> s.MemoryCommitResponse:
    """Commit the session to memory now. `provider` takes over after the earlier provider has received its turns."""
    await api.engine.sessions.get(sid)
    memory = _session_memory(api)
    outcome = await memory.commit(sid, None if body is None else body.provider)
    status = asdict(await memory.status(sid))
    nothing_new = not outcome.committed and outcome.error is None and not outcome.under_way
    return s.MemoryCommitResponse(**status, committed=outcome.committed, nothing_new=nothing_new)
