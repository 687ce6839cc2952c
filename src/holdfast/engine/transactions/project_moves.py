"""Chats that follow a project which was renamed or deleted. The first transaction changes the project, which counts at
once; the chats follow in small transactions, however many there are. A crash in between leaves the project's row with
what is still to be done, and any node goes on with it."""

from dataclasses import dataclass, replace
from typing import Final

from holdfast.core.ids import OwnerId, ProjectId
from holdfast.core.memory_scope import owner_of
from holdfast.core.project import Project, ProjectRemoval
from holdfast.core.run import Run
from holdfast.core.session import Session
from holdfast.engine.transactions import projects, session_edits
from holdfast.engine.transactions.row_access import put_session
from holdfast.ports.store import Change, SessionQuery, Tx

_FACTS: Final = 500  # Of a deleted project's own memory that one transaction erases


@dataclass(frozen=True, slots=True)
class ChatsMoved:
    """What one transaction has done, with the runs whose cancel it requested."""

    is_done: bool
    stop: tuple[Run, ...] = ()


def begin_removal(tx: Tx, pid: str, owner: OwnerId, removal: ProjectRemoval) -> Project:
    """Hide the project. It is erased once its chats have left it."""
    project = replace(projects.get(tx, pid, owner), removal=removal)
    tx.put_project(project)
    tx.add_change(Change("project.changed", owner, projects.NO_SESSION))
    return project


def advance(tx: Tx, pid: ProjectId, limit: int) -> ChatsMoved:
    """Move or delete up to `limit` chats of a project; then finish. Safe to repeat, and to do on two nodes at once."""
    project = tx.project(pid)
    if project is None:
        return ChatsMoved(is_done=True)
    if project.former_name is not None:
        found = _chats(tx, project, project.former_name, limit)
        for session in found:
            put_session(tx, replace(session, project=project.name))
        if not found:
            tx.put_project(replace(project, former_name=None))
        return ChatsMoved(is_done=not found and project.removal is None)
    if project.removal is None:
        return ChatsMoved(is_done=True)
    stop: tuple[Run, ...] = ()
    found = _chats(tx, project, project.name, limit)
    for session in found:
        if project.removal == "keep_chats":
            put_session(tx, replace(session, project=None))
        else:
            stop += session_edits.delete(tx, session.id, session.owner, None).stop
    return ChatsMoved(is_done=not found and _erase(tx, project), stop=stop)


def _chats(tx: Tx, project: Project, name: str, limit: int) -> list[Session]:
    found = [*tx.sessions(SessionQuery(project.owner, archived=False, project=name, limit=limit))]
    return [*found, *tx.sessions(SessionQuery(project.owner, archived=True, project=name, limit=limit - len(found)))]


def _erase(tx: Tx, project: Project) -> bool:
    """Erase a project without chats, after the facts of its own memory."""
    facts = tx.facts(owner_of(project.owner, project.id), _FACTS)
    for fact in facts:
        tx.drop_fact(fact.id)
    if facts:
        return False
    tx.drop_project(project.id)
    tx.add_change(Change("project.changed", project.owner, projects.NO_SESSION))
    return True
