"""The file system, as storage sees it: room, durability, and the system's errors as ours."""

import errno
import os
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
