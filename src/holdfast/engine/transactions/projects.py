"""Projects as rows: how a name becomes a project, what a new turn is given of it, and changes of a project. Moving its
chats when it is renamed or deleted: `engine.transactions.project_moves`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast.core import chat_settings
from holdfast.core.errors import (
    InvalidInputError,
    NotAllowedError,
    NotFoundError,
    QuotaExceededError,
    VersionMismatchError,
)
from holdfast.core.export_format import derived_id
from holdfast.core.ids import FileId, OwnerId, ProjectId, SessionId
from holdfast.core.parts import Json
from holdfast.core.project import MAX_FILES, MAX_FILES_SIZE, MAX_PROJECTS, Project, as_settings
from holdfast.core.session import Session
from holdfast.ports.store import Change, StoredFile, Tx

NO_SESSION: Final = SessionId("")  # A change of a project belongs to no session


@dataclass(frozen=True, slots=True)
class ProjectView:
    project: Project
    chats: int  # That are not archived
    files: Sequence[StoredFile] = ()


def name_for(tx: Tx, owner: OwnerId, name: str | None) -> str | None:
    """The project that a session with this name belongs to: a new project if there is none with the name, the renamed
    one if it had the name a moment ago, and none if it is being deleted."""
    if name and tx.project_named(owner, name) is None:
        _check_new(tx, owner, name, "project")
    return adopted_name(tx, owner, name)


def adopted_name(tx: Tx, owner: OwnerId, name: str | None) -> str | None:
    """`name_for` of a session from elsewhere, which is stored whatever the number of projects. A blank name is none."""
    if not name or not name.strip():
        return None
    project = tx.project_named(owner, name)
    if project is None:
        pid = ProjectId(derived_id("prj", owner, name, repr(tx.now)))
        tx.add_project(Project(pid, owner, name, tx.now, tx.now))
        _changed(tx, owner)
        return name
    return None if project.removal is not None else project.name


def _check_new(tx: Tx, owner: OwnerId, name: str, field: str) -> None:
    """InvalidInputError, of `field`: the name is blank. QuotaExceededError: there are too many projects."""
    if not name.strip():
        raise InvalidInputError(field, "must not be empty")
    if tx.count_projects(owner) >= MAX_PROJECTS:
        raise QuotaExceededError("projects", MAX_PROJECTS, "Delete some first.")


def require_name(tx: Tx, owner: OwnerId, name: str) -> str:
    """`name_for`. NotAllowedError: the project is being deleted."""
    found = name_for(tx, owner, name)
    if found is None:
        raise NotAllowedError("use the project", f"{name!r} is being deleted; try again in a moment")
    return found


def find(tx: Tx, session: Session) -> Project | None:
    """The session's project, unless it is being deleted or is only a name."""
    project = tx.project_named(session.owner, session.project) if session.project else None
    return None if project is None or project.removal is not None else project


def of_turn(tx: Tx, session: Session, agent: str) -> tuple[Json, str | None]:
    """What a new run records of its project, and the project's model if it is one for this agent. A client of an API
    gets what it asked for."""
    project = None if session.is_from_api else find(tx, session)
    if project is None:
        return None, None
    settings = as_settings(project, [file.part() for file in tx.project_files(project.id)])
    return settings, project.model if agent == (project.agent or "chat") else None


def with_agent(tx: Tx, session: Session, given: Mapping[str, Any]) -> Session:
    """A new session, which has its project's agent unless one is `given`. Moving it later does not change its agent,
    which may have a state of its own for the session."""
    project = find(tx, session)
    if project is None or project.agent is None or "agent" in given:
        return session
    return replace(session, agent=project.agent)


def get(tx: Tx, pid: str, owner: OwnerId, if_version: int | None = None) -> Project:
    """The project with this id or name."""
    project = tx.project(ProjectId(pid))
    if project is None or project.owner != owner or project.removal is not None:
        project = get_named(tx, pid, owner)
    if if_version is not None and project.version != if_version:
        raise VersionMismatchError(if_version, project.version)
    return project


