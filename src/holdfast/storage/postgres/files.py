"""Contents of attached files in PostgreSQL, by digest, so that every node can serve what any node was sent.

A content is gathered in a temporary file of the node and becomes visible whole. It is not deleted while a row names it,
nor soon after it was saved: on another node its row may be about to be written.

It is read a portion at a time, each through one of a few connections, so that who downloads slowly holds none.
"""

import hashlib
import io
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import BoundedSemaphore
from types import TracebackType
from typing import IO, BinaryIO, Final, cast

import psycopg

from holdfast.core.errors import NotFound, StorageError, StorageUnavailable
from holdfast.ports import Incoming
from holdfast.storage import disk
from holdfast.storage.postgres import errors
from holdfast.storage.postgres.link import Place, TimedConnection

Connected = Callable[[], AbstractContextManager[TimedConnection]]
_CHUNK: Final = 256 * 1024
_CHUNKS: Final = 4
"""That are read at once."""
_PORTION: Final = _CHUNKS * _CHUNK
_DROP: Final = """
    DELETE FROM contents WHERE saved_at < now() - make_interval(secs => %s)
    AND NOT EXISTS (SELECT 1 FROM files WHERE files.sha256 = contents.sha256)
"""


class PostgresFiles:
    def __init__(self, place: Place, spool: Path, *, grace: float = 900.0, connections: int = 4) -> None:
        """`spool`: the directory for what is being received. `grace`: seconds for which a content without a row is
        kept."""
        self._place = place
        self._spool = spool
        self._grace = grace
        self._room = BoundedSemaphore(connections)

    def begin(self) -> Incoming:
        try:
            return PostgresIncoming(self._connected, cast(BinaryIO, tempfile.TemporaryFile(dir=self._spool)))
        except OSError as error:
            raise disk.from_os(error, f"{self._spool} cannot be used") from error

    def open(self, sha256: str) -> BinaryIO:
        with self._connected() as db:
            row = db.execute("SELECT size FROM contents WHERE sha256 = %s", (sha256,)).fetchone()
            if row is None:
                raise NotFound("file content", sha256)
            first = _portion(db, sha256, 0)
        return cast(BinaryIO, io.BufferedReader(_Content(self._connected, sha256, int(row[0]), first), _CHUNK))

    def delete(self, sha256: str) -> None:
        """This one and whatever else nobody names any more: one that was spared the last time is not forgotten."""
        with self._connected() as db:
            db.execute(_DROP, (self._grace,))

    @contextmanager
    def _connected(self) -> Iterator[TimedConnection]:
        if not self._room.acquire(timeout=self._place.answer_within):
            raise StorageUnavailable("Too many files are being sent and read at once. Try again in a moment.")
        try:
            with self._place.connect() as db:
                yield db
        except psycopg.Error as error:
            raise errors.from_postgres(error) from error
        finally:
            self._room.release()


class PostgresIncoming:
    def __init__(self, connected: Connected, spool: IO[bytes]) -> None:
        self._connected = connected
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
            with self._connected() as db, db.transaction():
                self._save(db, digest)
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
    return StorageError(f"A piece of the content {sha256} is missing.")
