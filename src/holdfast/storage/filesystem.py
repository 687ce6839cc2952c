"""File system helpers: free space, durable writes, translation of OSError."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from holdfast.core.errors import StorageError, StorageFullError, StorageUnavailableError

_NO_SPACE: Final = {errno.ENOSPC, errno.EDQUOT}


def from_os(error: OSError, what: str) -> StorageError:
    """Translate an error; `what` is the beginning of the message."""
    reason = os.strerror(error.errno).lower() if error.errno else str(error)
    if error.errno in _NO_SPACE:
        return StorageFullError(f"{what}: {reason}. Free some disk space.")
    return StorageUnavailableError(f"{what}: {reason}.")


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise an OSError of the block as a StorageError that begins with `what`."""
    try:
        yield
    except OSError as error:
        raise from_os(error, what) from error


def free_bytes(directory: Path) -> int | None:
    """Free space for this user, or None if unknown."""
    try:
        stat = os.statvfs(directory)
    except OSError:
        return None
    return stat.f_bavail * stat.f_frsize


def sync_directory(directory: Path) -> None:
    """Make new and renamed files of the directory survive a crash."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_directory(directory: Path) -> None:
    """Create a private directory that survives a crash. Its parent must exist."""
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        return
    sync_directory(directory.parent)


def write_private(path: Path, content: bytes) -> None:
    """Replace a file atomically and durably with one that only its owner can read."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
