"""A directory tree for people: like `jail`, but it creates nothing by itself, and reads follow links that stay inside.

Each name is opened relative to the directory before it and never through a link (`O_NOFOLLOW`). A link is read, and its
target is walked in the same way; `..` in it goes back to the directory that was opened, and never above the root. So
whatever is swapped in the meantime, what was opened is inside. A directory that is `private` is not entered, whichever
way leads to it.
"""

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from holdfast.core.errors import PathNotChangedError, PathNotFoundError, PathRefusedError, WorkspaceUnavailableError
from holdfast.core.file_names import MAX_DEPTH, escape_path
from holdfast.tools.workspace.jail import SUPPORTED

Names = tuple[bytes, ...]

_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC
_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
_PASSAGE: Final = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
"""A directory that is only walked through need not be readable."""
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOCTTY", 0) | _NO_LINK
_MAX_LINKS: Final = 40


@dataclass(frozen=True, slots=True)
class WorkspaceTree:
    root: Path  # Without links
    private: Path  # The data directory
    own: bool  # Whether the root is the session's own directory, which is inside the private one
    is_abandoned: threading.Event = field(default_factory=threading.Event)  # Nobody waits for the work on it any more

    def require_wanted(self, shown: str) -> None:
        """Called before each change: whoever asked for it has been told that it was given up."""
        if self.is_abandoned.is_set():
            raise PathNotChangedError(shown, "the disk is too slow; try again")

    @contextmanager
    def directory(self, names: Names) -> Iterator[int]:
        """Opens a directory and closes it afterwards."""
        with self._walk(names) as walk:
            if walk.leaf is not None:
                raise PathRefusedError(escape_path(names), "it is not a directory")
            yield walk.fds[-1]

    @contextmanager
    def file(self, names: Names) -> Iterator[int]:
        """Opens a regular file for reading and closes it afterwards."""
        shown = escape_path(names)
        with self._walk(names) as walk:
            if walk.leaf is None:
                raise PathRefusedError(shown or ".", "it is a directory, not a file")
            found = walk.stat(walk.leaf)
            _require_regular(found, shown)  # opening a device may already do something
            fd = walk.open(walk.leaf, _FILE)
        try:
            _require_regular(os.fstat(fd), shown)
            yield fd
        finally:
            os.close(fd)

    def kind(self, names: Names) -> str | None:
        """What a path leads to, through links: `directory`, `file`, or None for anything that cannot be opened."""
        try:
            with self._walk(names) as walk:
                if walk.leaf is None:
                    return "directory"
                return "file" if stat.S_ISREG(walk.stat(walk.leaf).st_mode) else None
        except (PathNotFoundError, PathRefusedError):
            return None

    @contextmanager
    def parent(self, names: Names) -> Iterator[int]:
        """Opens the directory that the last name is in, to change that name. No link is followed, not even one that
        stays inside."""
        shown = escape_path(names)
        if not names:
            raise PathNotChangedError(".", "it is the workspace itself")
        with self._walk(names[:-1], shown=shown, links=False) as walk:
            if walk.leaf is not None:
                raise PathNotFoundError(shown)
            yield walk.fds[-1]

    def require_outside_private(self, names: Names, found: os.stat_result) -> None:
        """Refuses to take away a directory that has the data directory in it."""
        private = Path(os.path.realpath(self.private))
        for directory in (private, *private.parents):
            with suppress(FileNotFoundError):
                if os.path.samestat(found, os.stat(directory)):
                    raise PathNotChangedError(escape_path(names), "the data directory of this server is in it")

    @contextmanager
    def _walk(self, names: Names, *, shown: str | None = None, links: bool = True) -> Iterator["_Walk"]:
        with ExitStack() as opened:
            walk = _Walk(self, escape_path(names) if shown is None else shown, links=links)
            opened.callback(walk.close)
            walk.fds.append(self._open_root())
            walk.follow(names)
            yield walk

    def _open_root(self) -> int:
        if not SUPPORTED:
            raise WorkspaceUnavailableError("this system cannot open files safely; it needs Linux, macOS or BSD")
        try:
            if self.own:
                return os.open(self.root, _DIRECTORY)
            return self._open_from_top()
        except FileNotFoundError:
            raise WorkspaceUnavailableError(f"there is no directory {self.root} on this server") from None
        except OSError as error:
            raise WorkspaceUnavailableError(f"{self.root} cannot be opened ({error.strerror})") from None

    def _open_from_top(self) -> int:
        """Name by name, because the way to the root may lead through the private directory, or be changed meanwhile."""
        fd = os.open("/", _PASSAGE)
        try:
            for name in self.root.parts[1:]:
                below = os.open(name, _PASSAGE, dir_fd=fd)
                os.close(fd)
                fd = below
                if self.is_private(fd):
                    raise WorkspaceUnavailableError(f"{self.root} is in the data directory of this server")
            return os.open(".", _DIRECTORY, dir_fd=fd)
        finally:
            os.close(fd)

    def is_private(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), os.stat(self.private))
        except FileNotFoundError:
            return False