def get_named(tx: Tx, name: str, owner: OwnerId) -> Project:
    project = tx.project_named(owner, name)
    if project is None or project.removal is not None:
        raise NotFoundError("project", name)
    return project


def view(tx: Tx, project: Project) -> ProjectView:
    chats = tx.count_chats(project.owner, [project.name]).get(project.name, 0)
    return ProjectView(project, chats, tx.project_files(project.id))


def with_settings(fields: Mapping[str, Any], settings: Json) -> dict[str, Any]:
    """The fields of a project, with those that are settings in its settings."""
    return chat_settings.with_settings(fields, settings, chat_settings.SESSION_FIELDS)


def create(tx: Tx, project: Project) -> Project:
    _check_new(tx, project.owner, project.name, "name")
    _check_free(tx, project.owner, project.name)
    project = replace(project, created_at=tx.now, updated_at=tx.now)
    tx.put_project(project)
    _changed(tx, project.owner)
    return project


def add_imported(tx: Tx, project: Project, files: Sequence[FileId]) -> bool:
    """Create a project with its files, unless there is one of its name or there are too many. Returns whether it was
    created."""
    if tx.project_named(project.owner, project.name) is not None or tx.count_projects(project.owner) >= MAX_PROJECTS:
        return False
    create(tx, project)
    for fid in files[:MAX_FILES]:
        add_file(tx, project.id, project.owner, fid)
    return True


def amend(tx: Tx, pid: str, owner: OwnerId, if_version: int | None, fields: Mapping[str, Any]) -> Project:
    """Change a project. A new name counts at once; its chats are moved to it by `project_moves`."""
    project = get(tx, pid, owner, if_version)
    fields = with_settings(fields, project.settings)
    name = fields.get("name", project.name)
    if name != project.name:
        if project.former_name is not None:
            raise NotAllowedError("rename the project", "its last renaming is not finished; try again in a moment")
        if not name.strip():
            raise InvalidInputError("name", "must not be empty")
        _check_free(tx, owner, name)
        fields = {**fields, "former_name": project.name}
    project = replace(project, **fields, version=project.version + 1, updated_at=tx.now)
    tx.put_project(project)
    _changed(tx, owner)
    return project


def _check_free(tx: Tx, owner: OwnerId, name: str) -> None:
    other = tx.project_named(owner, name)
    if other is not None:
        why = "that project is being deleted" if other.removal is not None else "another project has it"
        raise NotAllowedError("use the name", f"{why}; choose another one")


def add_file(tx: Tx, pid: str, owner: OwnerId, fid: FileId) -> Project:
    project, file = get(tx, pid, owner), tx.file(fid)
    if file is None or file.owner != owner:
        raise NotFoundError("file", fid)
    others = tx.project_files(project.id)
    if any(other.id == fid for other in others):
        return project
    if len(others) >= MAX_FILES:
        raise QuotaExceededError("files in this project", MAX_FILES, "Remove some first.")
    if sum(other.size for other in others) + file.size > MAX_FILES_SIZE:
        problem = f"would make the project's files larger than {MAX_FILES_SIZE} bytes together; remove some first"
        raise InvalidInputError("file_id", problem)
    tx.add_project_file(project.id, fid)
    return _touch(tx, project)


def drop_file(tx: Tx, pid: str, owner: OwnerId, fid: FileId) -> Project:
    project = get(tx, pid, owner)
    tx.drop_project_file(project.id, fid)
    return _touch(tx, project)


def _touch(tx: Tx, project: Project) -> Project:
    """In a cluster, of two changes of one project's files at once one is retried, so that the limits hold."""
    project = replace(project, version=project.version + 1, updated_at=tx.now)
    tx.put_project(project)
    _changed(tx, project.owner)
    return project


def _changed(tx: Tx, owner: OwnerId) -> None:
    tx.add_change(Change("project.changed", owner, NO_SESSION))
