"""SQL for projects and their files."""

from collections.abc import Collection, Mapping, Sequence

from holdfast.core.ids import FileId, OwnerId, ProjectId
from holdfast.core.project import Project
from holdfast.ports.store import ProjectQuery, StoredFile
from holdfast.storage.sql.statements import Statements
from holdfast.storage.sql.tables import FILES, PROJECT_FILES, PROJECTS


class SqlProjectRows(Statements):
    def project(self, pid: ProjectId) -> Project | None:
        return self._select_one(PROJECTS, "WHERE id = ?", pid)

    def project_named(self, owner: OwnerId, name: str) -> Project | None:
        found = self._select_one(PROJECTS, "WHERE owner = ? AND name = ?", owner, name)
        return found or self._select_one(PROJECTS, "WHERE owner = ? AND former_name = ? LIMIT 1", owner, name)

    def projects(self, query: ProjectQuery) -> Sequence[Project]:
        where = "owner = ? AND archived = ? AND removal IS NULL AND (name, id) > (?, ?)"
        rest = f"WHERE {where} ORDER BY name, id LIMIT ?"
        return self._select(PROJECTS, rest, query.owner, query.archived, *(query.after or ("", "")), query.limit)

    def count_projects(self, owner: OwnerId) -> int:
        ((count,),) = self._db.fetchall("SELECT count(*) FROM projects WHERE owner = ?", owner)
        return int(count)

    def count_chats(self, owner: OwnerId, names: Collection[str]) -> Mapping[str, int]:
        where = f"owner = ? AND archived = ? AND deleted_at IS NULL AND project {self._db.in_list}"
        sql = f"SELECT project, count(*) FROM sessions WHERE {where} AND project IS NOT NULL GROUP BY project"
        return dict(self._db.fetchall(sql, owner, False, self._db.list_parameter(names)))

    def unfinished_projects(self, limit: int) -> Sequence[Project]:
        rest = "WHERE former_name IS NOT NULL OR removal IS NOT NULL ORDER BY id LIMIT ?"
        return self._select(PROJECTS, rest, limit)

    def add_project(self, project: Project) -> None:
        sql = f"INSERT INTO projects ({PROJECTS.columns}) VALUES ({PROJECTS.placeholders}) ON CONFLICT DO NOTHING"
        self._db.execute(sql, *PROJECTS.encode(project))

    def put_project(self, project: Project) -> None:
        self._db.execute(PROJECTS.upsert, *PROJECTS.encode(project))

    def drop_project(self, pid: ProjectId) -> None:
        self._db.execute("DELETE FROM project_files WHERE project_id = ?", pid)
        self._db.execute("DELETE FROM projects WHERE id = ?", pid)

    def project_files(self, pid: ProjectId) -> Sequence[StoredFile]:
        columns = ", ".join(f"files.{name}" for name in FILES.names)
        sql = f"""
            SELECT {columns} FROM project_files JOIN files ON files.id = project_files.file_id
            WHERE project_id = ? ORDER BY added_at, file_id
        """
        return list(map(FILES.decode, self._db.fetchall(sql, pid)))

    def add_project_file(self, pid: ProjectId, fid: FileId) -> None:
        sql = f"INSERT INTO project_files VALUES ({PROJECT_FILES.placeholders}) ON CONFLICT DO NOTHING"
        self._db.execute(sql, pid, fid, self._db.now)

    def drop_project_file(self, pid: ProjectId, fid: FileId) -> None:
        self._db.execute("DELETE FROM project_files WHERE project_id = ? AND file_id = ?", pid, fid)
