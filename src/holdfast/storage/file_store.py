"""Contents of attached files in the data directory, by digest: `<root>/ab/<sha256>`. Names and types are rows in the
store; no client input becomes part of a path. Synchronous and thread-safe, for worker threads. When a content is
deleted: `engine.retention`.

A content may be deleted while the same one is saved again. The caller must make sure that no file row has the digest
and none is about to: saving and committing the row both happen before the deletion or both after it.
"""

import hashlib
import os
import re
import secrets
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Final

from holdfast.core.errors import InvalidInputError, NotFoundError
from holdfast.storage import filesystem

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class FileStore:
    def __init__(self, root: Path) -> None:
        """Creates nothing, but removes unfinished uploads of an earlier process."""
        self._root = root
        self._incoming = root / "incoming"
        with _translated(self._incoming):
            for left in self._incoming.glob("*"):
                left.unlink(missing_ok=True)

    def begin(self) -> "FileUpload":
        """Start an upload. Leaving the `with` block without `finish` discards it."""
        with _translated(self._incoming):
            filesystem.make_directory(self._root)
            filesystem.make_directory(self._incoming)
            return FileUpload(self._root, self._incoming / secrets.token_hex(16))

    def open(self, sha256: str) -> BinaryIO:
        path = self._path(sha256)
        with _translated(path):
            try:
                return path.open("rb")
            except FileNotFoundError:
                raise NotFoundError("file content", sha256) from None

    def delete(self, sha256: str) -> None:
        """Delete a content; a missing one is no error."""
        path = self._path(sha256)
        with _translated(path):
            path.unlink(missing_ok=True)

    def _path(self, sha256: str) -> Path:
        if _DIGEST.fullmatch(sha256) is None:
            raise InvalidInputError("sha256", f"{sha256!r} is not a SHA-256 digest; expected 64 hexadecimal digits")
        return path_of(self._root, sha256)


class FileUpload:
    """A content that is being written, under a temporary name until it is complete."""

    def __init__(self, root: Path, path: Path) -> None:
        self._root = root
        self._path = path
        self._hash = hashlib.sha256()
        self._size = 0
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._file = os.fdopen(fd, "wb", buffering=0)

    def __enter__(self) -> "FileUpload":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def write(self, chunk: bytes) -> None:
        with _translated(self._path):
            rest = memoryview(chunk)
            while rest:  # a nearly full disk writes a part
                rest = rest[self._file.write(rest) :]
        self._hash.update(chunk)
        self._size += len(chunk)

    def finish(self) -> tuple[str, int]:
        """Sync the file, rename it to its digest, sync the directory: the content is there completely and durably."""
        digest = self._hash.hexdigest()
        target = path_of(self._root, digest)
        with _translated(target):
            os.fsync(self._file.fileno())
            filesystem.make_directory(target.parent)
            self._path.rename(target)
            filesystem.sync_directory(target.parent)
        return digest, self._size


def path_of(root: Path, digest: str) -> Path:
    return root / digest[:2] / digest


def _translated(path: Path) -> AbstractContextManager[None]:
    return filesystem.translated(f"{path} cannot be used")
