"""SQL for attached files and the queue of journals to erase."""

from collections.abc import Iterable, Sequence
from typing import Final

from holdfast.core.ids import FileId, RunId
from holdfast.ports.store import StoredFile
from holdfast.storage.sql import tables
from holdfast.storage.sql.statements import Statements

_IS_SHARED: Final = "SELECT 1 FROM shares WHERE shares.file_id = files.id"


class SqlFileRows(Statements):
    def file(self, fid: FileId) -> StoredFile | None:
        return self._select_one(tables.FILES, "WHERE id = ?", fid)

    def put_file(self, file: StoredFile) -> None:
        self._db.execute(tables.FILES.upsert, *tables.FILES.encode(file))

    def orphan_files(self, created_before: float, limit: int) -> Sequence[StoredFile]:
        in_project = "SELECT 1 FROM project_files WHERE file_id = files.id"
        in_persona = "SELECT 1 FROM personas WHERE picture = files.id"
        uses = (self._db.file_is_named, _IS_SHARED, in_project, in_persona)
        unused = " AND ".join(f"NOT EXISTS ({use})" for use in uses)
        rest = f"WHERE created_at < ? AND {unused} ORDER BY created_at, id LIMIT ?"
        return self._select(tables.FILES, rest, created_before, limit)

    def drop_file(self, fid: FileId) -> None:
        self._db.execute("DELETE FROM files WHERE id = ?", fid)

    def digest_in_use(self, sha256: str) -> bool:
        return bool(self._db.fetchall("SELECT 1 FROM files WHERE sha256 = ? LIMIT 1", sha256))

    def queue_purges(self, rids: Iterable[RunId]) -> None:
        # SQLite cannot parse ON CONFLICT behind a SELECT without a WHERE.
        sql = f"INSERT INTO purges {self._db.list_rows} WHERE true ON CONFLICT DO NOTHING"
        self._db.execute(sql, self._db.list_parameter(list(rids)))

    def queued_purges(self, limit: int) -> Sequence[RunId]:
        return [rid for (rid,) in self._db.fetchall("SELECT run_id FROM purges ORDER BY run_id LIMIT ?", limit)]

    def drop_purges(self, rids: Iterable[RunId]) -> None:
        self._db.execute(f"DELETE FROM purges WHERE run_id {self._db.in_list}", self._db.list_parameter(list(rids)))
