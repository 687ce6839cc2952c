"""Changes that a person makes to a directory tree: save, create, move and upload. Deletions: `trash`.

Every name is opened relative to its directory, and no link is followed. Only `save_text` replaces something, and only
the version that it is told; everything else creates its target exclusively first (`place`), so nothing that is there
is overwritten. What is complete is made durable, then renamed.

Not guaranteed: between the last look at a file and its replacement another program may write to it in place. That takes
some microseconds, and no system call closes the gap.
"""

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal

from holdfast.core.errors import (
    FileConflictError,
    PathExistsError,
    PathNotChangedError,
    PathNotFoundError,
    PathRefusedError,
    StorageFullError,
)
from holdfast.core.file_names import escape_path
from holdfast.ports.workspace import WorkspaceEntry, WorkspaceFile
from holdfast.tools.workspace import content
from holdfast.tools.workspace.listing import describe_entry
from holdfast.tools.workspace.tree import Names, WorkspaceTree, reason_of

MAX_TEXT: Final = 2 * 1024 * 1024  # Bytes of a text that is saved
_SAVING: Final = b".holdfast-save.tmp"
"""One name per directory: its saves take turns, and a leftover of a crash is replaced."""
_UPLOADING: Final = b".holdfast-upload-%d.tmp"
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
_UPDATE: Final = os.O_RDWR | os.O_NONBLOCK | getattr(os, "O_NOCTTY", 0) | _NO_LINK
_MARK: Final = b"\xef\xbb\xbf"  # Before some texts in UTF-8
_STRIPES: Final = 32
_WAIT: Final = 10.0  # Seconds that a save waits for another one in the same directory


class DirectoryLocks:
    """Lets the saves in a directory take turns; some directories share a lock."""

    def __init__(self) -> None:
        self._locks = tuple(threading.Lock() for _ in range(_STRIPES))

    @contextmanager
    def hold(self, directory: int, shown: str) -> Iterator[None]:
        found = os.fstat(directory)
        lock = self._locks[hash((found.st_dev, found.st_ino)) % _STRIPES]
        if not lock.acquire(timeout=_WAIT):
            raise PathNotChangedError(shown, "the disk is too slow; try again")
        try:
            yield
        finally:
            lock.release()


def save_text(
    tree: WorkspaceTree, names: Names, text: str, etag: str | None, locks: DirectoryLocks, reserve: int
) -> WorkspaceFile:
    """Replaces the version `etag` and keeps its mode and byte order mark; None: creates the file."""
    shown, data = escape_path(names), text.encode()
    with tree.parent(names) as parent, locks.hold(parent, shown), refusals(shown):
        if etag is None:
            written = _write(parent, data, None, reserve)
            with _discarded(parent, _SAVING):
                _require_same(parent, _SAVING, written, shown)
                tree.require_wanted(shown)
                place(parent, _SAVING, parent, names[-1], shown)
        else:
            before = _open_version(tree, parent, names, etag)
            try:
                start = os.pread(before, len(_MARK), 0)
                written = _write(parent, data if start != _MARK else _MARK + data, os.fstat(before), reserve)
            finally:
                os.close(before)
            with _discarded(parent, _SAVING):
                _require_same(parent, _SAVING, written, shown)
                _require_version(tree, parent, names, etag)  # once more: the disk may have taken its time
                tree.require_wanted(shown)
                os.rename(_SAVING, names[-1], src_dir_fd=parent, dst_dir_fd=parent)
        os.fsync(parent)
        return content.read_file_info(tree, names)


def create_entry(tree: WorkspaceTree, names: Names, kind: Literal["directory", "file"]) -> WorkspaceEntry:
    shown = escape_path(names)
    with tree.parent(names) as parent, refusals(shown):
        tree.require_wanted(shown)
        try:
            if kind == "directory":
                os.mkdir(names[-1], 0o755, dir_fd=parent)
            else:
                os.close(os.open(names[-1], _CREATE, 0o666, dir_fd=parent))
        except FileExistsError:
            raise PathExistsError(shown) from None
        os.fsync(parent)
        return describe(tree, parent, names)


def move_entry(tree: WorkspaceTree, names: Names, to: Names) -> WorkspaceEntry:
    shown, target = escape_path(names), escape_path(to)
    if names and len(to) > len(names) and to[: len(names)] == names:
        raise PathNotChangedError(shown, "a folder cannot be moved into itself")
    with tree.parent(names) as source, tree.parent(to) as parent, refusals(shown):
        require_movable(tree, source, names)
        tree.require_wanted(shown)
        place(source, names[-1], parent, to[-1], target)
        os.fsync(parent)
        os.fsync(source)
        return describe(tree, parent, to)


class WorkspaceUpload:
    """A file that is being uploaded, under a temporary name in its directory until it is complete. `slot`: a number
    that no other upload has, so a leftover of a crash is replaced by a later one."""

    def __init__(self, tree: WorkspaceTree, names: Names, slot: int, reserve: int) -> None:
        self._tree = tree
        self._names = names
        self._shown = escape_path(names)
        self._name = _UPLOADING % slot
        self._reserve = reserve
        self._file = -1
        with tree.parent(names) as parent, refusals(self._shown):
            if exists(parent, names[-1]):
                raise PathExistsError(self._shown)
            self._parent = os.dup(parent)
            try:
                with suppress(FileNotFoundError):
                    os.unlink(self._name, dir_fd=self._parent)
                self._file = os.open(self._name, _CREATE, 0o666, dir_fd=self._parent)
            except BaseException:
                os.close(self._parent)
                raise

    def write(self, chunk: bytes) -> None:
        with refusals(self._shown):
            require_space(self._parent, len(chunk), self._reserve)
            write_all(self._file, chunk)

    def finish(self) -> WorkspaceEntry:
        with refusals(self._shown):
            os.fsync(self._file)
            _require_same(self._parent, self._name, os.fstat(self._file), self._shown)
            place(self._parent, self._name, self._parent, self._names[-1], self._shown)
            os.fsync(self._parent)
            return describe(self._tree, self._parent, self._names)

    def close(self) -> None:
        """Discards what was not finished."""
        os.close(self._file)
        with suppress(OSError):
            os.unlink(self._name, dir_fd=self._parent)
        os.close(self._parent)


