"""The file system, as storage sees it: room, durability, and the system's errors as ours."""

import errno
import os
import secrets
from pathlib import Path
from typing import Final

from holdfast.core.errors import StorageError, StorageFull, StorageUnavailable

_NO_SPACE: Final = {errno.ENOSPC, errno.EDQUOT}


def from_os(error: OSError, what: str) -> StorageError:
    """Ours for `error`; `what` is the sentence it belongs to, without its full stop."""
    reason = os.strerror(error.errno).lower() if error.errno else str(error)
    if error.errno in _NO_SPACE:
        return StorageFull(f"{what}: {reason}. Free some disk space.")
    return StorageUnavailable(f"{what}: {reason}.")


def free_bytes(directory: Path) -> int | None:
    """Room that is left for this user, or None where the system does not say."""
    try:
        stat = os.statvfs(directory)
    except OSError:
        return None
    return stat.f_bavail * stat.f_frsize


def sync_directory(directory: Path) -> None:
    """A new or renamed file is only there after a crash once its directory has been synced."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_directory(directory: Path) -> None:
    """A private directory that outlasts a crash. The one above it must be there."""
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        return
    sync_directory(directory.parent)


def write_private(path: Path, content: bytes) -> None:
    """Replace a file by one with this content that only its owner can read: the old whole or the new whole, never
    between."""
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
