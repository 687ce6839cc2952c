"""Contents of attached files, by digest: `<root>/ab/<sha256>`. Names and types are rows in the store; nothing that a
client sent becomes part of a path. Synchronous, for worker threads; safe to be used by several at once.

A content may be deleted while the same one is being saved again. Whoever deletes must therefore know that no file row
names the digest and that none is about to: save, then commit the row, both after the deletion or both before it.
"""

import hashlib
import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final

from holdfast.core.errors import Invalid, NotFound, StorageError
from holdfast.storage import disk

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class FileStore:
    def __init__(self, root: Path) -> None:
        """Makes nothing before it is used, but removes what an earlier process had begun and not finished."""
        self._root = root
        self._incoming = root / "incoming"
        try:
            for left in self._incoming.glob("*"):
                left.unlink(missing_ok=True)
        except OSError as error:
            raise _ours(error, self._incoming) from error

    def save(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Digest and size of what is now stored. It is durable; if anything raises, nothing is left."""
        with self.begin() as file:
            for chunk in chunks:
                file.write(chunk)
            return file.finish()

    def begin(self) -> "Incoming":
        """For contents that arrive piece by piece. Leaving the `with` block without `finish` throws them away."""
        try:
            disk.make_directory(self._root)
            disk.make_directory(self._incoming)
            return Incoming(self._root, self._incoming / secrets.token_hex(16))
        except OSError as error:
            raise _ours(error, self._incoming) from error

    def open(self, sha256: str) -> BinaryIO:
        path = self._path(sha256)
        try:
            return path.open("rb")
        except FileNotFoundError:
            raise NotFound("file content", sha256) from None
        except OSError as error:
            raise _ours(error, path) from error

    def delete(self, sha256: str) -> None:
        """What is not there is gone already."""
        path = self._path(sha256)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise _ours(error, path) from error

    def _path(self, sha256: str) -> Path:
        if _DIGEST.fullmatch(sha256) is None:
            raise Invalid("sha256", f"{sha256!r} is not a digest in 64 hexadecimal digits")
        return place(self._root, sha256)


class Incoming:
    """A content that is being written, under a name of its own until it is whole."""

    def __init__(self, root: Path, path: Path) -> None:
        self._root = root
        self._path = path
        self._hash = hashlib.sha256()
        self._size = 0
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._file = os.fdopen(fd, "wb", buffering=0)

    def __enter__(self) -> "Incoming":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def write(self, chunk: bytes) -> None:
        try:
            rest = memoryview(chunk)
            while rest:  # a nearly full disk takes a part
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise _ours(error, self._path) from error
        self._hash.update(chunk)
        self._size += len(chunk)

    def finish(self) -> tuple[str, int]:
        """Sync, then rename: under its digest there is the whole content or nothing. Sync the directories: it stays."""
        digest = self._hash.hexdigest()
        target = place(self._root, digest)
        try:
            os.fsync(self._file.fileno())
            disk.make_directory(target.parent)
            self._path.rename(target)
            disk.sync_directory(target.parent)
        except OSError as error:
            raise _ours(error, target) from error
        return digest, self._size


def place(root: Path, digest: str) -> Path:
    return root / digest[:2] / digest


def _ours(error: OSError, path: Path) -> StorageError:
    return disk.from_os(error, f"{path} cannot be used")