# ---- parts ----


def place(source: int, name: bytes, parent: int, target: bytes, shown: str) -> None:
    """Renames `name` in the directory `source` to `target` in `parent`, which must not exist: what the target's name
    is reserved with, an empty file or directory, is what the system replaces."""
    is_directory = stat.S_ISDIR(os.stat(name, dir_fd=source, follow_symlinks=False).st_mode)
    try:
        if is_directory:
            os.mkdir(target, 0o700, dir_fd=parent)
        else:
            os.close(os.open(target, _CREATE, 0o600, dir_fd=parent))
    except FileExistsError:
        raise PathExistsError(shown) from None
    reserved = os.stat(target, dir_fd=parent, follow_symlinks=False)
    try:
        os.rename(name, target, src_dir_fd=source, dst_dir_fd=parent)
    except BaseException:
        with suppress(OSError):
            if is_directory:
                os.rmdir(target, dir_fd=parent)
            elif os.path.samestat(reserved, os.stat(target, dir_fd=parent, follow_symlinks=False)):
                os.unlink(target, dir_fd=parent)
        raise


def require_movable(tree: WorkspaceTree, parent: int, names: Names) -> os.stat_result:
    """Refuses pipes, sockets, devices, and what the server's own data is in."""
    found, shown = os.stat(names[-1], dir_fd=parent, follow_symlinks=False), escape_path(names)
    if stat.S_ISDIR(found.st_mode):
        tree.require_outside_private(names, found)
    elif not stat.S_ISREG(found.st_mode) and not stat.S_ISLNK(found.st_mode):
        raise PathNotChangedError(shown, "it is a pipe, socket or device")
    return found


def require_space(directory: int, size: int, reserve: int) -> None:
    found = os.fstatvfs(directory)
    if found.f_bavail * found.f_frsize - size < reserve:
        raise StorageFullError("The disk is almost full. Free some space, then try again.")


def write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:  # a nearly full disk writes a part
        rest = rest[os.write(fd, rest) :]


def exists(parent: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def describe(tree: WorkspaceTree, parent: int, names: Names) -> WorkspaceEntry:
    found = describe_entry(tree, parent, names[:-1], names[-1])
    if found is None:
        raise PathNotFoundError(escape_path(names))  # taken away again at once
    return found


def sync_directory(directory: Path) -> None:
    """Makes names durable that were added to it."""
    fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def refusals(shown: str) -> Iterator[None]:
    """Turns the errors of the system into ours."""
    try:
        yield
    except FileNotFoundError:
        raise PathNotFoundError(shown) from None
    except PermissionError:
        raise PathNotChangedError(shown, "the server's account may not change it") from None
    except OSError as error:
        raise PathNotChangedError(shown, reason_of(error)) from None


def _open_version(tree: WorkspaceTree, parent: int, names: Names, etag: str) -> int:
    """Opens it as for writing, because replacing a file does not ask for its own permissions."""
    _require_version(tree, parent, names, etag)
    fd = os.open(names[-1], _UPDATE, dir_fd=parent)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):  # put there since it was looked at
            raise _conflict(tree, names)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _require_version(tree: WorkspaceTree, parent: int, names: Names, etag: str) -> None:
    try:
        found = os.stat(names[-1], dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        raise _conflict(tree, names) from None
    if not stat.S_ISREG(found.st_mode):
        kind = "folder" if stat.S_ISDIR(found.st_mode) else "link, pipe, socket or device"
        raise PathNotChangedError(escape_path(names), f"it is a {kind}, not a file")
    if content.etag_of(found) != etag:
        raise _conflict(tree, names)


def _conflict(tree: WorkspaceTree, names: Names) -> FileConflictError:
    shown = escape_path(names)
    try:
        preview = content.read_preview(tree, names, MAX_TEXT)
    except (PathNotFoundError, PathRefusedError):
        return FileConflictError(shown, None, None)
    return FileConflictError(shown, preview.file.etag, None if preview.truncated else preview.text)


def _require_same(parent: int, name: bytes, written: os.stat_result, shown: str) -> None:
    """Another server that shares the directory uses the same temporary names."""
    if not os.path.samestat(written, os.stat(name, dir_fd=parent, follow_symlinks=False)):
        raise PathNotChangedError(shown, "another server is changing this folder; try again")


def _write(parent: int, data: bytes, like: os.stat_result | None, reserve: int) -> os.stat_result:
    """The temporary file, complete and durable, with the owner and mode of the file that it replaces."""
    require_space(parent, len(data), reserve)
    with suppress(FileNotFoundError):
        os.unlink(_SAVING, dir_fd=parent)
    fd = os.open(_SAVING, _CREATE, 0o666 if like is None else 0o600, dir_fd=parent)
    try:
        write_all(fd, data)
        if like is not None:
            with suppress(PermissionError):
                os.fchown(fd, like.st_uid, like.st_gid)
            os.fchmod(fd, stat.S_IMODE(like.st_mode))
        os.fsync(fd)
        return os.fstat(fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(_SAVING, dir_fd=parent)
        raise
    finally:
        os.close(fd)


@contextmanager
def _discarded(parent: int, name: bytes) -> Iterator[None]:
    """Removes a temporary file if it is not put in its place."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=parent)
        raise
