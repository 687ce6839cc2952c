"""Jail: file access that cannot leave one directory.

Each name of a path is opened relative to the directory before it, and symbolic links are never followed
(`O_NOFOLLOW`), not even those that stay inside. No link can be swapped in between a check and its use, because what was
opened is what is checked. Only regular files are read and written, so a pipe cannot block and a device is not touched.

Needs `dir_fd` and `O_NOFOLLOW` (Linux, macOS, BSD); elsewhere the tools refuse to work. Hard links count as files:
creating one already requires access to the file. All calls block, so they belong in a worker thread.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from holdfast.ports.tool import ChangeRecorder, ToolError
from holdfast.tools.workspace.private_directory import create_private_directory

SUPPORTED: Final = os.open in os.supports_dir_fd and os.scandir in os.supports_fd and hasattr(os, "O_NOFOLLOW")

_TEMPORARY: Final = ".holdfast-write.tmp"
"""One name per directory: the writing calls of a session never overlap, and a leftover of a crash is replaced."""

_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC


def split_path(path: str) -> tuple[str, ...]:
    """The names of a relative path. A path that leads out is refused before anything is opened."""
    if "\0" in path or path.startswith(("/", "~")):
        raise ToolError(f"{path!r} is outside the workspace. Use a relative path, such as 'notes/today.md'.")
    names = tuple(name for name in path.split("/") if name not in ("", "."))
    if ".." in names:
        raise ToolError(f"{path!r} is outside the workspace. Paths with '..' are not allowed.")
    return names


class Jail:
    def __init__(self, root: Path, changes: ChangeRecorder | None = None) -> None:
        self._root = root
        self._changes = changes

    @contextmanager
    def directory(self, path: tuple[str, ...], *, create: bool = False) -> Iterator[int]:
        """Opens a directory. The root is created when it is first needed."""
        if not SUPPORTED:
            raise ToolError("The file tools are not available on this system. They need Linux, macOS or BSD.")
        create_private_directory(self._root)
        fd = os.open(self._root, _DIRECTORY)
        try:
            for at, name in enumerate(path):
                below = _enter(fd, name, "/".join(path[: at + 1]), create)
                os.close(fd)
                fd = below
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def open_for_reading(self, path: tuple[str, ...]) -> Iterator[BinaryIO]:
        """Opens a regular file for reading."""
        shown = "/".join(path) or "."
        if not path:
            raise ToolError("The workspace itself is a directory. Use the path of a file.")
        with self.directory(path[:-1]) as parent, _translate_errors(shown):
            fd = os.open(path[-1], _READ, dir_fd=parent)
            try:
                _check_regular(os.fstat(fd), shown)
                file = os.fdopen(fd, "rb")
            except BaseException:
                os.close(fd)
                raise
        with file:
            yield file

    def write(self, path: tuple[str, ...], data: bytes) -> bool:
        """Replaces the whole file atomically and keeps its mode. Returns whether it is new. What it was is recorded
        first."""
        if not path:
            raise ToolError("The workspace itself is a directory. Use the path of a file.")
        names = tuple(map(os.fsencode, path))
        if self._changes is not None:
            self._changes.before_write(names, data)
        is_new = self._replace(path, data)
        if self._changes is not None:
            self._changes.after_write(names)
        return is_new

    def _replace(self, path: tuple[str, ...], data: bytes) -> bool:
        shown = "/".join(path)
        with self.directory(path[:-1], create=True) as parent, _translate_errors(shown):
            mode = _mode(parent, path[-1], shown)
            with suppress(FileNotFoundError):
                os.unlink(_TEMPORARY, dir_fd=parent)
            fd = os.open(_TEMPORARY, _CREATE, 0o666, dir_fd=parent)
            try:
                with os.fdopen(fd, "wb") as file:
                    if mode is not None:
                        os.fchmod(file.fileno(), mode)
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.rename(_TEMPORARY, path[-1], src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with suppress(OSError):
                    os.unlink(_TEMPORARY, dir_fd=parent)
                raise
            os.fsync(parent)
            return mode is None


def _enter(fd: int, name: str, shown: str, create: bool) -> int:
    with _translate_errors(shown):
        if create:
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=fd)
        return os.open(name, _DIRECTORY, dir_fd=fd)


def _mode(parent: int, name: str, shown: str) -> int | None:
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _check_regular(found, shown)
    return stat.S_IMODE(found.st_mode)


def _check_regular(found: os.stat_result, shown: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise ToolError(f"{shown!r} is a directory, not a file.")
    if not stat.S_ISREG(found.st_mode):
        raise ToolError(f"{shown!r} is a link, pipe or device, not a regular file, and is not opened.")


@contextmanager
def _translate_errors(shown: str) -> Iterator[None]:
    """Turns the errors of the system into ToolError."""
    try:
        yield
    except FileNotFoundError:
        raise ToolError(
            f"{shown!r} does not exist in the workspace. List the directory to see what is there."
        ) from None
    except PermissionError:
        raise ToolError(f"{shown!r} cannot be opened: permission denied.") from None
    except OSError as error:
        # ELOOP or ENOTDIR for a link, ENXIO for a socket or an unread pipe, depending on the system.
        raise ToolError(f"{shown!r} cannot be opened: {error.strerror}. Links are not followed.") from None
