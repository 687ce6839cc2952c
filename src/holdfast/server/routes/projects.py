"""Projects: create, list, read, change, delete, and their files. What they do: `engine.projects`."""

from typing import Annotated, Any

from pydantic import Field

from holdfast.core.errors import InvalidInputError
from holdfast.core.ids import LOCAL, FileId, ProjectId
from holdfast.ports.store import ProjectQuery
from holdfast.server import parameters as p
from holdfast.server.context import ApiContext
from holdfast.server.routing import Router
from holdfast.server.schemas import projects as s

router = Router("projects", "/api/projects")

ProjectPath = Annotated[str, Field(max_length=200, description="The id of a project, or its name.")]


@router.get("")
async def list_projects(
    api: ApiContext, archived: bool = False, limit: p.Limit = 50, cursor: p.Cursor = None
) -> s.ProjectListResponse:
    """List projects by name, without their files."""
    after = p.read_cursor(cursor, tuple[str, ProjectId])
    views = await api.engine.projects.list(ProjectQuery(LOCAL, archived, limit + 1, after))
    last = views[limit - 1].project if len(views) > limit else None
    return s.ProjectListResponse(
        items=[s.ProjectResponse.from_view(view) for view in views[:limit]],
        next=None if last is None else p.write_cursor(last.name, last.id),
    )


@router.post("", status=201)
async def create_project(api: ApiContext, body: s.CreateProjectRequest) -> s.ProjectResponse:
    """Create a project. One is also created when a session is given the name of a project that does not exist."""
    fields = {name: value for name, value in body.model_dump().items() if value is not None}
    return s.ProjectResponse.from_view(await api.engine.projects.create(**fields))


@router.get("/{pid}")
async def read_project(api: ApiContext, pid: ProjectPath) -> s.ProjectResponse:
    return s.ProjectResponse.from_view(await api.engine.projects.get(pid))


@router.patch("/{pid}")
async def change_project(
    api: ApiContext, pid: ProjectPath, body: s.UpdateProjectRequest, if_match: p.IfMatch = None
) -> s.ProjectResponse:
    """Change a project. What its chats are given of it counts from the next message on. Archiving it hides its chats in
    the list of all sessions."""
    fields: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    if "name" in fields and not fields["name"].strip():
        raise InvalidInputError("name", "must not be empty")
    changed = await api.engine.projects.update(pid, fields, if_version=p.expected_version(if_match))
    return s.ProjectResponse.from_view(changed)


@router.delete("/{pid}", status=204)
async def delete_project(
    api: ApiContext,
    pid: ProjectPath,
    delete_chats: Annotated[bool, Field(description="Delete its chats too; else they have no project.")] = False,
) -> None:
    """Delete a project with its own memory. Its files are deleted unless a message refers to them."""
    await api.engine.projects.delete(pid, "delete_chats" if delete_chats else "keep_chats")


@router.post("/{pid}/files")
async def add_file(api: ApiContext, pid: ProjectPath, body: s.AddProjectFileRequest) -> s.ProjectResponse:
    """Add an uploaded file: up to 40 files, 100 MB together. Turns that are sent from now on can read it."""
    return s.ProjectResponse.from_view(await api.engine.projects.add_file(pid, FileId(body.file_id)))


@router.delete("/{pid}/files/{fid}")
async def remove_file(api: ApiContext, pid: ProjectPath, fid: p.IdPath) -> s.ProjectResponse:
    """Remove a file from the project. It is deleted unless a message refers to it."""
    return s.ProjectResponse.from_view(await api.engine.projects.drop_file(pid, FileId(fid)))
