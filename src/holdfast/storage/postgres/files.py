"""Contents of attached files in PostgreSQL, by digest, so that every node can serve every upload.

A content is collected in a temporary file of the node and becomes visible as a whole. It is deleted neither while a row
has its digest nor soon after it was saved: another node may be about to write its row.

It is read in portions, each through one of a few connections, so that a slow download holds none.
"""

import hashlib
import io
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import BoundedSemaphore
from typing import IO, BinaryIO, Final, cast

from holdfast.core.errors import NotFoundError, StorageError, StorageUnavailableError
from holdfast.ports.files import IncomingFile
from holdfast.storage import filesystem
from holdfast.storage.postgres.connection import PostgresConfig, TimedConnection, translated

Connected = Callable[[], AbstractContextManager[TimedConnection]]
_CHUNK: Final = 256 * 1024
_CHUNKS: Final = 4  # The number of chunks in a portion
_PORTION: Final = _CHUNKS * _CHUNK
_DELETE_UNUSED: Final = """
    DELETE FROM contents WHERE saved_at < now() - make_interval(secs => %s)
    AND NOT EXISTS (SELECT 1 FROM files WHERE files.sha256 = contents.sha256)
"""


class PostgresFiles:
    def __init__(self, config: PostgresConfig, spool: Path, *, grace: float = 900.0, connections: int = 4) -> None:
        """`spool`: the directory for uploads in progress. `grace`: seconds for which a content without a row is
        kept."""
        self._config = config
        self._spool = spool
        self._grace = grace
        self._room = BoundedSemaphore(connections)

    def begin(self) -> IncomingFile:
        with filesystem.translated(f"{self._spool} cannot be used"):
            return PostgresIncoming(self._connected, cast(BinaryIO, tempfile.TemporaryFile(dir=self._spool)))

    def open(self, sha256: str) -> BinaryIO:
        with self._connected() as db:
            row = db.execute("SELECT size FROM contents WHERE sha256 = %s", (sha256,)).fetchone()
            if row is None:
                raise NotFoundError("file content", sha256)
            first = _portion(db, sha256, 0)
        return cast(BinaryIO, io.BufferedReader(_Content(self._connected, sha256, int(row[0]), first), _CHUNK))

    def delete(self, sha256: str) -> None:
        """Delete every content without a row, including those that an earlier call spared."""
        with self._connected() as db:
            db.execute(_DELETE_UNUSED, (self._grace,))

    @contextmanager
    def _connected(self) -> Iterator[TimedConnection]:
        if not self._room.acquire(timeout=self._config.answer_within):
            raise StorageUnavailableError("Too many files are being transferred at once. Try again in a moment.")
        try:
            with translated(), self._config.connect() as db:
                yield db
        finally:
            self._room.release()


class PostgresIncoming:
    def __init__(self, connected: Connected, spool: IO[bytes]) -> None:
        self._connected = connected
        self._spool = spool
        self._hash = hashlib.sha256()
        self._size = 0

    def __enter__(self) -> "IncomingFile":
        return self

    def __exit__(self, *error: object) -> None:
        self._spool.close()

    def write(self, chunk: bytes) -> None:
        with filesystem.translated("The upload cannot be saved"):
            self._spool.write(chunk)
        self._hash.update(chunk)
        self._size += len(chunk)

    def finish(self) -> tuple[str, int]:
        digest = self._hash.hexdigest()
        with filesystem.translated("The upload cannot be read back"):
            self._spool.seek(0)
            with self._connected() as db, db.transaction():
                self._save(db, digest)
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
    def __init__(self, connected: Connected, sha256: str, size: int, first: bytes) -> None:
        self._connected = connected
        self._sha256 = sha256
        self._size = size
        self._at = 0
        self._held = (0, first)

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
        n, within = divmod(self._at, _PORTION)
        if self._held[0] != n:
            with self._connected() as db:
                self._held = (n, _portion(db, self._sha256, n))
        piece = self._held[1][within : within + len(buffer)]
        if not piece:
            raise _missing(self._sha256)
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def _portion(db: TimedConnection, sha256: str, n: int) -> bytes:
    first = n * _CHUNKS
    sql = "SELECT n, data FROM chunks WHERE sha256 = %s AND n >= %s AND n < %s ORDER BY n"
    found = dict(db.execute(sql, (sha256, first, first + _CHUNKS), binary=True))
    if list(found) != list(range(first, first + len(found))):
        raise _missing(sha256)
    return b"".join(found.values())


def _missing(sha256: str) -> StorageError:
    return StorageError(f"The content {sha256} is incomplete: a chunk is missing. Restore it from a backup.")
