"""Contents of attached files in PostgreSQL, by digest, so that every node can serve what any node was sent.

A content is gathered in a temporary file of the node and becomes visible whole. It is not deleted while a row names it,
nor soon after it was saved: on another node its row may be about to be written.
"""

import hashlib
import io
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO, BinaryIO, Final, cast

import psycopg

from holdfast.core.errors import NotFound, StorageError
from holdfast.ports import Incoming
from holdfast.storage import disk
from holdfast.storage.postgres import errors
from holdfast.storage.postgres.link import Place, TimedConnection

_CHUNK: Final = 256 * 1024
_DROP: Final = """
    DELETE FROM contents WHERE saved_at < now() - make_interval(secs => %s)
    AND NOT EXISTS (SELECT 1 FROM files WHERE files.sha256 = contents.sha256)
"""


class PostgresFiles:
    def __init__(self, place: Place, spool: Path, *, grace: float = 900.0) -> None:
        """`spool`: the directory for what is being received. `grace`: seconds for which a content without a row is
        kept."""
        self._place = place
        self._spool = spool
        self._grace = grace

    def begin(self) -> Incoming:
        try:
            return PostgresIncoming(self._place, cast(BinaryIO, tempfile.TemporaryFile(dir=self._spool)))
        except OSError as error:
            raise disk.from_os(error, f"{self._spool} cannot be used") from error

    def open(self, sha256: str) -> BinaryIO:
        try:
            db = self._place.connect()
            row = db.execute("SELECT size FROM contents WHERE sha256 = %s", (sha256,)).fetchone()
        except psycopg.Error as error:
            raise errors.from_postgres(error) from error
        if row is None:
            db.close()
            raise NotFound("file content", sha256)
        return cast(BinaryIO, io.BufferedReader(_Content(db, sha256, int(row[0])), _CHUNK))

    def delete(self, sha256: str) -> None:
        """This one and whatever else nobody names any more: one that was spared the last time is not forgotten."""
        try:
            with self._place.connect() as db:
                db.execute(_DROP, (self._grace,))
        except psycopg.Error as error:
            raise errors.from_postgres(error) from error


class PostgresIncoming:
    def __init__(self, place: Place, spool: IO[bytes]) -> None:
        self._place = place
        self._spool = spool
        self._hash = hashlib.sha256()
        self._size = 0

    def __enter__(self) -> "Incoming":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._spool.close()

    def write(self, chunk: bytes) -> None:
        try:
            self._spool.write(chunk)
        except OSError as error:
            raise disk.from_os(error, "A file that is being sent cannot be kept") from error
        self._hash.update(chunk)
        self._size += len(chunk)

    def finish(self) -> tuple[str, int]:
        digest = self._hash.hexdigest()
        try:
            self._spool.seek(0)
            with self._place.connect() as db, db.transaction():
                self._save(db, digest)
        except psycopg.Error as error:
            raise errors.from_postgres(error) from error
        except OSError as error:
            raise disk.from_os(error, "A file that was sent cannot be read back") from error
        return digest, self._size

    def _save(self, db: TimedConnection, digest: str) -> None:
        new = db.execute(
            "INSERT INTO contents (sha256, size) VALUES (%s, %s) ON CONFLICT (sha256) DO UPDATE SET saved_at = now() "
            "RETURNING (xmax = 0)",
            (digest, self._size),
        ).fetchone()
        assert new is not None
        if not new[0]:
            return
        n = 0
        while chunk := self._spool.read(_CHUNK):
            db.execute("INSERT INTO chunks VALUES (%s, %s, %b)", (digest, n, chunk))
            n += 1


class _Content(io.RawIOBase):
    """Read chunk by chunk; it keeps a connection while it is open."""

    def __init__(self, db: TimedConnection, sha256: str, size: int) -> None:
        self._db = db
        self._sha256 = sha256
        self._size = size
        self._at = 0
        self._held: tuple[int, bytes] = (-1, b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self._at >= self._size:
            return 0
        n, within = divmod(self._at, _CHUNK)
        piece = self._chunk(n)[within : within + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def _chunk(self, n: int) -> bytes:
        if self._held[0] != n:
            sql = "SELECT data FROM chunks WHERE sha256 = %s AND n = %s"
            try:
                row = self._db.execute(sql, (self._sha256, n), binary=True).fetchone()
            except psycopg.Error as error:
                raise errors.from_postgres(error) from error
            if row is None:
                raise StorageError(f"A piece of the content {self._sha256} is missing.")
            self._held = (n, bytes(row[0]))
        return self._held[1]

    def close(self) -> None:
        if not self.closed:
            self._db.close()
        super().close()
