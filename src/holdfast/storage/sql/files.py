"""SQL for attached files and the queue of journals to erase."""

from collections.abc import Iterable, Sequence
from dataclasses import astuple
from itertools import starmap

from holdfast.core.ids import FileId, RunId
from holdfast.ports.store import StoredFile
from holdfast.storage.sql import row_codec as rows
from holdfast.storage.sql.statements import Statements


class SqlFileRows(Statements):
    def file(self, fid: FileId) -> StoredFile | None:
        row = self._one(rows.FILES.select_by_id, fid)
        return None if row is None else StoredFile(*row)

    def put_file(self, file: StoredFile) -> None:
        self._execute(rows.FILES.upsert, *astuple(file))

    def orphan_files(self, created_before: float, limit: int) -> Sequence[StoredFile]:
        where = f"created_at < ? AND NOT EXISTS ({self._db.file_is_named})"
        sql = f"{rows.FILES.select} WHERE {where} ORDER BY created_at, id LIMIT ?"
        return list(starmap(StoredFile, self._all(sql, created_before, limit)))

    def drop_file(self, fid: FileId) -> None:
        self._execute("DELETE FROM files WHERE id = ?", fid)

    def digest_in_use(self, sha256: str) -> bool:
        return self._one("SELECT 1 FROM files WHERE sha256 = ? LIMIT 1", sha256) is not None

    def queue_purges(self, rids: Iterable[RunId]) -> None:
        # SQLite cannot parse ON CONFLICT behind a SELECT without a WHERE.
        sql = f"INSERT INTO purges {self._db.list_rows} WHERE true ON CONFLICT DO NOTHING"
        self._execute(sql, self._db.list_parameter(list(rids)))

    def queued_purges(self, limit: int) -> Sequence[RunId]:
        return [rid for (rid,) in self._all("SELECT run_id FROM purges ORDER BY run_id LIMIT ?", limit)]

    def drop_purges(self, rids: Iterable[RunId]) -> None:
        self._execute(f"DELETE FROM purges WHERE {self._db.in_list('run_id')}", self._db.list_parameter(list(rids)))
