"""Files of one directory that nothing in it can lead out of.

Every name on the way is opened by itself, relative to the directory before it, and symbolic links are not followed
(`O_NOFOLLOW`), not even those that stay inside. There is no moment between a check and its use in which a link could be
swapped in: what was opened is what was checked. Only plain files are read and written, so that a pipe cannot block and
a device cannot answer.

Needs `dir_fd` and `O_NOFOLLOW`, which Linux, macOS and the BSDs have. Where they are missing the tools say so instead
of doing it less well. Hard links are not told from files: making one needs the right to the file already.
All calls block: they belong in a worker thread.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from holdfast.agents.tools.port import ToolFailed

SUPPORTED: Final = os.open in os.supports_dir_fd and os.scandir in os.supports_fd and hasattr(os, "O_NOFOLLOW")

_TEMPORARY: Final = ".holdfast-write.tmp"
"""One name per directory: calls of a session that write come one after another, and what a crash left is replaced."""

_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC


def names(path: str) -> tuple[str, ...]:
    """A relative path as its names. Whatever leads out is refused before anything is opened."""
    if "\0" in path or path.startswith(("/", "~")):
        raise ToolFailed(
            f"{path!r} is not a path inside the workspace. Give one relative to it, like 'notes/today.md'."
        )
    found = tuple(name for name in path.split("/") if name not in ("", "."))
    if ".." in found:
        raise ToolFailed(f"{path!r} leads out of the workspace. Paths with '..' are not allowed.")
    return found


class Jail:
    def __init__(self, root: Path) -> None:
        self._root = root

    @contextmanager
    def directory(self, path: tuple[str, ...], *, create: bool = False) -> Iterator[int]:
        """The directory, open. The root itself is made when it is first needed."""
        if not SUPPORTED:
            raise ToolFailed("Files cannot be opened safely on this system. The file tools need Linux, macOS or BSD.")
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
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
    def reading(self, path: tuple[str, ...]) -> Iterator[BinaryIO]:
        """A plain file, open for reading."""
        shown = "/".join(path) or "."
        if not path:
            raise ToolFailed("The workspace itself is a directory. Give the path of a file.")
        with self.directory(path[:-1]) as parent, _told(shown):
            fd = os.open(path[-1], _READ, dir_fd=parent)
            try:
                _check_plain(os.fstat(fd), shown)
                file = os.fdopen(fd, "rb")
            except BaseException:
                os.close(fd)
                raise
        with file:
            yield file

    def write(self, path: tuple[str, ...], data: bytes) -> bool:
        """Put the whole file in place at once, with the mode of the one it replaces. True: there was none before."""
        shown = "/".join(path)
        if not path:
            raise ToolFailed("The workspace itself is a directory. Give the path of a file.")
        with self.directory(path[:-1], create=True) as parent, _told(shown):
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
    with _told(shown):
        if create:
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=fd)
        return os.open(name, _DIRECTORY, dir_fd=fd)


def _mode(parent: int, name: str, shown: str) -> int | None:
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _check_plain(found, shown)
    return stat.S_IMODE(found.st_mode)


def _check_plain(found: os.stat_result, shown: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise ToolFailed(f"{shown!r} is a directory, not a file.")
    if not stat.S_ISREG(found.st_mode):
        raise ToolFailed(f"{shown!r} is not a plain file (a link, pipe or device), and is left alone.")


@contextmanager
def _told(shown: str) -> Iterator[None]:
    """What the system says, in words for the model."""
    try:
        yield
    except FileNotFoundError:
        raise ToolFailed(f"There is no {shown!r} in the workspace. List the directory to see what there is.") from None
    except PermissionError:
        raise ToolFailed(f"{shown!r} may not be opened: the system does not allow it.") from None
    except OSError as error:
        # ELOOP or ENOTDIR where a link stands, ENXIO for a socket or an unread pipe; which one depends on the system.
        raise ToolFailed(f"{shown!r} cannot be used here: {error.strerror}. Links are not followed.") from None
