"""File system helpers: free space, durable writes, translation of OSError."""

import os
import secrets
from pathlib import Path

from holdfast.core.file_errors import storage_error, storage_errors

from_os = storage_error
translated = storage_errors


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
