"""The data directory: private, and locked by one process at a time. Where it is: `config.load`. Holding its lock counts
as holding the lease of every run in it. A second server on the same directory is refused here."""

import contextlib
import errno
import fcntl
import os
import secrets
from pathlib import Path
from typing import Final

from holdfast.core.errors import DataDirInUseError, StorageError, StorageUnavailableError
from holdfast.core.ids import NodeId
from holdfast.storage import filesystem

_ELSEWHERE: Final = "or choose another directory with --data-dir"


class DataDir:
    """An open data directory. The kernel releases the lock when the process ends, in whatever way."""

    def __init__(self, path: Path, lock: int) -> None:
        """Use `open`."""
        self.path = path
        self.store_file = path / "holdfast.db"
        self.journal_file = path / "journal.db"
        self.files = path / "files"
        self.node = NodeId(f"node_{secrets.token_hex(8)}")  # Identifies this opening; never reused
        self._lock: int | None = lock

    @classmethod
    def open(cls, path: Path) -> "DataDir":
        """Create the directory if necessary and lock it. DataDirInUseError: another process has it.
        StorageUnavailableError: it cannot be used; nothing was changed."""
        path = path.absolute()
        _create(path)
        return cls(path, _lock(path))

    def close(self) -> None:
        """Release the lock. Its files must be closed before."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def lock_holder(path: Path) -> str | None:
    """The id of the process that holds the lock, or None. A shared lock is tried for an instant; a server that starts
    at that instant may be refused."""
    try:
        lock = os.open(path / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        return os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
    finally:
        os.close(lock)


def _create(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        filesystem.make_directory(path)
        if not path.is_dir():
            raise NotADirectoryError
    except (FileExistsError, NotADirectoryError):
        raise StorageUnavailableError(
            f"{path} cannot be the data directory: it, or one of its parents, is not a directory. "
            "Remove that file, or choose another directory with --data-dir."
        ) from None
    except OSError as error:
        raise filesystem.from_os(error, f"The data directory {path} cannot be created") from error


def _lock(path: Path) -> int:
    file = path / "lock"
    try:
        lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with contextlib.suppress(OSError):  # only for an error message, so a full disk does not matter
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError:
        holder = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
        os.close(lock)
        who = f"process {holder}" if holder.isdigit() else "another process"
        raise DataDirInUseError(f"The data directory {path} is in use by {who}. Stop it, {_ELSEWHERE}.") from None
    except OSError as error:
        os.close(lock)
        raise filesystem.from_os(error, f"The data directory {path} cannot be locked") from error
    return lock


def _unusable(path: Path, error: OSError) -> StorageError:
    what = f"The data directory {path} cannot be used"
    if error.errno == errno.EROFS:
        return StorageUnavailableError(f"{what}: it is on a read-only file system. Make it writable, {_ELSEWHERE}.")
    if error.errno in (errno.EACCES, errno.EPERM):
        return StorageUnavailableError(f"{what}: this user has no write permission. Change its owner, {_ELSEWHERE}.")
    return filesystem.from_os(error, what)
