"""The data directory: private, and used by one process at a time. Its lock is the lease of every run in it."""

import contextlib
import errno
import fcntl
import os
import secrets
from pathlib import Path
from typing import Final

from holdfast.core.errors import DataDirInUse, StorageError, StorageUnavailable
from holdfast.core.ids import NodeId
from holdfast.storage import disk

_ELSEWHERE: Final = "or choose another directory with --data-dir"


class DataDir:
    """An open data directory. The lock is the kernel's and goes with the process, however that ends."""

    def __init__(self, path: Path, lock: int) -> None:
        """Use `open`."""
        self.path = path
        self.node = NodeId(f"node_{secrets.token_hex(8)}")
        """This opening; never the same twice."""
        self._lock: int | None = lock

    @classmethod
    def open(cls, path: Path) -> "DataDir":
        """Make the directory if need be and lock it. DataDirInUse: another process has it. StorageUnavailable: it
        cannot be used; nothing was changed."""
        path = path.absolute()
        _make(path)
        return cls(path, _lock(path))

    @property
    def store_file(self) -> Path:
        return self.path / "holdfast.db"

    @property
    def journal_file(self) -> Path:
        return self.path / "journal.db"

    @property
    def files(self) -> Path:
        return self.path / "files"

    def free_bytes(self) -> int | None:
        return disk.free_bytes(self.path)

    def close(self) -> None:
        """Let others in. Whoever used the directory must have closed its files before."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def lock_holder(path: Path) -> str | None:
    """Number of the process that has the directory, as far as that can be said without getting into its way: a
    shared lock is tried for an instant, and a start at that instant may be refused."""
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


def _make(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.make_directory(path)
        if not path.is_dir():
            raise NotADirectoryError
    except (FileExistsError, NotADirectoryError):
        raise StorageUnavailable(
            f"{path} cannot be the data directory: it, or something above it, is not a directory. "
            "Remove what is in the way, or choose another directory with --data-dir."
        ) from None
    except OSError as error:
        raise disk.from_os(error, f"The data directory {path} cannot be made") from error


def _lock(path: Path) -> int:
    file = path / "lock"
    try:
        lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with contextlib.suppress(OSError):  # whoever comes second is told who we are, if there is room to say so
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError:
        holder = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
        os.close(lock)
        who = f"process {holder}" if holder.isdigit() else "another process"
        raise DataDirInUse(f"The data directory {path} is in use by {who}. Stop it, {_ELSEWHERE}.") from None
    except OSError as error:
        os.close(lock)
        raise disk.from_os(error, f"The data directory {path} cannot be locked") from error
    return lock


def _unusable(path: Path, error: OSError) -> StorageError:
    what = f"The data directory {path} cannot be used"
    if error.errno == errno.EROFS:
        return StorageUnavailable(f"{what}: it is on a read-only file system. Make it writable, {_ELSEWHERE}.")
    if error.errno in (errno.EACCES, errno.EPERM):
        return StorageUnavailable(f"{what}: this user may not write to it. Change its owner, {_ELSEWHERE}.")
    return disk.from_os(error, what)
