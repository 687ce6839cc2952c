"""Projects: create, list, change, delete, and their files. What a turn is given of its project:
`engine.transactions.projects`; how chats follow a project that was renamed or deleted:
`engine.transactions.project_moves`, driven by `ProjectMoves` here, at once and again by the sweeper after a crash."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from holdfast.core import chat_settings
from holdfast.core.ids import LOCAL, FileId, OwnerId, ProjectId
from holdfast.core.parts import Json, value_size
from holdfast.core.project import Project, ProjectRemoval
from holdfast.core.session import Session
from holdfast.engine.node_context import NodeContext
from holdfast.engine.readiness import require_space
from holdfast.engine.session_memory import BOUNDARY
from holdfast.engine.supervisor import Supervisor
from holdfast.engine.transactions import personas, project_moves, projects
from holdfast.engine.transactions.projects import ProjectView
from holdfast.ports.store import ProjectQuery, Tx

_CHATS: Final = 100  # That one transaction moves or deletes
_UNFINISHED: Final = 100


@dataclass(frozen=True, slots=True, eq=False)
class ProjectMoves:
    _node: NodeContext
    _supervisor: Supervisor

    async def finish(self, pid: ProjectId) -> None:
        """Move or delete the project's chats until none is left."""
        is_done = False
        while not is_done:
            moved = await self._node.transact(partial(project_moves.advance, pid=pid, limit=_CHATS))
            await self._supervisor.stop_requested(moved.stop)
            is_done = moved.is_done
        self._node.hub.signals.fire(BOUNDARY)  # deleted chats are committed to memory

    async def resume(self) -> None:
        """Finish what a process that ended, or a client that left, has begun."""
        for project in await self._node.store.read(lambda tx: tx.unfinished_projects(_UNFINISHED)):
            await self.finish(project.id)


@dataclass(frozen=True, slots=True, eq=False)
class Projects:
    _node: NodeContext
    _moves: ProjectMoves

    async def list(self, query: ProjectQuery) -> Sequence[ProjectView]:
        """Without their files."""

        def work(tx: Tx) -> Sequence[ProjectView]:
            found = tx.projects(query)
            counts = tx.count_chats(query.owner, [project.name for project in found])
            return [ProjectView(project, counts.get(project.name, 0)) for project in found]

        return await self._node.store.read(work)

    async def get(self, pid: str, owner: OwnerId = LOCAL) -> ProjectView:
        """The project with this id or name."""
        return await self._node.store.read(lambda tx: projects.view(tx, projects.get(tx, pid, owner)))

    async def get_named(self, name: str, owner: OwnerId = LOCAL) -> ProjectView:
        return await self._node.store.read(lambda tx: projects.view(tx, projects.get_named(tx, name, owner)))

    async def settings_of(self, session: Session) -> Json:
        """What a turn of the session would record of its project and its persona now."""

        def work(tx: Tx) -> Json:
            project, _ = projects.of_turn(tx, session, session.agent)
            return {chat_settings.PROJECT: project, chat_settings.PERSONA: personas.of_turn(tx, session)}

        return await self._node.store.read(work)

    async def create(self, name: str, owner: OwnerId = LOCAL, **fields: Any) -> ProjectView:
        await require_space(self._node, value_size(fields))
        given = projects.with_settings(fields, None)
        project = Project(ProjectId(self._node.ids.new("prj")), owner, name, 0.0, 0.0, **given)
        return await self._node.transact(lambda tx: projects.view(tx, projects.create(tx, project)), wake_queue=False)

    async def add_imported(
        self, name: str, fields: Mapping[str, Any], files: Sequence[FileId], owner: OwnerId = LOCAL
    ) -> bool:
        """Create a project with its files, unless there is one of this name or there are too many. Returns whether it
        was created."""
        project = Project(ProjectId(self._node.ids.new("prj")), owner, name, 0.0, 0.0, **fields)
        return await self._node.transact(lambda tx: projects.add_imported(tx, project, files), wake_queue=False)

    async def update(
        self, pid: str, fields: dict[str, Any], owner: OwnerId = LOCAL, if_version: int | None = None
    ) -> ProjectView:
        """Change the given fields. A new name counts at once; this returns when all chats have it too."""
        await require_space(self._node, value_size(fields))
        amend = partial(projects.amend, pid=pid, owner=owner, if_version=if_version, fields=fields)
        project = await self._node.transact(amend, wake_queue=False)
        if project.former_name is not None:
            await self._moves.finish(project.id)
        return await self.get(project.id, owner)

    async def delete(self, pid: str, removal: ProjectRemoval, owner: OwnerId = LOCAL) -> None:
        """Delete the project, and its chats or only their project. It is gone at once; this returns when they are."""
        project = await self._node.transact(lambda tx: project_moves.begin_removal(tx, pid, owner, removal))
        await self._moves.finish(project.id)

    async def add_file(self, pid: str, fid: FileId, owner: OwnerId = LOCAL) -> ProjectView:
        return await self._change_files(projects.add_file, pid, fid, owner)

    async def drop_file(self, pid: str, fid: FileId, owner: OwnerId = LOCAL) -> ProjectView:
        """The file itself is deleted later, unless a message refers to it."""
        return await self._change_files(projects.drop_file, pid, fid, owner)

    async def _change_files(
        self, change: Callable[[Tx, str, OwnerId, FileId], Project], pid: str, fid: FileId, owner: OwnerId
    ) -> ProjectView:
        def work(tx: Tx) -> ProjectView:
            return projects.view(tx, change(tx, pid, owner, fid))

        return await self._node.transact(work, wake_queue=False)
