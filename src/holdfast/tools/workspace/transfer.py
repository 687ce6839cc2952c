"""Moves a file or a directory between two directories that may be on different file systems. Nothing is overwritten."""

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from holdfast.core.errors import PathExistsError, PathNotChangedError
from holdfast.core.file_names import MAX_DEPTH
from holdfast.tools.workspace.changes import exists, place, require_space, sync_directory, write_all

MAX_COPIED: Final = 256 * 1024**2
"""Bytes between two file systems, which take their time."""
_CHUNK: Final = 256 * 1024
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOCTTY", 0) | _NO_LINK
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK


def take_away(source: int, name: bytes, parent: int, target: bytes, shown: str, reserve: int, moving: "Moving") -> None:
    """Moves it. Raises PathExistsError; after any error it is where it was. Between two file systems it is renamed
    first, so that no program writes to it by its name while it is copied; if the process dies meanwhile, `moving` says
    so, and `resume` ends it."""
    try:
        place(source, name, parent, target, shown)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with moving.recorded():
            os.rename(name, moving.aside, src_dir_fd=source, dst_dir_fd=source)
            try:
                _copy_to(source, moving.aside, parent, target, moving.copied, _Copy(shown, reserve))
            except BaseException:
                _put_back(source, moving.aside, name, shown)
                moving.forget()
                raise
            _remove(source, moving.aside)


def bring_back(
    source: int, name: bytes, parent: int, target: bytes, shown: str, reserve: int, moving: "Moving"
) -> None:
    """Moves it, or copies it from another file system, where the caller erases it. Raises PathExistsError; after any
    error it is where it was."""
    try:
        place(source, name, parent, target, shown)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy_to(source, name, parent, target, moving.copied, _Copy(shown, reserve))


def resume(source: int, name: bytes, parent: int, target: bytes, shown: str, moving: "Moving") -> None:
    """Ends what `take_away` began in a process that died: the copy is complete, or the original is put back."""
    if exists(source, moving.aside):
        if exists(parent, target):
            _remove(source, moving.aside)
        else:
            _put_back(source, moving.aside, name, shown)
    _remove(parent, moving.copied)


class Moving:
    """The names that one item has while it is moved between file systems, and a file that exists, locked, as long as
    the move is under way: after a crash it is there without the lock."""

    def __init__(self, record: Path, tid: str) -> None:
        self.aside: Final = b".holdfast-moving-" + tid.encode()
        self.copied: Final = b".holdfast-copy-" + tid.encode()
        self._record = record

    @contextmanager
    def recorded(self) -> Iterator[None]:
        created = self._record.with_name("moving.tmp")
        with created.open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            created.replace(self._record)
            sync_directory(self._record.parent)
            yield
            self.forget()

    @property
    def is_recorded(self) -> bool:
        return self._record.exists()

    def forget(self) -> None:
        self._record.unlink(missing_ok=True)

    @contextmanager
    def interrupted(self) -> Iterator[bool]:
        """Whether a move was begun that nobody goes on with. It is over afterwards, unless there is an error."""
        try:
            file = self._record.open("rb")
        except FileNotFoundError:
            yield False
            return
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True
            self.forget()


def _copy_to(source: int, name: bytes, parent: int, target: bytes, copied: bytes, copy: "_Copy") -> None:
    _remove(parent, copied)  # what a crash left
    try:
        copy.entry(source, name, parent, copied, 0)
        place(parent, copied, parent, target, copy.shown)
    except BaseException:
        _remove(parent, copied)
        raise


def _put_back(source: int, aside: bytes, name: bytes, shown: str) -> None:
    """Under its own name, or beside what has taken it meanwhile."""
    try:
        place(source, aside, source, name, shown)
    except PathExistsError:
        place(source, aside, source, name + b" (restored)", shown)


class _Copy:
    """Copies files, directories and links, within limits, and counts their bytes."""

    def __init__(self, shown: str, reserve: int) -> None:
        self.shown = shown
        self._reserve = reserve
        self._size = 0

    def entry(self, source: int, name: bytes, parent: int, target: bytes, depth: int) -> None:
        found = os.stat(name, dir_fd=source, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            os.symlink(os.readlink(name, dir_fd=source), target, dir_fd=parent)
        elif stat.S_ISDIR(found.st_mode):
            self._directory(source, name, parent, target, depth)
        elif stat.S_ISREG(found.st_mode):
            self._file(source, name, parent, target)
        else:
            raise PathNotChangedError(self.shown, "there is a pipe, socket or device in it")

    def _directory(self, source: int, name: bytes, parent: int, target: bytes, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise PathNotChangedError(self.shown, f"its folders are more than {MAX_DEPTH} deep")
        os.mkdir(target, 0o700, dir_fd=parent)
        with _opened(name, _DIRECTORY, source) as fd, _opened(target, _DIRECTORY, parent) as into:
            with os.scandir(fd) as entries:
                for entry in entries:
                    below = os.fsencode(entry.name)
                    self.entry(fd, below, into, below, depth + 1)
            _keep(os.fstat(fd), into)

    def _file(self, source: int, name: bytes, parent: int, target: bytes) -> None:
        with _opened(name, _FILE, source) as fd, _opened(target, _CREATE, parent) as into:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise PathNotChangedError(self.shown, "there is a pipe, socket or device in it")
            require_space(parent, found.st_size, self._reserve)
            while chunk := os.read(fd, _CHUNK):
                self._size += len(chunk)
                if self._size > MAX_COPIED:
                    why = f"it is on another disk than the server's data, and larger than {MAX_COPIED >> 20} MB"
                    raise PathNotChangedError(self.shown, f"{why}; change it in a terminal")
                write_all(into, chunk)
            _keep(found, into)
            os.fsync(into)


def _keep(found: os.stat_result, fd: int) -> None:
    """Mode and times of the original."""
    os.fchmod(fd, stat.S_IMODE(found.st_mode))
    os.utime(fd, ns=(found.st_atime_ns, found.st_mtime_ns))


def _remove(parent: int, name: bytes) -> None:
    with suppress(OSError):
        if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=parent)
        else:
            os.unlink(name, dir_fd=parent)


@contextmanager
def _opened(name: bytes, flags: int, directory: int) -> Iterator[int]:
    fd = os.open(name, flags, 0o600, dir_fd=directory)
    try:
        yield fd
    finally:
        os.close(fd)