class _Walk:
    """The directories that were opened, from the root to where the path has led so far."""

    def __init__(self, tree: WorkspaceTree, shown: str, *, links: bool) -> None:
        self.fds: list[int] = []
        self.leaf: bytes | None = None  # The last name, if it is no directory; it may be anything else
        self._tree = tree
        self._shown = shown
        self._links = links  # Whether they are followed

    def close(self) -> None:
        for fd in self.fds:
            os.close(fd)

    def follow(self, names: Names) -> None:
        pending, links = list(reversed(names)), 0
        while pending:
            name = pending.pop()
            if name in (b"", b"."):
                continue
            if name == b"..":  # in a link only: paths with it are refused
                self._go_up()
                continue
            mode = self.stat(name).st_mode
            if stat.S_ISDIR(mode):
                self._enter(name)
            elif stat.S_ISLNK(mode):
                if not self._links:
                    raise PathNotChangedError(self._shown, "there is a link in its path; open the folder itself")
                links += 1
                if links > _MAX_LINKS:
                    raise PathRefusedError(self._shown, "its links lead in a circle")
                pending += reversed(self._target(name))
                if len(pending) > MAX_DEPTH:
                    raise PathRefusedError(self._shown, "its links lead too deep")
            elif any(item not in (b"", b".") for item in pending):
                raise PathNotFoundError(self._shown)
            else:
                self.leaf = name

    def stat(self, name: bytes) -> os.stat_result:
        with self._errors():
            return os.stat(name, dir_fd=self.fds[-1], follow_symlinks=False)

    def open(self, name: bytes, flags: int) -> int:
        with self._errors():
            return os.open(name, flags, dir_fd=self.fds[-1])

    def _enter(self, name: bytes) -> None:
        if len(self.fds) > MAX_DEPTH:
            raise PathRefusedError(self._shown, "it is too deep")
        self.fds.append(self.open(name, _DIRECTORY))
        if self._tree.is_private(self.fds[-1]):
            raise PathRefusedError(self._shown, "it is in the data directory of this server")

    def _go_up(self) -> None:
        if len(self.fds) == 1:
            raise PathRefusedError(self._shown, "it is a link that leads out of the workspace")
        os.close(self.fds.pop())

    def _target(self, name: bytes) -> list[bytes]:
        """The names that a link stands for. An absolute one starts again at the root, if it is below it."""
        with self._errors():
            target = os.readlink(name, dir_fd=self.fds[-1])
        if not target.startswith(b"/"):
            return target.split(b"/")
        root = os.fsencode(self._tree.root).rstrip(b"/") + b"/"
        if not target.startswith(root):
            raise PathRefusedError(self._shown, "it is a link that leads out of the workspace")
        while len(self.fds) > 1:
            self._go_up()
        return target[len(root) :].split(b"/")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turns the errors of the system into ours."""
        try:
            yield
        except (FileNotFoundError, NotADirectoryError):
            raise PathNotFoundError(self._shown) from None
        except PermissionError:
            raise PathRefusedError(self._shown, "the server's account may not read it") from None
        except OSError as error:
            # ELOOP: replaced by a link since it was looked at. ENAMETOOLONG, ENXIO for a socket, EIO …
            raise PathRefusedError(self._shown, reason_of(error)) from None


def reason_of(error: OSError) -> str:
    """Why the system refused, as the end of a sentence."""
    return (error.strerror or "input or output error").lower()


def _require_regular(found: os.stat_result, shown: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise PathRefusedError(shown, "it is a pipe, socket or device, not a file")
